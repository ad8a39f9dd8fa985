"""An execution as it would be if the program had said something else in one place.

In: an execution, changes. Out: an execution with other labels, more events or more edges; its choices stay as they are.
Settled here: nothing about whether such an execution exists. Whether what was wrong with the first is wrong with the
second says what a change does.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from memmodel.base.classes import dataclass, replace
from memmodel.base.labels import Label
from memmodel.base.points import Point
from memmodel.base.relations import RELATION_ROWS, BaseRelation
from memmodel.base.sets import SET_ROWS
from memmodel.concrete.execution import ConcreteEvent, Execution, FixedPart, Rows, bits, rows_of


@dataclass(frozen=True, slots=True)
class Inserted:
    """A new event beside another one: at its place in program order, before or after it."""

    beside: int
    label: Label
    after: bool = False


@dataclass(frozen=True, slots=True)
class Alteration:
    """Other labels for events, new events, and edges; new events are numbered behind those that there are.

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
        if name == "mbarobs" and first < execution.frame.count:
            for other in ("mbarfr", "mbarnext"):
                chosen[other][second] &= ~(1 << first)
    return Execution(frame, (*execution.values, *[None] * more), execution.chosen_sets, chosen)


class AlteredPart(FixedPart):
    """What choices do not change: that of another execution, but for a few events."""

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
        for one in change.inserted:
            beside = original.events[one.beside].point
            number = len(self.events)
            self.places[number] = (one.beside, one.after)
            point = Point(number, one.label, beside.thread, beside.place, beside.order)
            self.events.append(ConcreteEvent(point))
        self.changed = [*{number for number, *_ in change.fields}, *range(original.count, len(self.events))]
        self.count = len(self.events)
        self._sets: dict[str, int] = {}
        self._relations: dict[str, Rows] = {}

    def set(self, name: str) -> int:
        if name not in self._sets:
            mask, row = self.original.set(name), SET_ROWS[name]
            if row.holds is not None:
                for number in self.changed:
                    event = self.events[number]
                    there = row.holds(event.label) and row.there(event.point.cell)
                    mask = mask & ~(1 << number) | there << number
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
        points = [event.point for event in self.events]
        firsts, seconds = _sides(points, row)
        changed = 0
        for one in self.changed:
            if row.key is not None and one not in firsts:
                continue  # nor was it related before: a label and a thread may change in fields, not in kind
            changed |= 1 << one
            rows[one] = 0
        others = ~changed
        for other, found in enumerate(rows):
            rows[other] = found & others
        for one in bits(changed):
            here = points[one]
            for other in seconds.get(one, ()):
                if row.holds is None or row.holds(here, points[other]):
                    rows[one] |= 1 << other
            for other in firsts.get(one, ()):
                if row.holds is None or row.holds(points[other], here):
                    rows[other] |= 1 << one

    def _settle_kinds(self, rows: Rows, row: BaseRelation) -> None:
        """The same where the relation looks at the kinds of two events, which few events make."""
        assert row.kind is not None and row.holds is not None
        changed = sum(1 << one for one in self.changed)
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
        for number, found in enumerate(rows):
            now = reached[of[number]] if number in of else 0
            rows[number] = now if changed >> number & 1 else found & ~changed | now & changed

    def _in_order(self, rows: Rows) -> None:
        """Program order of new events: after what is before the one that they stand beside, and so on."""
        new = range(self.original.count, self.count)
        for one in new:
            beside, after = self.places[one]
            before = sum(1 << other for other, row in enumerate(rows[: self.original.count]) if row >> beside & 1)
            later = rows[beside] & (1 << self.original.count) - 1
            if after:
                before |= self._together(beside)
            else:
                later |= self._together(beside)
            for other in bits(before):
                rows[other] |= 1 << one
            rows[one] |= later
        for one in new:
            for other in new:
                if one != other and self._ahead(one, other):
                    rows[one] |= 1 << other

    def _together(self, event: int) -> int:
        """The parts of the instruction of an event, which have one place in program order."""
        point = self.original.events[event].point
        return sum(
            1 << number
            for number, other in enumerate(self.original.events)
            if other.point.thread == point.thread and other.point.order is not None and other.point.order == point.order
        )

    def _ahead(self, one: int, other: int) -> bool:
        """Is one new event before another one of its thread? Of two at one place, the first that was named is."""
        here, there = self.events[one].point, self.events[other].point
        if here.thread != there.thread or here.order is None or there.order is None:
            return False
        key = (here.order, self.places[one][1], one)
        return key < (there.order, self.places[other][1], other)


def _sides(points: list[Point], row: BaseRelation) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """For each event that a relation may have: which others it may relate to it, and to which it may relate it."""
    if row.key is not None:
        groups: dict[object, list[int]] = {}
        for number, point in enumerate(points):
            key = row.key(point)
            if key is not None:
                groups.setdefault(key, []).append(number)
        alike = {number: group for group in groups.values() for number in group}
        return alike, alike
    left = [number for number, point in enumerate(points) if row.domain is None or row.domain(point)]
    right = [number for number, point in enumerate(points) if row.range is None or row.range(point)]
    return dict.fromkeys(right, left), dict.fromkeys(left, right)


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
    while True:
        longer = [row | _reached(row, rows) for row in rows]
        if longer == rows:
            return replace(execution, chosen_relations={**execution.chosen_relations, name: rows})
        rows = longer


def _reached(row: int, rows: Rows) -> int:
    found = 0
    for one in bits(row):
        found |= rows[one]
    return found
