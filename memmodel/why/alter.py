"""An execution as it would be if the program had said something else in one place.

In: an execution, changes. Out: an execution with other labels, more events or more edges; its choices stay as they are.
Settled here: nothing about whether such an execution exists. Whether what was wrong with the first is wrong with the
second says what a change does.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from memmodel.base.labels import Label, Signal
from memmodel.base.points import Point
from memmodel.base.relations import RELATION_ROWS, BaseRelation
from memmodel.base.rows import Rows, bits, closure, rows_of
from memmodel.base.sets import SET_ROWS, names_of
from memmodel.concrete.execution import ConcreteEvent, Execution, FixedPart


@dataclass(frozen=True, slots=True)
class Inserted:
    """A new event beside another one: at its place in program order, before or after it."""

    beside: int
    label: Label
    after: bool = False


@dataclass(frozen=True, slots=True)
class Alteration:
    """Other labels for events, new events, and edges; new events are numbered after the existing ones.

    `fields`: (event, field of its label, value).
    """

    fields: tuple[tuple[int, str, object], ...] = ()
    inserted: tuple[Inserted, ...] = ()
    edges: tuple[tuple[str, int, int], ...] = ()


def alter(execution: Execution, change: Alteration) -> Execution:
    """The execution with a change made."""
    frame = AlteredPart(execution.frame, change)
    more = frame.count - execution.frame.count
    chosen = {name: [*rows, *[0] * more] for name, rows in execution.chosen_relations.items()}
    for name, first, second in change.edges:
        if name in chosen:
            chosen[name][first] |= 1 << second
        if name == "mbarobs":
            chosen["mbarseen"][first] |= 1 << second
        if name == "mbarobs" and first < execution.frame.count:
            for other in ("mbarfr", "mbarnext"):
                chosen[other][second] &= ~(1 << first)
    return Execution(frame, (*execution.values, *[None] * more), execution.chosen_sets, chosen)


class AlteredPart(FixedPart):
    """The fixed part of an altered execution: as in the original, but for a few events."""

    def __init__(self, original: FixedPart, change: Alteration) -> None:
        self.lowered = original.lowered
        self.traces = original.traces
        self.cutting = original.cutting
        self.of_record = original.of_record
        self.original = original
        self.edges = change.edges
        self.events = list(original.events)
        for number, field, value in change.fields:
            event = self.events[number]
            label: Label = replace(event.label, **{field: value})  # type: ignore[arg-type]
            self.events[number] = replace(event, point=replace(event.point, label=label))
        self.places: dict[int, tuple[int, bool]] = {}
        for inserted in change.inserted:
            beside = original.events[inserted.beside].point
            number = len(self.events)
            self.places[number] = (inserted.beside, inserted.after)
            point = Point(number, inserted.label, beside.thread, beside.place, beside.order)
            self.events.append(ConcreteEvent(point))
        self.changed = [*{number for number, *_ in change.fields}, *range(original.count, len(self.events))]
        self.count = len(self.events)
        self._touched = sum(1 << event for event in self.changed)
        self._named: dict[str, list[int]] = {}
        for touched in self.changed:
            for name in names_of(self.events[touched].label):
                self._named.setdefault(name, []).append(touched)
        self._beside = _BESIDE.get(original) or _BESIDE.setdefault(original, Beside(original))
        keys: list[object] = [(event, self.events[event].label) for event in self.changed if event < original.count]
        self._reached = dict(zip(self.changed, map(self._beside.reached, [*keys, *change.inserted]), strict=True))
        self._sets: dict[str, int] = {}
        self._relations: dict[str, Rows] = {}

    def set(self, name: str) -> int:
        if name not in self._sets:
            mask, row = self.original.set(name), SET_ROWS[name]
            if row.holds is not None:
                mask &= ~self._touched
                for number in self._named.get(name, ()):
                    mask |= row.has(self.events[number].point.cell) << number
            if name == "MBDONE":
                mask |= sum({1 << wait for relation, _, wait in self.edges if relation == "mbarobs"})
            self._sets[name] = mask
        return self._sets[name]

    def relation(self, name: str) -> Rows:
        if name not in self._relations:
            rows = [*self.original.relation(name), *[0] * (self.count - self.original.count)]
            row = RELATION_ROWS[name]
            if name == "po":
                self._in_order(rows)
            elif row.key is not None or row.holds is not None:
                self._settle(rows, row)
            for relation, first, second in self.edges:
                if relation == name:
                    rows[first] |= 1 << second
            self._relations[name] = rows
        return self._relations[name]

    def _settle(self, rows: Rows, row: BaseRelation) -> None:
        """Work out the rows and columns of the events that are not what they were."""
        if row.kind is not None:
            self._settle_kinds(rows, row)
            return
        points = {event: self.events[event].point for event in self.changed}
        groups: dict[Hashable, int] = {}
        if row.key is not None:
            for event in self.changed:
                key = row.key(points[event])
                if key is None:  # nor was it related before: its thread, and what it is, stay
                    del points[event]
                else:
                    groups[key] = groups.get(key, 0) | 1 << event
        if not points:
            return
        others = (1 << self.original.count) - 1
        for event in points:
            rows[event] = 0
            others &= ~(1 << event)
        if others.bit_count() < self.original.count:
            for other, kept in enumerate(rows):
                rows[other] = kept & others
        for event, point in points.items():
            to, by = self._beside.related(row, point, self._reached[event])
            rows[event] |= to & others
            for other in bits(by & others):
                rows[other] |= 1 << event
        if row.key is None:
            groups[None] = sum(1 << event for event, point in points.items() if row.range is None or row.range(point))
        for alike in groups.values():
            for event in bits(alike) if row.key is not None else points:
                changed_point = points[event]
                if row.holds is None:
                    rows[event] |= alike
                elif row.key is not None or row.domain is None or row.domain(changed_point):
                    rows[event] |= sum(1 << other for other in bits(alike) if row.holds(changed_point, points[other]))

    def _settle_kinds(self, rows: Rows, row: BaseRelation) -> None:
        """The same where the relation looks at the kinds of two events, which few events make."""
        assert row.kind is not None and row.holds is not None
        changed = sum(1 << event for event in self.changed)
        of: dict[int, Hashable] = {}
        members: dict[Hashable, int] = {}
        example: dict[Hashable, Point] = {}
        for number, event in enumerate(self.events):
            if row.domain is None or row.domain(event.point):
                kind = of[number] = row.kind(event.point)
                members[kind] = members.get(kind, 0) | 1 << number
                example.setdefault(kind, event.point)
        reached = {
            kind: sum(mask for other, mask in members.items() if row.holds(point, example[other]))
            for kind, point in example.items()
        }
        for number, before in enumerate(rows):
            now = reached[of[number]] if number in of else 0
            rows[number] = now if changed >> number & 1 else before & ~changed | now & changed

    def _in_order(self, rows: Rows) -> None:
        """Program order of new events: after what is before the one that they stand beside, and so on."""
        new = [n for n in range(self.original.count, self.count) if not isinstance(self.events[n].label, Signal)]
        for event in new:
            known = self._reached[event]
            if "po" not in known:
                known["po"] = self._around(event, rows)
            before, later = known["po"]
            for other in bits(before):
                rows[other] |= 1 << event
            rows[event] |= later
        threads: dict[int | None, list[tuple[int, bool, int]]] = {}
        for event in new:
            point = self.events[event].point
            if point.order is not None:
                threads.setdefault(point.thread, []).append((point.order, self.places[event][1], event))
        for places in threads.values():
            later = 0
            for _, _, event in sorted(places, reverse=True):  # of two at one place, the first that was named is first
                rows[event] |= later
                later |= 1 << event

    def _around(self, event: int, rows: Rows) -> tuple[int, int]:
        """The events of the original that are before a new one, and those after it."""
        beside, after = self.places[event]
        count = self.original.count
        before = sum(1 << other for other, row in enumerate(rows[:count]) if row >> beside & 1)
        later = rows[beside] & (1 << count) - 1
        together = self._together(beside)
        return (before | together, later) if after else (before, later | together)

    def _together(self, event: int) -> int:
        """The parts of the instruction of an event, which have one place in program order."""
        point = self.original.events[event].point
        return sum(
            1 << number
            for number, other in enumerate(self.original.events)
            if other.point.thread == point.thread and other.point.order is not None and other.point.order == point.order
        )


class Beside:
    """The events of one execution that a new event would be related to, by base relation. They are remembered: the same
    new lines are tried again and again, together with others.
    """

    def __init__(self, original: FixedPart) -> None:
        self.points = [event.point for event in original.events]
        self._reached: dict[object, dict[str, tuple[int, int]]] = {}
        self._grouped: dict[str, dict[object, list[int]]] = {}
        self._sides: dict[str, tuple[list[int], list[int]]] = {}

    def reached(self, what: object) -> dict[str, tuple[int, int]]:
        """For each relation by its name, as far as it was asked for, the events to which it relates a new line or an
        event with another label, and those that it relates to it."""
        return self._reached.setdefault(what, {})

    def related(self, row: BaseRelation, point: Point, known: dict[str, tuple[int, int]]) -> tuple[int, int]:
        """The same for one relation; `known`: what was found of this point before."""
        if row.name not in known:
            before, after = self._may_be(row, point)
            known[row.name] = (
                sum(1 << other for other in after if _holds(row, point, self.points[other])),
                sum(1 << other for other in before if _holds(row, self.points[other], point)),
            )
        return known[row.name]

    def _may_be(self, row: BaseRelation, point: Point) -> tuple[list[int], list[int]]:
        """The events that a relation may relate to a point, and those to which it may relate it."""
        if row.key is not None:
            if row.name not in self._grouped:
                groups: dict[object, list[int]] = {}
                for number, candidate in enumerate(self.points):
                    groups.setdefault(row.key(candidate), []).append(number)
                self._grouped[row.name] = groups
            alike = self._grouped[row.name].get(row.key(point), [])
            return alike, alike
        if row.name not in self._sides:
            self._sides[row.name] = (
                [n for n, candidate in enumerate(self.points) if row.domain is None or row.domain(candidate)],
                [n for n, candidate in enumerate(self.points) if row.range is None or row.range(candidate)],
            )
        left, right = self._sides[row.name]
        before = left if row.range is None or row.range(point) else []
        return before, right if row.domain is None or row.domain(point) else []


_BESIDE: WeakKeyDictionary[FixedPart, Beside] = WeakKeyDictionary()


def _holds(row: BaseRelation, first: Point, second: Point) -> bool:
    return row.holds is None or row.holds(first, second)


def combined(changes: Iterable[Alteration], count: int) -> Alteration:
    """Several changes as one. New events of each are numbered from `count`, and again when they are put together."""
    fields: list[tuple[int, str, object]] = []
    inserted: list[Inserted] = []
    edges: list[tuple[str, int, int]] = []
    for change in changes:
        fields += change.fields
        by = len(inserted)
        inserted += change.inserted
        edges += [(name, a + by * (a >= count), b + by * (b >= count)) for name, a, b in change.edges]
    return Alteration(tuple(fields), tuple(inserted), tuple(edges))


def with_order(execution: Execution, pairs: Sequence[tuple[int, int]], name: str) -> Execution:
    """The execution with a strict partial order (co, sync_fence) extended by pairs, closed."""
    count = execution.frame.count
    rows = [a | b for a, b in zip(execution.relation(name), rows_of(pairs, count), strict=True)]
    return replace(execution, chosen_relations={**execution.chosen_relations, name: closure(rows)})
