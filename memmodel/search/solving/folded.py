"""The events of a superposed program, one for all that a slot may do: what base names mean of these.

In: Superposed. Out: `Folded`: for each base name a row or a matrix of formulas. The events of a slot exclude one
another but for those of one instruction, so each slot has a few lanes, and each event of each option is in one of them.
A formula says which option and form a slot has; so a program of eight slots has about thirty events, whatever the
vocabulary. Every operator of cat gives the same for lanes as for the events of the program that is chosen: at most one
event of a lane is executed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace

from memmodel.base.labels import Access, Label
from memmodel.base.logic import FALSE, TRUE, Logic
from memmodel.base.points import Point
from memmodel.base.relations import DECIDED, RELATION_ROWS, BaseRelation
from memmodel.base.rows import bits
from memmodel.base.sets import SET_ROWS
from memmodel.cat.evaluate.graph import Node
from memmodel.encode.algebra import FormulaAlgebra, FormulaValue, kept
from memmodel.encode.base import BaseFormulas
from memmodel.encode.relations import Rel, Row
from memmodel.events.graph import Event, EventGraph, MemoryEvent, ObjectEvent
from memmodel.search.solving.joint import with_joint_operations
from memmodel.search.solving.superposed import Superposed, register_of

NOWHERE = -1
"""In place of the slot of an event that no slot has, such as an initial write."""

OF_EVENTS = ("id", "si", "so", "rmw", "iss")
"""Relations between parts of one instruction, by their numbers."""


@dataclass(frozen=True, slots=True)
class LabelledEvent:
    """An event with one of its labels, and the formula under which it is executed and has that label."""

    lane: int
    point: Point
    when: int


class LaneAlgebra(FormulaAlgebra):
    """Every relation is between events that are executed, so that it says nothing new that an event of a pair is."""

    def __init__(self, logic: Logic, runs: list[int], read: Callable[[Node], FormulaValue], deepest: int) -> None:
        super().__init__(logic, runs, read, deepest)
        self._runs = runs

    def chained(self, first: int, middle: int, second: int) -> int:
        runs = self._runs[middle]
        return second if first == runs else first if second == runs else self.logic.both(first, second)


class Folded:
    """Base names over lanes. `slot_of`: the slot of each lane; `forms`: for a slot and an access of the vocabulary, the
    variables of its forms."""

    def __init__(self, program: Superposed) -> None:
        self.program = program
        self.graph: EventGraph = program.graph()
        self.logic = self.graph.logic
        self.owners = program.owners(self.graph)
        self.base = BaseFormulas(self.graph, with_joint_operations(self.graph, self.owners))
        for cell in self.base.communication.writes:
            self.base.communication.final_writes(cell)
        self.base.join_cells()
        self.forms: dict[tuple[int, int], list[int]] = {}
        self._choose_forms()
        self.lane_of = self._lanes()
        self.count = 1 + max(self.lane_of, default=-1)
        self.slot_of = {
            lane: NOWHERE if owner is None else owner[0] for lane, owner in zip(self.lane_of, self.owners, strict=True)
        }
        self.runs = self._fold_row({event.uid: self.base.runs[event.uid] for event in self.graph.events})
        self.variants = list(self._variants())
        self._known: dict[tuple[str, bool], FormulaValue] = {}

    def holds(self, slot: int, option: int) -> int:
        """The variable that says that a slot holds an option."""
        thread = self.program.slots[slot].thread
        return self.graph.chosen[thread, register_of(slot, option)]

    def form(self, slot: int, option: int, number: int) -> int:
        """The formula that says that a slot holds an option in one of its forms."""
        ingredient_option = self.program.options[slot][option]
        if len(ingredient_option.forms) == 1:
            return self.holds(slot, option)
        assert ingredient_option.access is not None
        return self.logic.both(self.holds(slot, option), self.forms[slot, ingredient_option.access][number])

    def _choose_forms(self) -> None:
        """One form for the instruction of a slot, wherever its places are."""
        logic = self.logic
        for slot, options in enumerate(self.program.options):
            users: dict[int, list[int]] = {}
            for number, option in enumerate(options):
                if option.access is not None and len(option.forms) > 1:
                    users.setdefault(option.access, []).append(number)
            for access, numbers in users.items():
                count = len(options[numbers[0]].forms)
                variables = [logic.var(f"form({slot},{access},{form})") for form in range(count)]
                logic.exactly_one(variables, logic.disj(self.holds(slot, number) for number in numbers))
                self.forms[slot, access] = variables

    # ---- lanes -------------------------------------------------------------------------------------------------------

    def _lanes(self) -> list[int]:
        """The lane of each event: of its slot, for events of its kind, the first in which its option has none that may
        be executed beside it."""
        numbers: dict[object, int] = {}
        used: dict[tuple[tuple[int, int], str], list[list[int]]] = {}
        lanes = []
        for event, owner in zip(self.graph.events, self.owners, strict=True):
            key: object = ("initial", event.uid)
            if owner is not None:
                kind, runs = _kind(event), self.base.runs[event.uid]
                key = (owner[0], kind, self._first_free(used.setdefault((owner, kind), []), runs))
            lanes.append(numbers.setdefault(key, len(numbers)))
        return lanes

    def _first_free(self, used: list[list[int]], runs: int) -> int:
        """The number of the first lane whose events exclude one that is executed under a formula, which joins them."""
        for number, lane in enumerate(used):
            if all(self.logic.refuted(self.logic.both(runs, other)) for other in lane):
                lane.append(runs)
                return number
        used.append([runs])
        return len(used) - 1

    def _fold_row(self, row: Row) -> Row:
        cells: dict[int, list[int]] = {}
        for uid, formula in row.items():
            cells.setdefault(self.lane_of[uid], []).append(formula)
        return kept({lane: self.logic.disj(formulas) for lane, formulas in cells.items()})

    def _fold(self, rel: Rel) -> Rel:
        cells: list[dict[int, list[int]]] = [{} for _ in range(self.count)]
        for a, row in enumerate(rel):
            for b, formula in row.items():
                cells[self.lane_of[a]].setdefault(self.lane_of[b], []).append(formula)
        return [kept({b: self.logic.disj(formulas) for b, formulas in row.items()}) for row in cells]

    def _variants(self) -> Iterator[LabelledEvent]:
        """Every event with every label that it may have, each label once."""
        logic, labels = self.logic, self.program.labels(self.graph)
        order: dict[tuple[int, int], dict[int, int]] = {}
        end = len(self.program.slots) * 1000  # of a thread
        for event, owner, mine in zip(self.graph.events, self.owners, labels, strict=True):
            point, runs = event.point, self.base.runs[event.uid]
            if owner is None and point.order is not None:
                point = replace(point, order=end)
            elif owner is not None and point.order is not None:
                ranks = order.setdefault(owner, {})
                rank = ranks.setdefault(point.order, len(ranks))
                point = replace(point, order=owner[0] * 1000 + rank)
            by_label: dict[Label, list[int]] = {}
            for number, label in enumerate(mine):
                form = TRUE if owner is None or len(mine) == 1 else self.form(*owner, number)
                by_label.setdefault(label, []).append(form)
            for label, formulas in by_label.items():
                when = runs if len(by_label) == 1 else logic.both(runs, logic.disj(formulas))
                if when != FALSE:
                    yield LabelledEvent(self.lane_of[event.uid], replace(point, label=label), when)

    # ---- base names --------------------------------------------------------------------------------------------------

    def read(self, node: Node) -> FormulaValue:
        """What a base name means."""
        key = node.name, node.is_set
        if key not in self._known:
            self._known[key] = self._set(node.name) if node.is_set else self._relation(node.name)
        return self._known[key]

    def _set(self, name: str) -> Row:
        row = SET_ROWS[name]
        if row.holds is None:
            return self._fold_row(self.base.set(name))
        cells: dict[int, list[int]] = {}
        for it in self.variants:
            if row.holds(it.point.label) and row.has(it.point.cell):
                cells.setdefault(it.lane, []).append(it.when)
        return kept({lane: self.logic.disj(formulas) for lane, formulas in cells.items()})

    def _relation(self, name: str) -> Rel:
        if name in DECIDED:
            return self._fold(self.base.relation(name))
        row = RELATION_ROWS[name]
        if name in OF_EVENTS:
            runs, both = self.base.runs, self.logic.both
            rows = row.rows([event.point for event in self.graph.events])
            return self._fold([kept({b: both(runs[a], runs[b]) for b in bits(of)}) for a, of in enumerate(rows)])
        return self._by_what_it_looks_at(row)

    def _by_what_it_looks_at(self, row: BaseRelation) -> Rel:
        """A relation that labels and places decide: it is the same for all events of which it looks at the same."""
        logic = self.logic
        numbers: dict[Hashable, int] = {}
        points: list[tuple[Point, Point]] = []
        left: list[dict[int, list[int]]] = [{} for _ in range(self.count)]
        right: list[dict[int, list[int]]] = [{} for _ in range(self.count)]
        for variant in self.variants:
            key = None if row.key is None else row.key(variant.point)
            if row.key is not None and key is None:
                continue
            looked = _looked_at(row, variant.point, key)
            number = numbers.setdefault(looked, len(numbers))
            if number == len(points):
                points.append((replace(variant.point, event=0), replace(variant.point, event=1)))
            for side, admits in ((left, row.domain), (right, row.range)):
                if admits is None or admits(variant.point):
                    side[variant.lane].setdefault(number, []).append(variant.when)
        related = [[False] * len(points) for _ in points]
        ends = [sorted({number for lane in side for number in lane}) for side in (left, right)]
        for number in ends[0]:
            for other in ends[1]:
                related[number][other] = _related(row, points[number][0], points[other][1])
        sides = [
            [[(number, logic.disj(whens)) for number, whens in lane.items()] for lane in side] for side in (left, right)
        ]
        rel: Rel = []
        for a, first in enumerate(sides[0]):
            cells: Row = {}
            for b, second in enumerate(sides[1]):
                if a == b:  # an event with itself: two events of a lane are never executed together
                    formulas = [when for number, when in first if _related(row, points[number][0], points[number][0])]
                else:
                    formulas = [
                        logic.both(when, other_when)
                        for number, when in first
                        for other, other_when in second
                        if related[number][other]
                    ]
                if formulas:
                    cells[b] = logic.disj(formulas)
            rel.append(kept(cells))
        return rel


def _kind(event: Event) -> str:
    """Events of one kind share a lane, so that little stands in it that differs."""
    if isinstance(event, MemoryEvent):
        return event.label.side.value if isinstance(event.label, Access) else ""
    return "object" if isinstance(event, ObjectEvent) else "other"


def _looked_at(row: BaseRelation, point: Point, key: Hashable) -> Hashable:
    """All of an event that decides which others it is related to."""
    if row.kind is not None:
        return row.kind(point)
    if row.holds is None:
        return key
    if row.name == "po":
        return point.thread, point.order
    if row.name == "ext":
        return point.thread
    if row.name == "whole":
        return key, point.scalar
    return replace(point, event=0, instruction=None, operation=None, issue=None)


def _related(row: BaseRelation, point: Point, other: Point) -> bool:
    """True if two events are related."""
    if row.key is not None and row.key(point) != row.key(other):
        return False
    return row.holds is None or row.holds(point, other)
