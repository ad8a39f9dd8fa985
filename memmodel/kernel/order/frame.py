"""The base names of a run that labels and places decide, computed for many events at once.

In: events. Out: `KernelFrame`. The meaning is that of the tables of `memmodel.base`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice

from memmodel.base.labels import (
    Access,
    Allocates,
    Covers,
    Fence,
    Label,
    Mark,
    Marker,
    Mbarrier,
    ProxyFence,
    Role,
    Signal,
    is_replicated,
    scope_of,
)
from memmodel.base.points import Point
from memmodel.base.relations import OF_ITS_THREAD, RELATION_ROWS, BaseRelation, Holds
from memmodel.base.rows import Rows, bits, mask_of, union
from memmodel.base.sets import SET_ROWS, names_of
from memmodel.concrete.execution import ConcreteEvent, Execution, FixedPart
from memmodel.kernel.conflicts.uses import outlives
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.threads import TraceThread
from memmodel.memory.bytes import Cell
from memmodel.ptx.vocabulary import Space


class KernelFrame(FixedPart):
    """The events of a run, which belong to no litmus test. Which relations the tables decide is inherited.

    `ranged`: what is covered by the events that name bytes. `same_location`: further pairs of events at one location.
    """

    def __init__(
        self, events: list[ConcreteEvent], ranged: Mapping[int, int], same_location: Sequence[tuple[int, int]] = ()
    ) -> None:
        self._ranged = ranged
        self._same_location = same_location
        self.events = events
        self.count = len(events)
        self._sets: dict[str, int] = {}
        self._relations: dict[str, Rows] = {}

    def relation(self, name: str) -> Rows:
        """A base relation as the tables decide it, computed for classes of equal events where these are few."""
        if name not in self._relations and name in _OWN:
            self._relations[name] = _OWN[name](self, RELATION_ROWS[name])
        return super().relation(name)

    def _covers(self, row: BaseRelation) -> Rows:
        """`covers` of the tables: a fence of one label covers the same for all threads of a CTA."""
        assert row.holds is not None and row.domain is not None and row.range is not None
        right = [point for point in (event.point for event in self.events) if row.range(point)]
        threads: dict[int | None, list[Point]] = {}
        for point in right:
            threads.setdefault(point.thread, []).append(point)
        known: dict[object, int] = {}
        rows = [0] * self.count
        for number, event in enumerate(self.events):
            point = event.point
            if not row.domain(point) or point.place is None:
                continue
            if number in self._ranged:
                rows[number] = self._ranged[number]
                continue
            what = point.label.covers if isinstance(point.label, Fence | ProxyFence) else Covers.RANGE
            key = (what, point.place.cta_id) if what in _OF_CTA else number
            if key not in known:
                near = threads.get(point.thread, ()) if what in OF_ITS_THREAD else right
                known[key] = sum(1 << other.event for other in near if row.holds(point, other))
            rows[number] = known[key]
        return rows

    def _also_met(self, row: BaseRelation) -> Rows:
        """A relation between events at one location: as the tables decide it, and between the further pairs."""
        rows = self._whole(row) if row.name == "whole" else super().relation(row.name)
        holds = _AT_ONE_LOCATION[row.name]
        for pair in self._same_location:
            first, second = (self.events[number].point for number in pair)
            if holds(first, second):
                rows[first.event] |= 1 << second.event
                rows[second.event] |= 1 << first.event
        return rows

    def _same_object(self, row: BaseRelation) -> Rows:
        """`samebar` of the tables, computed by places, of which there are few."""
        objects: dict[object, dict[Cell, tuple[int, int]]] = {}
        for number, event in enumerate(self.events):
            cell = event.point.cell
            if cell is not None:
                places = objects.setdefault(cell.instance, {})
                on, other = places.get(cell, (0, 0))
                mine = isinstance(event.point.label, Mbarrier | Signal)
                places[cell] = (on | mine << number, other | (not mine) << number)
        rows = [0] * self.count
        for places in objects.values():
            for cell, (on, other) in places.items():
                updated = whole = 0
                for near, (mask, rest) in places.items():
                    if near.first < cell.end and cell.first < near.end:
                        updated, whole = updated | mask, whole | mask | rest
                for number in bits(on):
                    rows[number] = whole & ~(1 << number)
                for number in bits(other) if updated else ():
                    rows[number] = updated
        return rows

    def _whole(self, row: BaseRelation) -> Rows:
        """`whole` of the tables: the same for all events at one location whose scalar operations have one size."""
        assert row.holds is not None and row.key is not None
        places: dict[object, dict[int | None, list[Point]]] = {}
        for event in self.events:
            point = event.point
            key = row.key(point)
            if key is not None:
                places.setdefault(key, {}).setdefault(point.scalar, []).append(point)
        rows = [0] * self.count
        for sizes in places.values():
            masks = {size: _mask(points) for size, points in sizes.items()}
            for points in sizes.values():
                others_mask = union(masks[size] for size, others in sizes.items() if row.holds(points[0], others[0]))
                for point in points:
                    rows[point.event] = others_mask
        return rows

    def _scopes(self, row: BaseRelation) -> Rows:
        """Scopes that include each other: the same for events of one class of labels and one place, apart from events
        of one thread.
        """
        assert row.holds is not None and row.domain is not None
        classes: dict[object, dict[int | None, list[Point]]] = {}
        for event in self.events:
            point = event.point
            if row.domain(point):
                at = point.seat if row.name == "sr" else point.place  # of a signal: its object, or who issued it
                key = scope_of(point.label), isinstance(point.label, Signal), at
                classes.setdefault(key, {}).setdefault(point.thread, []).append(point)
        masks = [{thread: _mask(points) for thread, points in members.items()} for members in classes.values()]
        rows = [0] * self.count
        for members in classes.values():
            apart = 0
            for others, of in zip(classes.values(), masks, strict=True):
                pair = _of_two_threads(members, others)
                apart |= union(of.values()) if pair is not None and row.holds(*pair) else 0
            for thread, points in members.items():
                own, mine = 0, 0
                for others, of in zip(classes.values(), masks, strict=True):
                    if thread in others:
                        own |= of[thread]
                        mine |= of[thread] if row.holds(points[0], others[thread][0]) else 0
                for point in points:
                    rows[point.event] = apart & ~own | mine
        return rows

    def _other_threads(self, row: BaseRelation) -> Rows:
        """`ext` of the tables, computed by threads."""
        events = (1 << self.count) - 1
        threads: dict[int | None, int] = {}
        for number, event in enumerate(self.events):
            threads[event.point.thread] = threads.get(event.point.thread, 0) | 1 << number
        return [
            events & ~(1 << number if event.point.thread is None else threads[event.point.thread])
            for number, event in enumerate(self.events)
        ]

    def _program_order(self, row: BaseRelation) -> Rows:
        """`po` of the tables: by the place in the order of a thread, parts of one instruction unordered."""
        rows = [0] * self.count
        threads: dict[int | None, list[Point]] = {}
        for event in self.events:
            if event.point.order is not None:
                threads.setdefault(event.point.thread, []).append(event.point)
        for members in threads.values():
            members.sort(key=lambda point: -(point.order or 0))
            after, waiting, last = 0, 0, None
            for point in members:
                if point.order != last:
                    after, waiting, last = after | waiting, 0, point.order
                rows[point.event] = after
                waiting |= 1 << point.event
        return rows


class RelabelledFrame(KernelFrame):
    """The events of another frame, some of them with other labels. What that does not change is taken from there."""

    def __init__(self, whole: KernelFrame, labels: Mapping[int, Label], ranged: Mapping[int, int]) -> None:
        events = list(whole.events)
        for number, label in labels.items():
            events[number] = replace(events[number], point=replace(events[number].point, label=label))
        super().__init__(events, ranged, whole._same_location)
        self.whole = whole
        self._changes = [(whole.events[number].point, events[number].point) for number in labels]
        self.relabelled = len(self._changes)

    @cached_property
    def _labelled(self) -> dict[str, int]:
        masks = dict(self.whole._labelled)
        for old, new in self._changes:
            for name in names_of(old.label):
                masks[name] &= ~(1 << old.event)
            for name in names_of(new.label):
                masks[name] = masks.get(name, 0) | 1 << new.event
        return masks

    def relation(self, name: str) -> Rows:
        if name not in self._relations and self._unchanged(RELATION_ROWS[name]):
            self._relations[name] = self.whole.relation(name)
        return super().relation(name)

    def _unchanged(self, row: BaseRelation) -> bool:
        """True if a relation is the same whatever these labels say."""
        if (row.key is None and row.holds is None) or (row.name == "covers" and self._ranged != self.whole._ranged):
            return False
        if row.key is not None and any(row.key(old) != row.key(new) for old, new in self._changes):
            return False
        if row.holds is None or row.kind is not None:
            return row.kind is None or all(row.kind(old) == row.kind(new) for old, new in self._changes)
        if all(row.in_label(old.label) == row.in_label(new.label) for old, new in self._changes):
            return True
        points = [point for pair in self._changes for point in pair if row.key is None or row.key(point) is not None]
        return not any(admits is None or admits(point) for admits in (row.domain, row.range) for point in points)

    def changes(self, name: str) -> bool:
        """True if a base name may decide something else than in the other frame."""
        if name in SET_ROWS:
            return self.set(name) != self.whole.set(name)
        return self.relation(name) is not self.whole.relation(name)


class RelabelledNames:
    """The base names that decide something else in an execution with other labels. `chosen`: those of them that choices
    decide."""

    def __init__(self, frame: RelabelledFrame, execution: Execution, chosen: Container[str]) -> None:
        self._frame, self._execution, self._chosen = frame, execution, chosen

    def __contains__(self, name: object) -> bool:
        assert isinstance(name, str)
        if name in self._execution.chosen_sets or name in self._execution.chosen_relations:
            return name in self._chosen
        return self._frame.changes(name)


def _one_address(first: Point, second: Point) -> bool:
    """True if two accesses at one location are made through one virtual address."""
    return is_replicated(first.label) == is_replicated(second.label)


def _one_size(first: Point, second: Point) -> bool:
    """True if two accesses at one location have scalar operations of one size."""
    holds = RELATION_ROWS["whole"].holds
    return holds is not None and holds(first, second)


_AT_ONE_LOCATION: dict[str, Holds] = {"loc": lambda first, second: True, "vloc": _one_address, "whole": _one_size}
"""Relations between accesses at one location, each with its further condition."""
_OWN: Mapping[str, Callable[[KernelFrame, BaseRelation], Rows]] = {
    "ext": KernelFrame._other_threads,
    "po": KernelFrame._program_order,
    "sr": KernelFrame._scopes,
    "sri": KernelFrame._scopes,
    "samebar": KernelFrame._same_object,
    "covers": KernelFrame._covers,
    **dict.fromkeys(_AT_ONE_LOCATION, KernelFrame._also_met),
}
"""The relations that a frame computes in a way of its own."""
_OF_CTA = (None, Covers.OWN_SHARED, Covers.SHARED, Covers.GLOBAL)
"""What a fence covers that depends on its CTA only."""


def covered(points: Sequence[Point], events: Mapping[int, TraceEvent]) -> dict[int, int]:
    """What is covered by the events that name bytes: acquire fences cover maps, allocations the accesses to their
    memory.
    """
    maps: list[tuple[tuple[Block, int, int], int]] = []
    held: dict[int, int] = {}
    tensor = [point for point in points if point.cell is not None and point.cell.instance.space is Space.TENSOR]
    for point in points:
        if isinstance(point.label, Access) and point.label.role is Role.DESCRIPTOR:
            issue = events[point.issue or 0]
            assert issue.range is not None
            maps.append((issue.range, 1 << point.event))
    for point in tensor:
        for owner in events[point.issue or 0].owners:
            held[id(owner)] = held.get(id(owner), 0) | 1 << point.event
    masks = {}
    for number, event in events.items():
        if isinstance(event.label, Allocates):
            masks[number] = union(held.get(id(owner), 0) for owner in event.owners)
        elif event.range is not None and isinstance(event.label, ProxyFence):
            block, first, end = event.range
            inside = [mask for (other, low, high), mask in maps if other is block and first <= low and high <= end]
            masks[number] = sum(inside)
    return masks


def ends(points: Sequence[Point], threads: Sequence[TraceThread]) -> dict[str, Rows]:
    """From what others and bulk copies do in the memory of a CTA, and from what it does itself, to the ends of its
    threads; from what others do there, and what its peer does together with it, to the first events of its threads.
    """
    relations = {name: [0] * len(points) for name in ("exits", "ctaends", "foreign")}
    exits: dict[object, int] = {}
    first: dict[int | None, tuple[int, Point]] = {}
    running = {thread.place.cta_id for thread in threads if not thread.ended}
    for point in points:
        if point.place is None:
            continue
        if point.order is not None and point.order < first.get(point.thread, (point.order + 1, point))[0]:
            first[point.thread] = (point.order, point)
        if point.place.cta_id in running:
            continue
        if isinstance(point.label, Mark) and point.label.what is Marker.EXIT:
            exits[point.place.cta_id] = exits.get(point.place.cta_id, 0) | 1 << point.event
    begins: dict[object, int] = {}
    for _, point in first.values():
        assert point.place is not None
        begins[point.place.cta_id] = begins.get(point.place.cta_id, 0) | 1 << point.event
    for point in points:
        if point.place is None:
            continue
        if isinstance(point.label, Allocates):
            relations["ctaends"][point.event] = exits.get(point.place.cta_id, 0)
            if point.label.group == 2:
                peer = replace(point.place, cta=point.place.cta ^ 1)
                relations["foreign"][point.event] = begins.get(peer.cta_id, 0)
        owner = None if point.cell is None else point.cell.instance.owner
        if point.cell is None or owner is None or not isinstance(point.label, Access | Mbarrier | Signal):
            continue
        if owner != point.place.cta_id or outlives(point.label):
            relations["exits"][point.event] = exits.get(owner, 0)
        if owner != point.place.cta_id and point.cell.instance.space is Space.SHARED:
            relations["foreign"][point.event] = begins.get(owner, 0)
    return relations


def _mask(points: list[Point]) -> int:
    return mask_of(point.event for point in points)


def _of_two_threads(
    some: Mapping[int | None, list[Point]], others: Mapping[int | None, list[Point]]
) -> tuple[Point, Point] | None:
    """A point of each group, by different threads."""
    for thread, points in islice(some.items(), 2):
        for other, other_points in islice(others.items(), 2):
            if thread != other:
                return points[0], other_points[0]
    return None
