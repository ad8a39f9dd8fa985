"""The events of a draft in all worlds: which exist, and what each base name means.

In: Draft, Vocabulary, WorldGrid. Out: `Frame`s, one for each way in which the threads can run (what tests return), with
its candidate executions. Forms of one instruction execute the same steps, so runs, rf, co, barriers and objects are the
same in all worlds; labels and places differ, and the tables of `base` say what that means.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from memmodel import api
from memmodel.answer import Budget
from memmodel.base.labels import Access, Fence, InitialWrite, Label, Side, scope_of
from memmodel.base.points import Point
from memmodel.base.relations import RELATION_ROWS, BaseRelation
from memmodel.base.rows import bits
from memmodel.base.sets import SET_ROWS
from memmodel.concrete.assembly import Assembly
from memmodel.concrete.barriers import meetings, reductions_agree
from memmodel.concrete.execution import FixedPart
from memmodel.concrete.mbarriers import observations
from memmodel.concrete.meter import Meter
from memmodel.concrete.records import Trace
from memmodel.enumeration.coherence import CellWrites, Coherence
from memmodel.enumeration.problem import prepare
from memmodel.enumeration.question import AskedKey
from memmodel.isa.rows.ingredients import Form
from memmodel.litmus.syntax import Number, RegValue, terms_of
from memmodel.memory.bytes import Cell
from memmodel.program.lowered import LoweredTest
from memmodel.ptx.vocabulary import Place, Sem
from memmodel.referee.finals import Registers
from memmodel.search.judging.slices import Members, SlicedRows
from memmodel.search.programs import Ready
from memmodel.search.text import Draft, Seats, Spot, asked, before, lines_of, places_of, write
from memmodel.search.vocabulary import Vocabulary

Key = tuple[int, ...]
"""An outcome: the values of the registers and places that `asked` names."""

_BY_SCOPE = ("sr", "sri")
_BY_PLACE = ("scta", "scluster", "sgpu", "swarpgroup", "spcta")
_LABELS: dict[tuple[object, ...], tuple[Label, ...]] = {}
"""The labels that a form gives its records, by the instruction, which of its places are in other CTAs, and its text."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """A draft with some choice of forms, read."""

    lowered: LoweredTest
    spots: tuple[tuple[Spot, ...], ...]
    """For each thread, the spot of each instruction."""


def read(draft: Draft, vocabulary: Vocabulary, choice: Sequence[int], seats: Seats) -> Lowered:
    """A program as a lowered test whose condition names all that an outcome consists of."""
    names = asked(draft, vocabulary)
    condition = "exists (" + (" /\\ ".join(f"{name} == 0" for name in names) or "true") + ")"
    lowered = api.lowered(write(draft, vocabulary, choice, seats, condition))
    spots = tuple(tuple(spot for _, spot in body) for body in lines_of(draft, vocabulary, choice))
    return Lowered(lowered, spots)


def ways(draft: Draft, spot: Spot, vocabulary: Vocabulary) -> tuple[object, ...]:
    """What decides the labels of an instruction besides its form: its name, which of its places are in other CTAs."""
    if spot.use is None:
        return ()
    ingredient = vocabulary.accesses[spot.use[0]]
    thread = next(number for number, body in enumerate(draft.threads) if spot in body)
    return ingredient.name, *(draft.is_far(thread, where) for where in zip(ingredient.places, spot.use[1], strict=True))


class Frame:
    """The events of one way in which the threads can run.

    `traces`: the combinations of runs with these events. `exists`: the worlds in which each event is there; `labels`:
    the labels that it has, each with its worlds.
    """

    def __init__(self, family: Readied, traces: list[tuple[Trace, ...]]) -> None:
        self.family = family
        self.traces = traces
        self.fixed = FixedPart(family.read.lowered, traces[0], family.asked.extents)
        self.assembly = Assembly(self.fixed)
        self.count = self.fixed.count
        self._spots = [self._spot(number) for number in range(self.count)]
        full = family.grid.full
        self.exists: Members = [self._existing(spot, full) for spot in self._spots]
        self.labels = [self._variants(number) for number in range(self.count)]
        self.reads, self.writes, self.fences = self._kinds()
        self._known: dict[str, object] = {}

    def _spot(self, number: int) -> Spot | None:
        record = self.fixed.record_of(self.fixed.events[number])
        if record is None:
            return None
        steps = self.fixed.lowered.programs[record.name.thread].steps
        if record.name.step >= len(steps):
            return None
        return self.family.read.spots[record.name.thread][steps[record.name.step].index]

    def _existing(self, spot: Spot | None, full: int) -> int:
        if spot is None or spot.use is not None:
            return full
        return full & ~self.family.grid.worlds_with(spot.dimension, 0)

    def _variants(self, number: int) -> list[tuple[int, Label]]:
        """The labels of an event, each with its worlds."""
        event, spot = self.fixed.events[number], self._spots[number]
        if spot is None or event.record is None or len(spot.forms) == 1:
            return [(self.exists[number], event.label)]
        thread, record = event.record
        first = next(
            at for at in range(record + 1) if self._spot_of_record(thread, at) is spot
        )  # records of one instruction are neighbours
        by_label: dict[Label, int] = {}
        for at, form in enumerate(spot.forms):
            if form is not None:
                label = self.family.labels(spot, form)[record - first]
                by_label[label] = by_label.get(label, 0) | self.family.grid.worlds_with(spot.dimension, at)
        return [(worlds, label) for label, worlds in by_label.items()]

    def _spot_of_record(self, thread: int, record: int) -> Spot | None:
        return self._spots[self.fixed.of_record[thread, record][0]]

    def _kinds(self) -> tuple[list[int], dict[Cell, list[int]], list[int]]:
        reads, fences = [], []
        writes: dict[Cell, list[int]] = {}
        for number, event in enumerate(self.fixed.events):
            label, cell = event.label, event.point.cell
            if isinstance(label, Access) and label.side is Side.READ:
                reads.append(number)
            elif isinstance(label, Access | InitialWrite) and cell is not None:
                writes.setdefault(cell, []).append(number)
            elif any(isinstance(variant, Fence) and variant.sem is Sem.SC for _, variant in self.labels[number]):
                fences.append(number)
        return reads, writes, fences

    # ---- base names --------------------------------------------------------------------------------------------

    def base(self, name: str) -> object:
        """What a base name means, as far as neither barriers, objects, rf, co nor fence order decide it."""
        if name not in self._known:
            self._known[name] = self._set(name) if name in SET_ROWS else self._relation(name)
        return self._known[name]

    def _set(self, name: str) -> Members:
        row = SET_ROWS[name]
        if row.holds is None:
            mask = self.fixed.set(name)
            return [every if mask >> number & 1 else 0 for number, every in enumerate(self.exists)]
        members = []
        for number, variants in enumerate(self.labels):
            possible = row.has(self.fixed.events[number].point.cell)
            members.append(sum(worlds for worlds, label in variants if row.holds(label)) if possible else 0)
        return members

    def _relation(self, name: str) -> SlicedRows:
        row = RELATION_ROWS[name]
        if name in _BY_SCOPE:
            return self._pairs(row, [_scoped(variants) for variants in self.labels])
        if name in _BY_PLACE:
            first = [variants[0][1] for variants in self.labels]
            return self._pairs(row, [[(every, label)] for every, label in zip(self.exists, first, strict=True)])
        if name == "covers":
            return self._pairs(row, self.labels)
        relation = self.plain(self.fixed.relation(name))
        if name == "data":
            self._dependent(relation)
        return relation

    def plain(self, rows: Sequence[int]) -> SlicedRows:
        """A relation that holds in all worlds where its events are."""
        relation: SlicedRows = []
        for a, row in enumerate(rows):
            relation.append({b: both for b in bits(row) if (both := self.exists[a] & self.exists[b])})
        return relation

    def _pairs(self, row: BaseRelation, variants: Sequence[Sequence[tuple[int, Label]]]) -> SlicedRows:
        """A relation of the table, asked of every two labels and in every placement."""
        relation: SlicedRows = [{} for _ in range(self.count)]
        for worlds, places in self.family.placements:
            lefts, rights = [], []
            for number, mine in enumerate(variants):
                point = self.fixed.events[number].point
                place = point.place if point.thread is None else places[point.thread]
                points = [(w & worlds, _at(point, place, label)) for w, label in mine if w & worlds]
                keyed = [
                    (w, label_point, row.key(label_point) if row.key is not None else 0) for w, label_point in points
                ]
                lefts.append([entry for entry in keyed if row.domain is None or row.domain(entry[1])])
                rights.append([entry for entry in keyed if row.range is None or row.range(entry[1])])
            for a, left in enumerate(lefts):
                for b, right in enumerate(rights) if left else ():
                    both = _holding(row, left, right)
                    if both:
                        relation[a][b] = relation[a].get(b, 0) | both
        return relation

    def _dependent(self, relation: SlicedRows) -> None:
        """Forms of stores whose value depends on the load before."""
        for thread, body in enumerate(self.family.draft.threads):
            for at, spot in enumerate(body):
                source = before(body, at, self.family.vocabulary)
                forms = [n for n, form in enumerate(spot.forms) if form is not None and form.data]
                if source is None or not forms:
                    continue
                worlds = sum(self.family.grid.worlds_with(spot.dimension, form_number) for form_number in forms)
                of_load = (event for event in self.reads if self._spots[event] is body[source])
                loads = [event for event in of_load if self.fixed.events[event].point.thread == thread]
                stores = [
                    event for event in range(self.count) if self._spots[event] is spot and event not in self.reads
                ]
                for a, b in product(loads, stores):
                    relation[a][b] = relation[a].get(b, 0) | worlds

    # ---- choices -----------------------------------------------------------------------------------------------

    def variants(self, meter: Meter) -> Iterator[dict[str, object]]:
        """What barriers and objects decide, in every way: the meaning of their names."""
        assembly = self.assembly
        for meeting in meetings(assembly.barriers, assembly.halves, assembly.waiting):
            if not reductions_agree(assembly.contributions, assembly.barriers, meeting):
                continue
            for observed in observations(assembly.objects, meter):
                names: dict[str, object] = {
                    name: self.plain(rows) for name, rows in assembly.relations(meeting, observed).items()
                }
                for name, mask in assembly.sets(observed).items():
                    names[name] = [every if mask >> at & 1 else 0 for at, every in enumerate(self.exists)]
                yield names

    def coherence(self) -> Coherence:
        """The choices of co."""
        writes = []
        for cell, (initial, *others) in self.writes.items():
            operations: dict[int, int] = {}
            for event in others:
                operation = self.fixed.events[event].point.operation
                assert operation is not None
                operations[operation] = event
            writes.append(CellWrites(cell, initial, operations))
        return Coherence(writes, self.count)


def _scoped(variants: Sequence[tuple[int, Label]]) -> list[tuple[int, Label]]:
    """One label of each scope, with the worlds of all labels of this scope."""
    by_scope: dict[object, tuple[int, Label]] = {}
    for worlds, label in variants:
        scope = scope_of(label)
        if scope is not None:
            known = by_scope.get(scope)
            by_scope[scope] = (worlds | (known[0] if known else 0), label)
    return list(by_scope.values())


def _at(point: Point, place: Place | None, label: Label) -> Point:
    """A point with another place and label."""
    if point.label is label and point.place == place:
        return point
    return replace(point, place=place, label=label)


_Keyed = Sequence[tuple[int, Point, Hashable]]
"""The worlds of a point, and what it has to agree in."""


def _holding(row: BaseRelation, lefts: _Keyed, rights: _Keyed) -> int:
    """The worlds in which a relation holds between two events."""
    both = 0
    for mine, left, key in lefts:
        for other, right, its in rights:
            if key is not None and key == its and (row.holds is None or row.holds(left, right)):
                both |= mine & other
    return both


class AskedParts:
    """The two parts of an outcome, registers and then memory."""

    def __init__(self, lowered: LoweredTest) -> None:
        terms = [term for term in terms_of(lowered.test.condition) if not isinstance(term, Number)]
        self._registers = AskedKey(lowered, [term for term in terms if isinstance(term, RegValue)])
        self._places = AskedKey(lowered, [term for term in terms if not isinstance(term, RegValue)])
        self.extents = self._places.extents
        self._known: dict[tuple[tuple[Cell, int | None], ...], Key] = {}

    def registers(self, values: Registers) -> Key:
        """What final registers contribute."""
        key = self._registers.key(values, {})
        assert isinstance(key, tuple)
        return key

    def memory(self, last: tuple[tuple[Cell, int | None], ...]) -> Key:
        """What final values of cells contribute."""
        if last not in self._known:
            key = self._places.key((), {cell: value for cell, value in last if value is not None})
            assert isinstance(key, tuple)
            self._known[last] = key
        return self._known[last]


class Readied:
    """A draft read once, with its runs."""

    def __init__(self, ready: Ready) -> None:
        self.draft, self.vocabulary, self.grid = ready.draft, ready.vocabulary, ready.grid
        base = [0] * len(self.grid.sizes)
        for spot in ready.spots:
            base[spot.dimension] = int(spot.use is None)
        self._base, self._seats = base, ready.seatings[0]
        self.read = read(self.draft, self.vocabulary, base, self._seats)
        last = len(self.grid.sizes) - 1
        self.placements = [
            (self.grid.worlds_with(last, number), places_of(seats, self.vocabulary))
            for number, seats in enumerate(ready.seatings)
        ]
        self.asked = AskedParts(self.read.lowered)
        self.meter = Meter(Budget())

    def labels(self, spot: Spot, form: Form) -> tuple[Label, ...]:
        """The labels that a form gives the records of its instruction."""
        key = (*ways(self.draft, spot, self.vocabulary), form.text)
        if key not in _LABELS:
            choice = list(self._base)
            choice[spot.dimension] = spot.forms.index(form)
            other = read(self.draft, self.vocabulary, choice, self._seats)
            problem = prepare(other.lowered, 1, self.meter, waits=False, grounded=True)
            for thread, body in enumerate(other.spots):
                if spot in body:
                    steps = other.lowered.programs[thread].steps
                    _LABELS[key] = tuple(
                        record.label
                        for record in problem.complete[thread][0].records
                        if record.name.step < len(steps) and body[steps[record.name.step].index] == spot
                    )
        return _LABELS[key]

    def frames(self) -> Iterator[Frame]:
        """The ways in which the threads can run to their ends."""
        problem = prepare(self.read.lowered, 1, self.meter, waits=False, asked=self.asked.extents, grounded=True)
        groups: dict[object, list[tuple[Trace, ...]]] = {}
        for traces in product(*problem.complete):
            key = tuple((trace.records, trace.ending, trace.contributions) for trace in traces)
            groups.setdefault(key, []).append(traces)
        for group in groups.values():
            yield Frame(self, group)
