"""The trace of one run of a launch.

In: nothing. Out: `LaunchTrace`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from memmodel.base.words import WordList
from memmodel.kernel.trace.accesses import LaneAccesses, WeakAccess, each_once
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.objects import ObjectStep
from memmodel.kernel.trace.problems import Failure
from memmodel.kernel.trace.stuck import StuckLanes
from memmodel.kernel.trace.threads import TraceThread
from memmodel.program.ops import Track
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


class TermsOf(Enum):
    """Of what a run with symbolic values has terms."""

    WARPS = "warps"
    """Of what all lanes of a warp compute together: values that it does not show to be equal may be equal."""
    LANES = "lanes"
    """Of what each lane computes."""
    NUMBERS = "numbers"
    """Of what each lane computes if no number is NaN."""


class Committed(NamedTuple):
    """A group that a thread closed. `at`: the number of the commit; `issued`: how many instructions of this kind the
    thread had issued by then, and `events`: how many events it had."""

    at: int
    issued: int
    events: int


class RegisterChange(NamedTuple):
    """A setmaxnreg at instruction `at` that took registers from the pool of a CTA, or gave (-`taken`) registers back.
    `places`: by lane the thread, and how many events it had by then."""

    at: int
    cta: int
    taken: int
    left: int
    """How many registers the pool has then."""
    places: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class LaunchTrace:
    """The record of one run of a launch."""

    threads: list[TraceThread] = field(default_factory=list)
    single: list[WeakAccess] = field(default_factory=list)
    """Weak accesses, one by one."""
    lanes: list[LaneAccesses] = field(default_factory=list)
    """Weak accesses that the lanes of a warp make together."""
    objects: dict[tuple[Block, int], list[ObjectStep]] = field(default_factory=dict)
    """By mbarrier object, its updates and tests in the order of the run."""
    problems: list[Failure] = field(default_factory=list)
    """What went wrong in the run."""
    stuck: list[StuckLanes] = field(default_factory=list)
    """Lanes that wait for ever, when no thread can go on."""
    choices: dict[ChoiceKey, PtxInstruction] = field(default_factory=dict)
    """What another run might do otherwise, with the instruction."""
    tests: dict[int, PtxInstruction] = field(default_factory=dict)
    """The tests of mbarrier objects that ran."""
    proved: frozenset[int] = frozenset()
    """The tests whose failures were seen to change nothing."""
    cancels: dict[int, PtxInstruction] = field(default_factory=dict)
    """Requests to cancel a cluster."""
    endless: dict[int, PtxInstruction] = field(default_factory=dict)
    """Branches on unknown data around loops that only compute."""
    assumed: dict[str, str] = field(default_factory=dict)
    """The assumptions of the run, each with what it takes to drop it."""
    multimem: dict[Block, PtxInstruction] = field(default_factory=dict)
    """Memory with multimem addresses, each with an instruction that accesses it."""
    unchecked: dict[str, None] = field(default_factory=dict)
    """What the launch or the text leaves out, as sentences."""
    unspecified_parts: set[tuple[int, int]] = field(default_factory=set)
    """Parts of instructions (number, part) whose bytes are not specified."""
    awaits: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """By the number of a wait, the tests that look ahead for it."""
    peeks: list[tuple[TraceEvent, int]] = field(default_factory=list)
    """These tests, each with its phase."""
    atomics: dict[tuple[Block, int], list[TraceEvent]] = field(default_factory=dict)
    """By location, the atomic operations in the order of the run."""
    miscounted: list[TraceEvent] = field(default_factory=list)
    """Updates of mbarrier objects that break their counts."""
    stale_tests: list[TraceEvent] = field(default_factory=list)
    """Tests of mbarrier objects for a state that is too old."""
    register_changes: list[RegisterChange] = field(default_factory=list)
    """What warps did to the registers of their CTAs, in the order of the run."""
    chosen: list[tuple[TraceEvent, TraceEvent | None]] = field(default_factory=list)
    """The strong reads that return the write that the schedule chooses, each with that write."""
    memory: Sequence[Block] = ()
    """The global memory as the run leaves it."""
    first_reached: dict[int, dict[int, RunMoment]] = field(default_factory=dict)
    """By the number of an instruction with an assumption, when each thread first came to it."""
    executed: set[int] = field(default_factory=set)
    """The numbers of the instructions that some lane executed, and of the branches that some lane came to."""
    commits: dict[tuple[int, Track], list[Committed]] = field(default_factory=dict)
    """By thread and kind of group, what it committed."""
    instructions: int = 0
    """How many instructions lanes have executed."""
    elected: bool = False
    """True if elect.sync chose a lane."""
    infeasible: bool = False
    """True if the kernel does not allow the order of atomic operations that the schedule asks for."""
    conflict: bool = False
    """True if no execution has that order."""
    doubtful: bool = False
    """Of a run with symbolic values: NaN matters."""
    limited: Mapping[int, str] = field(default_factory=dict)
    """Of a run with symbolic values: values that a limit may keep apart from equal ones, with the limit."""
    with_symbols: Callable[[frozenset[int], TermsOf], LaunchTrace] | None = field(default=None, repr=False)
    """Carries the run out once more, with symbolic values for some stores."""

    @property
    def accesses(self) -> int:
        """The number of weak accesses."""
        return len(self.single) + sum(len(lanes.firsts) for lanes in self.lanes)

    def weak(self, blocks: Container[Block] | None = None) -> Iterator[WeakAccess]:
        """The weak accesses, or those to some blocks; of those that stand there twice the first."""
        for access in self.single:
            if blocks is None or access.block in blocks:
                yield access
        yield from each_once(row for row in self.lanes if blocks is None or row.block in blocks)
