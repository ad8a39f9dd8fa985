"""The trace of one run of a launch.

In: nothing. Out: `LaunchTrace`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from memmodel.base.words import WordList
from memmodel.kernel.trace.accesses import LaneAccesses, WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.objects import ObjectStep
from memmodel.kernel.trace.problems import Failure
from memmodel.kernel.trace.stuck import StuckLanes
from memmodel.kernel.trace.threads import TraceThread
from memmodel.ptx.module.syntax import PtxInstruction


class ChoiceKind(WordList):
    """What another run might do otherwise at an instruction, as a sentence names it."""

    ATOMIC = "the result of {opcode} at line {line}"
    LAST_WRITE = "what {opcode} at line {line} leaves in memory"
    LOAD = "the value loaded at line {line}"
    ACTIVE_LANES = "the lanes that activemask at line {line} shows"


ChoiceKey = tuple[ChoiceKind, int]
"""A choice, and the number of its instruction."""


class RunMoment(NamedTuple):
    """A moment of a run: how many weak accesses, those of several lanes together, events in all and events of the
    thread there were.
    """

    single: int
    lanes: int
    time: int
    events: int


@dataclass(slots=True)
class LaunchTrace:
    """One run of a launch.

    `choices`: what another run might do otherwise, with the instruction. `tests`: the tests of mbarrier objects that
    ran; `proved`: those whose failures were seen to change nothing; `awaits`: by the number of a wait the tests that
    look ahead for it; `peeks`: these tests, each with its phase.

    `bad`: updates of mbarrier objects that break their counts; `stale`: tests of a state that is too old. `stuck`:
    lanes that wait for ever where no thread can continue. `cancels`: requests to cancel a cluster. `endless`: branches
    on unknown data around loops that only compute. `elected`: elect.sync chose a lane.

    `chosen`: the strong reads that return the write that the schedule chooses, each with it. `infeasible`: the kernel
    does not allow the order of atomic operations that the schedule asks for;
    `conflict`: no execution has it. `again`: carries the run out once more,
    with symbolic values for some stores, with or without NaN; `doubtful`: NaN matters there; `limited`: values
    there that a limit may keep apart from equal ones, with the limit.

    `memory`: the global memory as the run leaves it. `noted`: by the number of an instruction for which something was
    taken for granted, when each thread first came to it.

    `executed`: the numbers of the instructions that some lane executed, and of branches that one came to.

    `assumed`: what was taken for granted, with what it takes to drop it. `unchecked`:
    what the launch or the text leaves out, as sentences.
    `multimem`: what has multimem addresses, with an instruction that accesses it. `loose`: parts of instructions
    (number, part) whose bytes are not specified.
    """

    threads: list[TraceThread] = field(default_factory=list)
    single: list[WeakAccess] = field(default_factory=list)
    lanes: list[LaneAccesses] = field(default_factory=list)
    objects: dict[tuple[Block, int], list[ObjectStep]] = field(default_factory=dict)
    problems: list[Failure] = field(default_factory=list)
    stuck: list[StuckLanes] = field(default_factory=list)
    choices: dict[ChoiceKey, PtxInstruction] = field(default_factory=dict)
    tests: dict[int, PtxInstruction] = field(default_factory=dict)
    proved: frozenset[int] = frozenset()
    cancels: dict[int, PtxInstruction] = field(default_factory=dict)
    endless: dict[int, PtxInstruction] = field(default_factory=dict)
    assumed: dict[str, str] = field(default_factory=dict)
    multimem: dict[Block, PtxInstruction] = field(default_factory=dict)
    unchecked: dict[str, None] = field(default_factory=dict)
    loose: set[tuple[int, int]] = field(default_factory=set)
    awaits: Mapping[int, frozenset[int]] = field(default_factory=dict)
    peeks: list[tuple[TraceEvent, int]] = field(default_factory=list)
    atomics: dict[tuple[Block, int], list[TraceEvent]] = field(default_factory=dict)
    bad: list[TraceEvent] = field(default_factory=list)
    stale: list[TraceEvent] = field(default_factory=list)
    chosen: list[tuple[TraceEvent, TraceEvent | None]] = field(default_factory=list)
    memory: Sequence[Block] = ()
    noted: dict[int, dict[int, RunMoment]] = field(default_factory=dict)
    executed: set[int] = field(default_factory=set)
    instructions: int = 0
    elected: bool = False
    infeasible: bool = False
    conflict: bool = False
    doubtful: bool = False
    limited: Mapping[int, str] = field(default_factory=dict)
    again: Callable[[frozenset[int], bool], LaunchTrace] | None = field(default=None, repr=False)

    @property
    def accesses(self) -> int:
        """The number of weak accesses."""
        return len(self.single) + sum(len(lanes.firsts) for lanes in self.lanes)

    def weak(self, blocks: Container[Block] | None = None) -> Iterator[WeakAccess]:
        """The weak accesses, or those to some blocks."""
        yield from (access for access in self.single if blocks is None or access.block in blocks)
        for lane_accesses in self.lanes:
            if blocks is None or lane_accesses.block in blocks:
                yield from lane_accesses.each()
