"""The base names of a run that labels and places settle, computed for many events at once.

In: events. Out: `KernelFrame`. The meaning is that of the tables of `memmodel.base`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from memmodel.base.labels import (
    Access,
    Action,
    Allocates,
    Covers,
    Fence,
    Label,
    Mark,
    Marker,
    Mbarrier,
    ProxyFence,
    Role,
    Side,
    Signal,
    scope_of,
)
from memmodel.base.points import Point
from memmodel.base.relations import RELATION_ROWS, BaseRelation, Holds
from memmodel.concrete.execution import ConcreteEvent, FixedPart, Rows, bits
from memmodel.kernel.order.uses import aliased, outlives
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.threads import TraceThread
from memmodel.memory.bytes import Cell
from memmodel.ptx.vocabulary import Space


class KernelFrame(FixedPart):
    """The events of a run, without a litmus test behind them. Which relations the tables settle is inherited.

    `ranged`: what the events cover that name bytes. `meets`: pairs of events that are at one location besides.
    """

    def __init__(
        self, events: list[ConcreteEvent], ranged: Mapping[int, int], meets: Sequence[tuple[int, int]] = ()
    ) -> None:
        self._ranged = ranged
        self._meets = meets
        self.events = events
        self.count = len(events)
        self._sets: dict[str, int] = {}
        self._relations: dict[str, Rows] = {}

    def relation(self, name: str) -> Rows:
        """As the tables settle it; what a fence of one label covers is the same for all threads of a CTA."""
        if name == "po" and name not in self._relations:
            self._relations[name] = self._program_order()
        if name in ("sr", "sri") and name not in self._relations:
            self._relations[name] = self._scopes(RELATION_ROWS[name])
        if name == "samebar" and name not in self._relations:
            self._relations[name] = self._same_object()
        if name in _AT_ONE_LOCATION and name not in self._relations:
            self._relations[name] = self._also_met(name)
        if name != "covers" or name in self._relations:
            return super().relation(name)
        row = RELATION_ROWS[name]
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
                near = threads.get(point.thread, ()) if what is Covers.INIT else right
                known[key] = sum(1 << other.event for other in near if row.holds(point, other))
            rows[number] = known[key]
        self._relations[name] = rows
        return rows

    def _also_met(self, name: str) -> Rows:
        """A relation between events at one location: as the tables settle it, and between those that meet besides."""
        row = RELATION_ROWS[name]
        rows = self._whole(row) if name == "whole" else super().relation(name)
        holds = _AT_ONE_LOCATION[name]
        for pair in self._meets:
            one, other = (self.events[number].point for number in pair)
            if holds(one, other):
                rows[one.event] |= 1 << other.event
                rows[other.event] |= 1 << one.event
        return rows

    def _same_object(self) -> Rows:
        """`samebar` of the tables: by the place of an event, of which there are few."""
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
                there = whole = 0
                for one, (mask, rest) in places.items():
                    if one.first < cell.end and cell.first < one.end:
                        there, whole = there | mask, whole | mask | rest
                for number in bits(on):
                    rows[number] = whole & ~(1 << number)
                for number in bits(other) if there else ():
                    rows[number] = there
        return rows

    def _whole(self, row: BaseRelation) -> Rows:
        """`whole` of the tables: at one location, the same for all events whose scalar operations have one size."""
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
                there = _union(masks[size] for size, others in sizes.items() if row.holds(points[0], others[0]))
                for one in points:
                    rows[one.event] = there
        return rows

    def _scopes(self, row: BaseRelation) -> Rows:
        """Scopes that include each other: the same for events of one label class and place, but for those of one
        thread.
        """
        assert row.holds is not None and row.domain is not None
        classes: dict[object, dict[int | None, list[Point]]] = {}
        for event in self.events:
            point = event.point
            if row.domain(point):
                key = scope_of(point.label), isinstance(point.label, Signal), point.seat
                classes.setdefault(key, {}).setdefault(point.thread, []).append(point)
        masks = [{thread: _mask(points) for thread, points in members.items()} for members in classes.values()]
        rows = [0] * self.count
        for members in classes.values():
            apart = 0
            for others, of in zip(classes.values(), masks, strict=True):
                pair = _of_two_threads(members, others)
                apart |= _union(of.values()) if pair is not None and row.holds(*pair) else 0
            for thread, points in members.items():
                own, mine = 0, 0
                for others, of in zip(classes.values(), masks, strict=True):
                    if thread in others:
                        own |= of[thread]
                        mine |= of[thread] if row.holds(points[0], others[thread][0]) else 0
                for one in points:
                    rows[one.event] = apart & ~own | mine
        return rows

    def _program_order(self) -> Rows:
        """`po` of the tables: by the place in the order of a thread, parts of one instruction unordered."""
        rows = [0] * self.count
        threads: dict[int | None, list[Point]] = {}
        for event in self.events:
            if event.point.order is not None:
                threads.setdefault(event.point.thread, []).append(event.point)
        for members in threads.values():
            members.sort(key=lambda one: -(one.order or 0))
            after, waiting, last = 0, 0, None
            for one in members:
                if one.order != last:
                    after, waiting, last = after | waiting, 0, one.order
                rows[one.event] = after
                waiting |= 1 << one.event
        return rows


def _one_address(one: Point, other: Point) -> bool:
    """Are two accesses at one location made through one virtual address?"""
    return aliased(one.label) == aliased(other.label)


def _one_size(one: Point, other: Point) -> bool:
    """Do two accesses at one location have scalar operations of one size?"""
    holds = RELATION_ROWS["whole"].holds
    return holds is not None and holds(one, other)


_AT_ONE_LOCATION: dict[str, Holds] = {"loc": lambda one, other: True, "vloc": _one_address, "whole": _one_size}
"""Relations between accesses of one location, and what they ask besides."""
_OF_CTA = (None, Covers.OWN_SHARED, Covers.SHARED, Covers.GLOBAL)
"""What a fence covers that depends on its CTA only."""


def covered(points: Sequence[Point], events: Mapping[int, TraceEvent]) -> dict[int, int]:
    """What is covered by the events that name bytes: maps by acquire fences, accesses by allocations of their
    memory.
    """
    maps: list[tuple[tuple[Block, int, int], int]] = []
    held: dict[int, int] = {}
    tensor = [one for one in points if one.cell is not None and one.cell.instance.space is Space.TENSOR]
    for one in points:
        if isinstance(one.label, Access) and one.label.role is Role.DESCRIPTOR:
            issue = events[one.issue or 0]
            assert issue.range is not None
            maps.append((issue.range, 1 << one.event))
    for one in tensor:
        for owner in events[one.issue or 0].owners:
            held[id(owner)] = held.get(id(owner), 0) | 1 << one.event
    found = {}
    for number, event in events.items():
        if isinstance(event.label, Allocates):
            found[number] = held.get(id(event.owners[0]), 0) if event.owners else 0
        elif event.range is not None and isinstance(event.label, ProxyFence):
            block, first, end = event.range
            inside = [mask for (other, low, high), mask in maps if other is block and first <= low and high <= end]
            found[number] = sum(inside)
    return found


def ends(points: Sequence[Point], threads: Sequence[TraceThread]) -> dict[str, Rows]:
    """The ends of CTAs: after what others and bulk copies do in their memory, and after what they do themselves."""
    relations = {"exits": [0] * len(points), "ctaends": [0] * len(points)}
    exits: dict[object, int] = {}
    running = {thread.place.cta_id for thread in threads if not thread.ended}
    for one in points:
        if one.place is None or one.place.cta_id in running:
            continue
        if isinstance(one.label, Mark) and one.label.what is Marker.EXIT:
            exits[one.place.cta_id] = exits.get(one.place.cta_id, 0) | 1 << one.event
    for one in points:
        if one.place is None:
            continue
        if isinstance(one.label, Allocates):
            relations["ctaends"][one.event] = exits.get(one.place.cta_id, 0)
        owner = None if one.cell is None else one.cell.instance.owner
        if owner is None or not isinstance(one.label, Access | Mbarrier | Signal):
            continue
        if owner != one.place.cta_id or outlives(one.label):
            relations["exits"][one.event] = exits.get(owner, 0)
    return relations


def side_of(label: Label) -> Side | None:
    """Does an event read or write?"""
    return label.side if isinstance(label, Access) else None


def action_of(label: Label) -> Action | None:
    """What an event does with an mbarrier object."""
    return label.action if isinstance(label, Mbarrier | Signal) else None


def _mask(points: list[Point]) -> int:
    return _union(1 << one.event for one in points)


def _union(masks: Iterable[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found


def _of_two_threads(
    some: Mapping[int | None, list[Point]], others: Mapping[int | None, list[Point]]
) -> tuple[Point, Point] | None:
    """A point of each that different threads have."""
    for thread, points in islice(some.items(), 2):
        for other, there in islice(others.items(), 2):
            if thread != other:
                return points[0], there[0]
    return None
