"""The trace of one run of a launch.

In: nothing. Out: `LaunchTrace`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field

from memmodel.kernel.trace.accesses import LaneAccesses, WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.objects import ObjectStep
from memmodel.kernel.trace.problems import Failure
from memmodel.kernel.trace.stuck import StuckLanes
from memmodel.kernel.trace.threads import TraceThread
from memmodel.ptx.module.syntax import PtxInstruction


@dataclass(slots=True)
class LaunchTrace:
    """One run of a launch. `choices`: what another run might do otherwise: (what, instruction).

    `bad`: updates of mbarrier objects that break their counts; `stale`: tests of a state that is too old. `awaits`: by
    the number of a wait the tests that look ahead for it; `proved`: the tests of which failures were seen to change
    nothing; `peeks`: these tests, each with its phase. `cancels`: the
    requests to cancel a cluster. `endless`: branches on unknown data around loops that only compute. `infeasible`: the
    kernel did not let its atomic operations be made in the order that was asked for. `again`: carries the run out once
    more, with terms for what some stores leave, with or without NaN; `doubtful`: NaN matters there. `assumed`: what was
    taken for granted, as notes. `multimem`: what has multimem addresses, with an instruction that accesses it.
    `unchecked`: what the launch would have to say, or the text, as sentences. `loose`: parts of instructions (number,
    part) of which the text does not say which bytes they touch. `chosen`: the strong reads that return the write that
    the schedule says, each with it. `stuck`: those that wait for ever where nobody can go on.
    """

    threads: list[TraceThread] = field(default_factory=list)
    single: list[WeakAccess] = field(default_factory=list)
    lanes: list[LaneAccesses] = field(default_factory=list)
    objects: dict[tuple[Block, int], list[ObjectStep]] = field(default_factory=dict)
    problems: list[Failure] = field(default_factory=list)
    stuck: list[StuckLanes] = field(default_factory=list)
    choices: dict[tuple[str, int], PtxInstruction] = field(default_factory=dict)
    tests: dict[int, PtxInstruction] = field(default_factory=dict)
    proved: frozenset[int] = frozenset()
    cancels: dict[int, PtxInstruction] = field(default_factory=dict)
    endless: dict[int, PtxInstruction] = field(default_factory=dict)
    assumed: dict[str, None] = field(default_factory=dict)
    multimem: dict[Block, PtxInstruction] = field(default_factory=dict)
    unchecked: dict[str, None] = field(default_factory=dict)
    loose: set[tuple[int, int]] = field(default_factory=set)
    awaits: Mapping[int, frozenset[int]] = field(default_factory=dict)
    peeks: list[tuple[TraceEvent, int]] = field(default_factory=list)
    atomics: dict[tuple[Block, int], list[TraceEvent]] = field(default_factory=dict)
    bad: list[TraceEvent] = field(default_factory=list)
    stale: list[TraceEvent] = field(default_factory=list)
    chosen: list[tuple[TraceEvent, TraceEvent | None]] = field(default_factory=list)
    instructions: int = 0
    elected: bool = False
    infeasible: bool = False
    doubtful: bool = False
    again: Callable[[frozenset[int], bool], LaunchTrace] | None = field(default=None, repr=False)

    @property
    def accesses(self) -> int:
        """How many weak accesses there were."""
        return len(self.single) + sum(len(one.firsts) for one in self.lanes)

    def weak(self, blocks: Container[Block] | None = None) -> Iterator[WeakAccess]:
        """The weak accesses, or those to some blocks."""
        yield from (one for one in self.single if blocks is None or one.block in blocks)
        for many in self.lanes:
            if blocks is None or many.block in blocks:
                yield from many.each()
