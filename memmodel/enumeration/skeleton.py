"""One choice of paths through all threads, values left out: the events, and all that they decide about the model.

In: Problem, Plan, the events of one trace per thread. Out: Skeleton: its static part evaluated once, however many
values, rf, sync_fence and co are tried on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from memmodel.enumeration.barriers import BarrierEvent, Company, arrivals, meetings
from memmodel.enumeration.coherence import Coherence
from memmodel.enumeration.execution import (
    INITIAL_TAGS,
    Covered,
    ExecutionEvent,
    Rows,
    base_sets,
    bits,
    rows_of,
    static_relations,
)
from memmodel.enumeration.matrix import Shape
from memmodel.enumeration.mbarriers import Object, Told, Use, tellings
from memmodel.enumeration.meter import CANDIDATE, Meter
from memmodel.enumeration.orders import least_orders, partial_orders
from memmodel.enumeration.plan import CHOSEN, Plan, Test, Values
from memmodel.enumeration.problem import Problem
from memmodel.enumeration.traces import Half, Resource, Stand, ThreadEvent
from memmodel.errors import TooLarge
from memmodel.isa.memory import Location, cta_places
from memmodel.isa.ops import Cover

_DONE = frozenset({"MBDONE"})

Paths = Sequence[tuple[ThreadEvent, ...]]

MAX_FENCES = 10
"""More fence.sc in one execution have more orders than anyone can try."""

_FEW_VARIANTS = 16

_FEW_FENCES = 3
"""Orders of so many fences are kept for the next candidate."""


def build_events(problem: Problem, paths: Paths) -> tuple[ExecutionEvent, ...]:
    """Initial writes, then the events of each thread in program order; without values."""
    events = [
        ExecutionEvent(
            INITIAL_TAGS,
            location=where,
            vaddr=(where.name, where.index),
            address=problem.memory.address_of(where),
        )
        for where in problem.locations
    ]
    seats = {place.cta_id: place for place in cta_places(problem.test)}
    for number, (runner, path) in enumerate(zip(problem.runners, paths, strict=True)):
        for order, event in enumerate(path):
            made, operation = event.made, event.operation
            signals = operation is not None and event.part is not None
            events.append(
                ExecutionEvent(
                    made.tags | _DONE if operation is not None and operation.done else made.tags,
                    number,
                    order,
                    runner.thread.place,
                    made.scope,
                    event.cell.location if event.cell else None,
                    event.cell.vaddr if event.cell else None,
                    None,
                    tuple(bits(event.addr)),
                    tuple(bits(event.data)),
                    tuple(bits(event.ctrl)),
                    () if event.rmw is None else (event.rmw,),
                    _covered(made.covers, event.range_at),
                    problem.memory.address_of(event.cell.location) if event.cell else None,
                    runner.program.steps[event.step].instruction,
                    event.step,
                    event.part,
                    () if event.source is None else (event.source,),
                    tuple(bits(event.completes)),
                    operation,
                    seats.get(operation.object.owner or ()) if operation is not None and signals else None,
                    made.unit,
                    made.form,
                )
            )
    return tuple(events)


def _covered(cover: Cover | None, begin: int | None) -> Covered | None:
    if cover is None:
        return None
    return Covered(cover.what) if begin is None else Covered(cover.what, begin, begin + cover.size)


def barrier_events(problem: Problem, paths: Paths) -> list[BarrierEvent]:
    """The barrier halves of an execution, in order of event number."""
    halves = []
    number = len(problem.locations)
    for thread, path in enumerate(paths):
        for event in path:
            if event.half is not None:
                halves.append(BarrierEvent(number, thread, event.half))
            number += 1
    return halves


def mbarrier_objects(
    problem: Problem, events: Sequence[ExecutionEvent], standing: frozenset[int] = frozenset()
) -> list[Object]:
    """The mbarrier objects that an execution uses; tests that are `standing` see the last state."""
    found: dict[Location, list[Use]] = {}
    for number, event in enumerate(events):
        if event.operation is not None:
            assert event.thread is not None and event.order is not None
            source = event.source[0] if event.source else None
            use = Use(number, event.thread, event.order, source, event.operation)
            found.setdefault(event.operation.object, []).append(use)
    counts = problem.memory.mbarrier_count
    return [Object(where, counts(where), uses, standing) for where, uses in found.items()]


def with_bad(events: tuple[ExecutionEvent, ...], bad: int) -> tuple[ExecutionEvent, ...]:
    """The events, those of the mask being in MBBAD."""
    return tuple(
        replace(event, tags=event.tags | {"MBBAD"}) if bad >> number & 1 else event
        for number, event in enumerate(events)
    )


@dataclass(frozen=True, slots=True)
class Variant:
    """A skeleton with its barriers and mbarrier objects decided.

    `chosen`: the relations that this decides. `bad`: the set MBBAD. `values`: the plan's slots after the first stage.
    """

    chosen: dict[str, Rows]
    bad: int
    values: Values
    failed: frozenset[str]
    raised: tuple[Test, ...]


class Skeleton:
    """Events of one combination of paths. `reads`, `writes` (by location, initial first), `fences`: their numbers.

    `stands`: where each thread waits for ever; `exited`: the threads that ended by ret or exit; `resting`: the events
    of the rounds of spin loops in which threads wait.
    """

    def __init__(
        self,
        problem: Problem,
        plan: Plan,
        paths: Paths,
        stands: Sequence[Stand | None] = (),
        exited: Sequence[int] = (),
    ) -> None:
        self.events = build_events(problem, paths)
        self.shape = Shape(len(self.events))
        self.relations = static_relations(self.events)
        self.sets = base_sets(self.events)
        self.first = []
        number = len(problem.locations)
        for path in paths:
            self.first.append(number)
            number += len(path)
        self._plan = plan
        writes, reads = self.sets.get("W", 0), self.sets.get("R", 0)
        self.reads = bits(reads)
        self.writes: dict[Location, list[int]] = {}
        for event in bits(writes):
            location = self.events[event].location
            assert location is not None
            self.writes.setdefault(location, []).append(event)
        self.fences = bits(self.sets.get("F", 0) & self.sets.get("SC", 0))
        self._stands = stands
        self.resting = frozenset(
            event
            for thread, stand in enumerate(stands)
            if stand is not None and stand.first is not None
            for event in range(self.first[thread] + stand.first, self.first[thread] + len(paths[thread]))
        )
        self._problem = problem
        self._exited = exited
        self._halves = barrier_events(problem, paths)
        self._kept: tuple[Variant, ...] | None = None

    def variants(self, meter: Meter) -> Iterator[Variant]:
        """Every way in which barriers and mbarrier objects can come out. A few are kept for the next values."""
        if self._kept is not None:
            yield from self._kept
            return
        made: list[Variant] = []
        for variant in self._variants(meter):
            if len(made) <= _FEW_VARIANTS:
                made.append(variant)
            yield variant
        if len(made) <= _FEW_VARIANTS:
            self._kept = tuple(made)

    def _variants(self, meter: Meter) -> Iterator[Variant]:
        for barriers, told in self._decided(meter):
            meter.spend(CANDIDATE)
            pairs = (barriers, told.mbar, told.mbarobs, told.mbarfr)
            names = ("syncbar", "mbar", "mbarobs", "mbarfr")
            chosen = {name: rows_of(its, len(self.events)) for name, its in zip(names, pairs, strict=True)}
            values = [0] * self._plan.size
            for name, slot in self._plan.slots.items():
                if self._plan.is_set[name]:
                    values[slot] = told.bad if name == "MBBAD" else self.sets.get(name, 0)
                elif name not in CHOSEN:
                    values[slot] = self.shape.pack(chosen[name] if name in chosen else self.relations[name])
            stage = self._plan.stages[0]
            failed = frozenset(test.check.name for test in stage.axioms if not test.holds(values, self.shape))
            raised = tuple(test for test in stage.flags if test.holds(values, self.shape))
            for run in stage.prepare:
                run(values, self.shape)
            yield Variant(chosen, told.bad, values, failed, raised)

    def _decided(self, meter: Meter) -> Iterator[tuple[list[tuple[int, int]], Told]]:
        """syncbar, and what the mbarrier objects' orders say."""
        objects = self.objects()
        for _, pairs in meetings(self._halves, self._sizes(), self._standing()):
            for told in tellings(objects, meter):
                yield pairs, told

    def objects(self) -> list[Object]:
        """The mbarrier objects of these paths."""
        return mbarrier_objects(self._problem, self.events, self.resting)

    def arrivals(self, thread: int, half: Half) -> tuple[int, int]:
        """How many have arrived, and have to, where a thread stands in front of a barrier."""
        return arrivals(self._halves, self._sizes(), thread, half)

    def rests(self, rf: int, co: int) -> bool:
        """Do the spin loops in which threads wait for ever read writes that nothing follows in co?"""
        count, row = self.shape.count, self.shape.row
        for read in self.resting.intersection(self.reads):
            where = self.events[read].location
            assert where is not None
            for write in self.writes[where]:
                if rf >> write * count + read & 1 and co >> write * count & row:
                    return False
        return True

    def _standing(self) -> list[tuple[int, Half]]:
        stands = enumerate(self._stands)
        return [(thread, one.half) for thread, one in stands if one is not None and one.half is not None]

    def _sizes(self) -> dict[Resource, Company]:
        halves = [one.half for one in self._halves] + [half for _, half in self._standing()]
        return {half.resource: self._problem.company(half.resource, self._exited) for half in halves}

    # ---- choices -------------------------------------------------------------------------------------------

    @cached_property
    def coherence(self) -> Coherence:
        """The choices of co."""
        return Coherence(self.writes, len(self.events), self._plan.closed_co)

    def fence_orders(self) -> Iterable[int]:
        """Every sync_fence, as a matrix; only the least ones where the model cannot gain from more."""
        if len(self.fences) > MAX_FENCES:
            raise TooLarge(f"{len(self.fences)} fence.sc, more than {MAX_FENCES}: too many orders to try")
        return self._orders_of_few_fences if len(self.fences) <= _FEW_FENCES else self._orders_of_fences()

    @cached_property
    def _orders_of_few_fences(self) -> tuple[int, ...]:
        return tuple(self._orders_of_fences())

    def _orders_of_fences(self) -> Iterator[int]:
        related = self.relations["sr"]
        comparable = [
            sum(1 << b for b, right in enumerate(self.fences) if a != b and related[left] >> right & 1)
            for a, left in enumerate(self.fences)
        ]
        make = least_orders if self._plan.least_fences else partial_orders
        for order in make(len(self.fences), comparable):
            matrix = 0
            for fence, row in zip(self.fences, order, strict=True):
                for later in bits(row):
                    matrix |= 1 << fence * len(self.events) + self.fences[later]
            yield matrix
