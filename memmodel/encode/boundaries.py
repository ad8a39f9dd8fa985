"""Cuts of memory that only some executions make: elsewhere, what lies on both sides is read and written as one.

In: EventGraph, Communication. Out: constraints. The cells of an event graph are cut wherever an access of the test may
begin or end; an execution has the cuts of the accesses that run in it (docs/executions.md, "Cells"). Where a cut is not
there, an operation reads both sides from one operation, and pieces of copies are ordered alike on both.
"""

from __future__ import annotations

from collections.abc import Iterator

from memmodel.base.labels import InitialWrite
from memmodel.base.logic import FALSE, TRUE
from memmodel.encode.communication import Communication
from memmodel.events.graph import Copied, EventGraph, MemoryEvent
from memmodel.memory.bytes import Instance

Place = tuple[Instance, int]
"""A byte of an instance before which memory is cut."""

Crossing = tuple[MemoryEvent, MemoryEvent]
"""Two pieces of one access on neighbouring cells, or two initial writes."""


def join_where_uncut(graph: EventGraph, communication: Communication) -> None:
    """Require that neighbouring cells are one wherever no access of the execution cuts between them."""
    crossings: dict[Place, list[Crossing]] = {}
    for left, right in _crossings(graph):
        crossings.setdefault((right.cell.instance, right.cell.first), []).append((left, right))
    cuts = _Cuts(graph)
    for place, pairs in crossings.items():
        cut = cuts.formula(place)
        if cut != TRUE:
            _join(graph, communication, pairs, cut)


def _crossings(graph: EventGraph) -> Iterator[Crossing]:
    """The places where an operation, or an access of pieces, goes on from one cell to the next."""
    groups: dict[object, list[MemoryEvent]] = {}
    for event in graph.of_kind(MemoryEvent):
        if isinstance(event.label, InitialWrite):
            key: object = event.cell.instance
        elif event.point.scalar is not None:
            key = (event.point.operation, event.label)
        else:
            key = (event.visit, event.part, event.label, event.cell.instance, event.runs)
        groups.setdefault(key, []).append(event)
    for events in groups.values():
        ends: dict[Place, list[MemoryEvent]] = {}
        for event in events:
            ends.setdefault((event.cell.instance, event.cell.end), []).append(event)
        for right in events:
            for left in ends.get((right.cell.instance, right.cell.first), ()):
                yield left, right


def _join(graph: EventGraph, communication: Communication, pairs: list[Crossing], cut: int) -> None:
    """Accesses that cross a place where memory is not cut read, and are ordered, alike on both sides of it."""
    logic = graph.logic
    right_of = {left.uid: right.uid for left, right in pairs}

    def same(a: int, b: int) -> None:
        logic.require(cut, -a, b)
        logic.require(cut, a, -b)

    for matrix in (communication.rf, communication.co):
        for first, second in right_of.items():
            for later, edge in matrix[first].items():
                if later in right_of:
                    same(edge, matrix[second].get(right_of[later], FALSE))
    left, right = (communication.finals.get(event.cell) for event in pairs[0])
    if left is not None and right is not None:
        for uid, chosen in left.items():
            if uid in right_of:
                same(chosen, right.get(right_of[uid], FALSE))


class _Cuts:
    """When memory is cut at a place."""

    def __init__(self, graph: EventGraph) -> None:
        self._graph = graph
        self._logic = graph.logic
        self._known: dict[Place, int] = {}
        self._copies: dict[Instance, list[Copied]] = {}
        for copy in graph.copies:
            for instance in {copy.source.instance, copy.target.instance}:
                self._copies.setdefault(instance, []).append(copy)

    def formula(self, place: Place) -> int:
        """The formula that says memory is cut there: by an access, or by a copy from or to where it is."""
        if place not in self._known:
            cut = self._directly(place)
            self._known[place] = cut if cut == TRUE else self._carried(place)
        return self._known[place]

    def _directly(self, place: Place) -> int:
        """An access begins or ends there, or one of its scalars does."""
        instance, at = place
        return self._logic.disj(
            when
            for edges, when in self._graph.footprints.items()
            if edges.extent.instance == instance and edges.has(at)
        )

    def _carried(self, place: Place) -> int:
        """The least solution of: a place is cut directly, or where a copy that runs comes from or goes to."""
        reached = [place]
        for at in reached:  # which grows
            reached += [other for other, _ in self._neighbours(at) if other not in reached]
        direct = {at: self._directly(at) for at in reached}
        cut = dict(direct)
        for _ in reached:
            longer = {
                at: self._logic.disj(
                    [direct[at], *(self._logic.both(runs, cut[other]) for other, runs in self._neighbours(at))]
                )
                for at in reached
            }
            if longer == cut:
                break
            cut = longer
        return cut[place]

    def _neighbours(self, place: Place) -> Iterator[tuple[Place, int]]:
        """The places that copies connect with this one, and when."""
        instance, at = place
        for copy in self._copies.get(instance, ()):
            for near, far in ((copy.source, copy.target), (copy.target, copy.source)):
                if near.instance == instance and near.first <= at <= near.end:
                    yield (far.instance, far.first + at - near.first), copy.runs
