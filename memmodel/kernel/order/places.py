"""Where a finding is: the instruction, thread, round and stage of each of its two ends.

In: a run with its roles, conflicts and graph; events. Out: `FindingPlace`s.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property

from memmodel.base.labels import Access, Allocates, Allocation, Label, Mark, Marker, Mbarrier, Side, Signal
from memmodel.kernel.conflicts.roles import Roles
from memmodel.kernel.order.graph import Graph, ends_of
from memmodel.kernel.order.verdict import FindingPlace
from memmodel.kernel.trace.accesses import LaneAccesses, WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Proxy

STAGES = 16
"""An instruction that comes back to at most this number of places walks round a ring; the places are its stages."""

Visits = tuple[set[int], Counter[tuple[Block | None, int]]]
"""Of weak accesses, their epochs, and the memory and first byte of each."""


class Places:
    """The places of the events of a graph. `body`: the instructions of its kernel."""

    def __init__(self, run: LaunchTrace, roles: Roles, graph: Graph, body: tuple[PtxInstruction, ...]) -> None:
        self._run, self._roles, self._graph, self._body = run, roles, graph, body
        self._visited: dict[tuple[int, int], Visits] = {}
        self._rings: dict[tuple[int, int, Block | None, bool], list[int]] = {}

    def of(self, first: int, second: int) -> tuple[FindingPlace, ...]:
        """The two ends of a finding, or its only one. An event stands for accesses of equal threads to many bytes: if
        those that it was made from are no example of this pair, the ends are of the threads that met there.
        """
        origins = self._graph.origins[first], self._graph.origins[second]
        index = self._graph.pair_of.get(ends_of(first, second))
        threads = [origin.thread for origin in origins]
        if index is not None and first != second:
            pair = self._graph.pairs[index]
            uses = (pair.left, pair.right) if pair.left.at == origins[0].at else (pair.right, pair.left)
            met = [use.thread for use in uses]
            if self._how(*threads) != self._how(*met):
                threads = met
        ends = dict(zip((first, second), threads, strict=True))
        return tuple(self.place(number, thread) for number, thread in ends.items())

    def _how(self, first: int, second: int) -> str:
        """The narrowest group that has two threads."""
        return self._roles.related(self._run.threads[first], self._run.threads[second])

    def place(self, number: int, by: int | None = None) -> FindingPlace:
        """The instruction and the thread of an event of the graph. `by`: an equal thread, to be named in its place."""
        origin = self._graph.origins[number]
        thread = self._run.threads[origin.thread if by is None else by]
        point = self._graph.points[number]
        role = self._roles.who[thread.number][2]
        turn = self._turn(number)
        what = describe(point.label)
        who = thread.cta, thread.warp, thread.lane, thread.number, role, turn
        return FindingPlace(self._body[origin.at], what, *who, self._stage(number))

    def _turn(self, number: int) -> int:
        """How often the thread had executed the instruction of an event before it, as far as traces show."""
        origin = self._graph.origins[number]
        use, event = origin.use, self._graph.events.get(number)
        if use is not None and use.issue is None and use.event is None:
            return self._rounds(origin.thread, origin.at, use.epoch)
        if use is not None:
            event = use.issue or use.event
        if event is not None and event.issue is not None:
            event = event.issue
        if event is None:
            return 0
        # Where lanes meet at an instruction, it has events of other kinds, too.
        before = self._run.threads[origin.thread].events[: event.order]
        return sum(1 for other in before if other.at == origin.at and other.label == event.label)

    def _stage(self, number: int) -> int:
        """The place in a ring that an access or an operation on an object is about, from 0; -1 if there is no ring."""
        origin, use = self._graph.origins[number], self._graph.origins[number].use
        weak = use is not None and use.event is None
        if use is not None and weak:
            block, first = (use.parts[0].block, use.parts[0].first) if use.parts else (None, -1)
        else:
            event = self._graph.events.get(number)
            block, first = (None, -1) if event is None else (event.block, event.first)
        stages = self._stages(origin.thread, origin.at, block, weak)
        return stages.index(first) if first in stages else -1

    def _stages(self, thread: int, at: int, block: Block | None, weak: bool) -> list[int]:
        """The stages of the ring round which a thread walks with an instruction: their places in a block. `weak`: by
        its weak accesses."""
        key = thread, at, block, weak
        if key not in self._rings:
            if weak:
                visits = self._visits(thread, at)[1]
            else:
                events = self._run.threads[thread].events
                visits = Counter((event.block, event.first) for event in events if event.at == at)
            places = {first: count for (where, first), count in visits.items() if where is block is not None}
            comes_back = 1 < len(places) <= STAGES and sum(places.values()) > len(places)
            self._rings[key] = sorted(places) if comes_back else []
        return self._rings[key]

    @cached_property
    def _weak_by_instruction(self) -> dict[int, list[WeakAccess | LaneAccesses]]:
        by_instruction = dict[int, list[WeakAccess | LaneAccesses]]()
        for access in self._run.single:
            by_instruction.setdefault(access.at, []).append(access)
        for lane_accesses in self._run.lanes:
            by_instruction.setdefault(lane_accesses.at, []).append(lane_accesses)
        return by_instruction

    def _visits(self, thread: int, at: int) -> Visits:
        """The weak accesses of a thread by an instruction."""
        known = self._visited.get((thread, at))
        if known is None:
            epochs, firsts = known = self._visited[thread, at] = set[int](), Counter[tuple[Block | None, int]]()
            for accesses in self._weak_by_instruction.get(at, ()):
                if isinstance(accesses, WeakAccess):
                    own = [accesses] if accesses.thread == thread else []
                elif thread in accesses.threads:
                    own = [accesses.access(lane) for lane, by in enumerate(accesses.threads) if by == thread]
                else:
                    continue
                epochs.update([access.epoch for access in own])
                firsts.update([(access.block, access.first) for access in own])
        return known

    def _rounds(self, thread: int, at: int, epoch: int) -> int:
        """The number of earlier epochs of the thread in which the instruction made weak accesses."""
        return sum(visit < epoch for visit in self._visits(thread, at)[0])


def describe(label: Label) -> str:
    """An event in words."""
    if isinstance(label, Access):
        what = "reads" if label.side is Side.READ else "writes"
        how = [] if label.proxy is Proxy.GENERIC else [f"through the {label.proxy.value} proxy"]
        return " ".join([what, *how, *(["asynchronously"] if label.asynchronous else [])])
    if isinstance(label, Mbarrier | Signal):
        return label.action.value
    if isinstance(label, Allocates):
        return DONE_TO_TENSOR_MEMORY[label.what]
    if isinstance(label, Mark):
        return "ends its thread" if label.what is Marker.EXIT else label.what.value
    return type(label).__name__.lower()


DONE_TO_TENSOR_MEMORY = {
    Allocation.ALLOC: "allocates tensor memory",
    Allocation.DEALLOC: "frees tensor memory",
    Allocation.RELINQUISH: "gives up the permit to allocate tensor memory",
}
