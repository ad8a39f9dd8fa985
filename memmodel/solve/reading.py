"""Read an execution out of a solver's valuation, in the terms that plain evaluation replays.

In: Query, Solver (after SAT). Out: Choice.
"""

from __future__ import annotations

from collections.abc import Iterator

from memmodel.base.labels import Access, Action, Half, Issue, Side
from memmodel.concrete.records import RecordName
from memmodel.encode.relations import Rel
from memmodel.errors import InternalError
from memmodel.events.graph import BarrierEvent, Event, EventGraph, MemoryEvent, ObjectEvent
from memmodel.memory.bytes import Cell
from memmodel.referee.choice import Choice, Ordered, Place, Writer
from memmodel.refine.query import Query
from memmodel.solve.solver import Solver


def read_execution(query: Query, solver: Solver) -> Choice:
    """The execution that the solver found."""
    return _Reader(query, solver).choice()


class _Reader:
    def __init__(self, query: Query, solver: Solver) -> None:
        self.query = query
        self.graph: EventGraph = query.graph
        self.solver = solver
        self.visits = self._visits()
        self.running = {event.uid: event for event in self.graph.events if solver.holds(event.runs)}

    def _visits(self) -> dict[int, RecordName]:
        """The name of every step that is executed: how often its thread executed it before."""
        times: dict[tuple[int, int], int] = {}
        names = {}
        for number, visit in enumerate(self.graph.visits):
            if self.solver.holds(visit.runs):
                key = (visit.thread, visit.step)
                names[number] = RecordName(visit.thread, visit.step, times.get(key, 0))
                times[key] = times.get(key, 0) + 1
        return names

    def name(self, event: Event) -> RecordName:
        """The name of an event's record in a choice."""
        assert event.visit is not None
        visit = self.visits[event.visit]
        return RecordName(visit.thread, visit.step, visit.time, event.part)

    def writer(self, event: Event) -> Writer:
        return None if event.visit is None else self.name(event)

    def choice(self) -> Choice:
        base, solver = self.query.base, self.solver
        return Choice(
            tuple(self._values()),
            self._answers(),
            tuple(
                (self.writer(a), self.name(b), a.cell)
                for a, b in self._edges(base.communication.rf)
                if isinstance(a, MemoryEvent)
            ),
            tuple(
                (self.name(a), self.name(b), a.cell)
                for a, b in self._edges(base.communication.co)
                if isinstance(a, MemoryEvent) and a.visit is not None
            ),
            tuple((self.name(a), self.name(b)) for a, b in self._edges(base.communication.sync_fence)),
            {
                self.name(event): _pick(base.barriers.generations[event.uid], solver)
                for event in self.running.values()
                if isinstance(event, BarrierEvent) and event.half is Half.ARRIVE
            },
            tuple(self._orders()),
            self._seen(),
            tuple(self._finals()),
            self._waiting(),
            self.graph.starts,
            tuple(self._total_orders()),
        )

    def _values(self) -> Iterator[tuple[RecordName, Cell, int]]:
        for event in self.running.values():
            if isinstance(event, MemoryEvent) and event.uid in self._readers and event.value.known is not None:
                yield self.name(event), event.cell, event.value.known.number(self.solver.holds)

    @property
    def _readers(self) -> set[int]:
        return {read.uid for read in self.query.base.communication.reads}

    def _answers(self) -> dict[RecordName, tuple[int, ...]]:
        answers: dict[RecordName, tuple[int, ...]] = {}
        for event in self.running.values():
            if isinstance(event, ObjectEvent):
                values = tuple(
                    _pick(cases, self.solver)
                    for cases in (event.result, event.pending, event.report)
                    if cases is not None
                )
                if values:
                    answers[self.name(event)] = values
        for reduction in self.graph.reductions:
            if self.solver.holds(reduction.runs):
                answers[self.visits[reduction.visit]] = (_pick(reduction.result, self.solver),)
        for visit, decided in self.graph.decisions.items():
            if visit in self.visits:
                answers[self.visits[visit]] = (int(self.solver.holds(decided)),)
        for visit, (part, success) in self.graph.requests.items():
            if visit in self.visits:
                name = self.visits[visit]
                answers[RecordName(name.thread, name.step, name.time, part)] = (int(self.solver.holds(success)),)
        return answers

    def _orders(self) -> Iterator[tuple[Cell, tuple[RecordName, ...]]]:
        """For each object, its updates that run, in order."""
        for cell, order in self.query.base.mbarriers.orders.items():
            running = [i for i, update in enumerate(order.updates) if update.uid in self.running]
            before = {i: sum(self.solver.holds(order.earlier[j, i]) for j in running if i != j) for i in running}
            if running:
                ordered = sorted(running, key=before.__getitem__)
                yield cell, tuple(self.name(order.updates[i]) for i in ordered)

    def _seen(self) -> dict[RecordName, Place]:
        seen: dict[RecordName, Place] = {}
        for event in self.running.values():
            if isinstance(event, ObjectEvent) and event.action is Action.TEST:
                order = self.query.base.mbarriers.orders[event.object]
                life, over = next(
                    place
                    for place, formula in self.query.base.mbarriers.seen[event.uid].items()
                    if self.solver.holds(formula)
                )
                begun = order.updates[life] if life >= 0 else None
                known = begun is not None and begun.uid in self.running
                seen[self.name(event)] = (self.name(begun) if begun is not None and known else None, over)
        return seen

    def _finals(self) -> Iterator[tuple[Cell, Writer]]:
        for cell, writes in self.query.base.communication.finals.items():
            yield cell, self.writer(self.graph.events[_pick(writes, self.solver)])

    def _waiting(self) -> tuple[RecordName | None, ...]:
        waiting: list[RecordName | None] = [None] * len(self.graph.lowered.programs)
        for stuck in self.graph.stuck:
            if self.solver.holds(stuck.when):
                waiting[stuck.thread] = self.visits[stuck.visit]
        return tuple(waiting)

    def _total_orders(self) -> Iterator[tuple[int, tuple[Ordered, ...]]]:
        """The events of each total order that the model chose, first to last."""
        for index, rows in self.query.judge.total_orders(self.solver.holds).items():
            events = [
                event for event in self.running.values() if rows[event.uid] or any(r >> event.uid & 1 for r in rows)
            ]
            events.sort(key=lambda event: -rows[event.uid].bit_count())
            yield index, tuple(self._ordered(event) for event in events)

    def _ordered(self, event: Event) -> Ordered:
        if not isinstance(event, MemoryEvent):
            return self.writer(event), None, None, isinstance(event.label, Issue)
        side = event.label.side if isinstance(event.label, Access) else Side.WRITE
        return self.writer(event), side, event.cell, False

    def _edges(self, rel: Rel) -> Iterator[tuple[Event, Event]]:
        for a, row in enumerate(rel):
            if a in self.running:
                for b, formula in row.items():
                    if b in self.running and self.solver.holds(formula):
                        yield self.running[a], self.running[b]


def _pick(cases: dict[int, int], solver: Solver) -> int:
    for key, formula in cases.items():
        if solver.holds(formula):
            return key
    raise InternalError("a value without a case")
