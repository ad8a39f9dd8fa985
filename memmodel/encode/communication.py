"""Who reads from whom, and which write comes first: rf, co, sync_fence, and the final write of each cell.

In: EventGraph. Out: `Communication`: matrices of variables (events × events). The constraints that make them
well-formed go to `logic`, one named function per fact. No rule of a memory model is here; docs/executions.md is the
definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, permutations

from memmodel.base.labels import Access, Fence, InitialWrite, Side
from memmodel.base.logic import FALSE, TRUE
from memmodel.base.relations import include
from memmodel.encode.relations import no_pairs
from memmodel.errors import InternalError
from memmodel.events.graph import Event, EventGraph, MemoryEvent
from memmodel.events.values import Cases
from memmodel.memory.bytes import Cell
from memmodel.ptx.vocabulary import Sem

Operation = int
"""A number for a write operation: of its scalar, or of its own for an initial write and a piece of a copy."""

Order = dict[Operation, dict[Operation, int]]
"""The formula that says that the first comes before the second, where it may."""

EDGES = 300
"""Of an order of more pairs than this, transitivity is asked for where a candidate lacks it."""


class Communication:
    """rf, co and sync_fence of one event graph.

    `finals`: for each cell whose final write was asked for, the formulas of the candidates.
    """

    def __init__(self, graph: EventGraph) -> None:
        self.graph = graph
        self.logic = graph.logic
        self.rf, self.co, self.sync_fence = (no_pairs(len(graph.events)) for _ in range(3))
        self.writes: dict[Cell, list[MemoryEvent]] = {}
        self.reads: list[MemoryEvent] = []
        for event in graph.of_kind(MemoryEvent):
            if isinstance(event.label, Access) and event.label.side is Side.READ:
                self.reads.append(event)
            else:
                self.writes.setdefault(event.cell, []).append(event)
        self._on_sight: list[Order] = []
        self.finals: dict[Cell, dict[int, int]] = {}
        for read in self.reads:
            self._rf_has_one_source(read)
        self._co_orders_operations()
        self._sync_fence_relates_fences_in_scope()

    # ---- rf ------------------------------------------------------------------------------------------------------

    def _rf_has_one_source(self, read: MemoryEvent) -> None:
        """Each read that runs takes its value from exactly one write to its cell."""
        logic = self.logic
        known = read.value.known
        sources = [
            write
            for write in self.writes[read.cell]
            if logic.both(write.runs, read.runs) != FALSE
            and (known is None or _may_be_equal(write.value.cases(), known))
        ]
        if len(sources) == 1:
            chosen = [read.runs]
        else:
            chosen = [logic.var(f"rf(e{write.uid},e{read.uid})") for write in sources]
            logic.exactly_one(chosen, read.runs)
        if not sources:
            logic.require(-read.runs)
        for edge, write in zip(chosen, sources, strict=True):
            logic.require(-edge, write.runs)
            if known is not None:
                self._same_value(edge, write.value.cases(), known)
            self.rf[write.uid][read.uid] = edge

    def _same_value(self, edge: int, written: Cases, read: Cases) -> None:
        """If the edge holds, what is read is what was written."""
        logic = self.logic
        if written.bits is not None or read.bits is not None:
            first, second = written.as_bits(logic), read.as_bits(logic)
            for k in range(max(len(first), len(second))):
                a, b = (bits[min(k, len(bits) - 1)] for bits in (first, second))
                logic.require(-edge, -a, b)
                logic.require(-edge, a, -b)
            return
        for number, formula in written.numbers.items():
            logic.require(-edge, -formula, read.numbers.get(number, FALSE))

    # ---- co ------------------------------------------------------------------------------------------------------

    def _co_orders_operations(self) -> None:
        """A strict partial order on write operations, in which the initial writes come first."""
        before: Order = {}
        pieces: dict[Operation, list[MemoryEvent]] = {}
        for cell, writes in self.writes.items():
            initial = [write for write in writes if isinstance(write.label, InitialWrite)]
            others = [write for write in writes if not isinstance(write.label, InitialWrite)]
            for write in others:
                pieces.setdefault(_operation(write), []).append(write)
                for first in initial:
                    self.co[first.uid][write.uid] = write.runs
            for a, b in permutations(others, 2):
                edge = self._edge(before, a, b)
                if edge != FALSE:
                    self.co[a.uid][b.uid] = edge
            assert initial, f"{cell} has no initial write"
        self._complete_where_operations_overlap_partly(before, pieces)
        self._is_strict_order(before)

    def _edge(self, before: Order, a: MemoryEvent, b: MemoryEvent) -> int:
        """The variable that says operation a comes before operation b; the same in every cell that they share."""
        logic = self.logic
        if logic.both(a.runs, b.runs) == FALSE:
            return FALSE
        row = before.setdefault(_operation(a), {})
        if _operation(b) not in row:
            row[_operation(b)] = self._comes_before(f"co(e{a.uid},e{b.uid})", a, b)
        return row[_operation(b)]

    def _comes_before(self, name: str, a: Event, b: Event) -> int:
        """A variable that says that one event comes before another; only events that run do."""
        edge = self.logic.var(name)
        self.logic.require(-edge, a.runs)
        self.logic.require(-edge, b.runs)
        return edge

    def _complete_where_operations_overlap_partly(
        self, before: Order, pieces: dict[Operation, list[MemoryEvent]]
    ) -> None:
        """Where operations overlap partly, those that share no cell are related through others: relate them too."""
        for group in _overlapping(self.writes, pieces):
            for a, b in permutations(group, 2):
                first, second = pieces[a][0], pieces[b][0]
                if b not in before.setdefault(a, {}) and self.logic.both(first.runs, second.runs) != FALSE:
                    before[a][b] = self._comes_before(f"co(e{first.uid},e{second.uid})'", first, second)

    def _is_strict_order(self, before: Order) -> None:
        """Asymmetric and transitive."""
        self._is_asymmetric(before)
        if sum(map(len, before.values())) > EDGES:
            self._on_sight.append(before)
        else:
            self._is_transitive(before)

    def _is_asymmetric(self, before: Order) -> None:
        for a, row in before.items():
            for b, first in row.items():
                back = before.get(b, {}).get(a)
                if back is not None and a < b:
                    self.logic.require(-first, -back)

    def _is_transitive(self, before: Order) -> None:
        for a, row in before.items():
            for b, first in row.items():
                for c, second in before.get(b, {}).items():
                    if c != a:
                        self.logic.require(-first, -second, row.get(c, FALSE))

    def accepts(self, holds: Callable[[int], bool]) -> bool:
        """True if the orders are transitive in a candidate. If not, the solver has learnt where they are not, and where
        they would not be then: everywhere, that would be cubic."""
        return all([self._accepts(order, holds) for order in self._on_sight])

    def _accepts(self, edges: Order, holds: Callable[[int], bool]) -> bool:
        after = {a: [b for b, edge in row.items() if holds(edge)] for a, row in edges.items()}
        accepted = True
        for a, row in edges.items():
            reached = _all_after(a, after)
            if len(reached) == len(after[a]):
                continue
            accepted = False
            for b in reached:
                for c in after[b]:
                    if c != a and b in row:
                        self.logic.require(-row[b], -edges[b][c], row.get(c, FALSE))
        return accepted

    def final_writes(self, cell: Cell) -> dict[int, int]:
        """Uid of a write -> formula: it is the (chosen) co-maximal write that gives the cell its final value."""
        if cell not in self.finals:
            logic = self.logic
            writes = self.writes[cell]
            if len(writes) == 1:
                self.finals[cell] = {writes[0].uid: TRUE}
            else:
                chosen = self.finals[cell] = {write.uid: logic.var(f"final({cell},e{write.uid})") for write in writes}
                logic.exactly_one(list(chosen.values()))
                for write in writes:
                    logic.require(-chosen[write.uid], write.runs)
                    for later in self.co[write.uid].values():
                        logic.require(-chosen[write.uid], -later)
        return self.finals[cell]

    # ---- sync_fence ----------------------------------------------------------------------------------------------

    def _sync_fence_relates_fences_in_scope(self) -> None:
        """A strict partial order on fence.sc events that relates every pair whose scopes include each other."""
        logic = self.logic
        fences = [e for e in self.graph.events if isinstance(e.label, Fence) and e.label.sem is Sem.SC]
        total = all(fence.runs == TRUE for fence in fences)
        for a, b in combinations(fences, 2):
            both = logic.both(a.runs, b.runs)
            if both == FALSE:
                total = False
            elif _in_scope(a, b):
                edge = logic.var(f"sync_fence(e{a.uid},e{b.uid})")
                self.sync_fence[a.uid][b.uid] = logic.both(both, edge)
                self.sync_fence[b.uid][a.uid] = logic.both(both, -edge)
            else:
                total = False
                for first, second in ((a, b), (b, a)):
                    name = f"sync_fence(e{first.uid},e{second.uid})"
                    self.sync_fence[first.uid][second.uid] = self._comes_before(name, first, second)
        before = {fence.uid: self.sync_fence[fence.uid] for fence in fences}
        if total:
            self._has_no_circle(before)
        else:
            self._is_strict_order(before)

    def _has_no_circle(self, before: Order) -> None:
        """A relation that relates each two events one way is an order, if it has no circle of three."""
        for a, b, c in combinations(before, 3):
            first, second, both = before[a][b], before[b][c], before[a][c]
            self.logic.constraints.append((-first, -second, both))
            self.logic.constraints.append((first, second, -both))


def _all_after(event: int, after: Mapping[int, Sequence[int]]) -> list[int]:
    """The events that are reached from one by steps of `after`, those after one step first."""
    reached = list(after[event])
    known = {event, *reached}
    for middle in reached:  # which grows
        for last in after[middle]:
            if last not in known:
                known.add(last)
                reached.append(last)
    return reached


def _in_scope(a: Event, b: Event) -> bool:
    assert isinstance(a.label, Fence) and isinstance(b.label, Fence)
    assert a.point.place is not None and b.point.place is not None
    return a.thread == b.thread or include(a.label.scope, a.point.place, b.label.scope, b.point.place)


def _operation(write: MemoryEvent) -> Operation:
    if write.point.operation is None:
        raise InternalError("a write without an operation")
    return write.point.operation


def _may_be_equal(written: Cases, read: Cases) -> bool:
    wide = written.bits is not None or read.bits is not None
    return wide or bool(written.numbers.keys() & read.numbers.keys())


def _overlapping(
    writes: dict[Cell, list[MemoryEvent]], pieces: dict[Operation, list[MemoryEvent]]
) -> Iterator[list[Operation]]:
    """Groups of operations that are connected by shared cells, in which some operation has several cells."""
    group: dict[Operation, set[Operation]] = {operation: {operation} for operation in pieces}
    for on_cell in writes.values():
        met = [_operation(write) for write in on_cell if write.point.operation is not None]
        for other in met[1:]:
            first, second = group[met[0]], group[other]
            if first is not second:
                first |= second
                group |= dict.fromkeys(second, first)
    for members in {id(members): members for members in group.values()}.values():
        if any(len(pieces[operation]) > 1 for operation in members):
            yield sorted(members)
