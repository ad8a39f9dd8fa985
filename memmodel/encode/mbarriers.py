"""mbarrier objects: the relations and sets that say what their operations did (docs/executions.md, "mbarrier objects").

In: EventGraph. Out: `Mbarriers`: the relations mbar, mbarobs, mbarseen, mbarfr, mbarnext, mbarended (events × events)
and the sets MBDONE, MBBAD, MBSTALE, MBLATER, MBREPORT, MBCLEAR and FAILED. Each object is ordered in `object_order`,
counted in `object_phases` and observed in `object_tests`.
"""

from __future__ import annotations

from memmodel.base.labels import Action
from memmodel.encode.object_order import ObjectOrder, must_precede
from memmodel.encode.object_phases import ObjectPhases
from memmodel.encode.object_tests import ObjectTest
from memmodel.encode.relations import Row, no_pairs, put
from memmodel.events.graph import EventGraph, ObjectEvent
from memmodel.memory.bytes import Cell


class Mbarriers:
    """All mbarrier objects of an event graph. Raises TooLarge.

    `seen`: for each test, the (life, phases over) that it sees.
    """

    def __init__(self, graph: EventGraph) -> None:
        self.logic = graph.logic
        self.mbar, self.mbarobs, self.mbarseen = (no_pairs(len(graph.events)) for _ in range(3))
        self.mbarfr, self.mbarnext, self.mbarended = (no_pairs(len(graph.events)) for _ in range(3))
        self.done: Row = {}
        self.bad: Row = {}
        self.stale: Row = {}
        self.later: Row = {}
        self.reports: tuple[Row, Row] = {}, {}
        self.failed: Row = {}
        self.seen: dict[int, dict[tuple[int, int], int]] = {}
        self.orders: dict[Cell, ObjectOrder] = {}
        self.phases: dict[Cell, ObjectPhases] = {}
        objects: dict[Cell, list[ObjectEvent]] = {}
        for event in graph.of_kind(ObjectEvent):
            objects.setdefault(event.object, []).append(event)
        for cell, members in objects.items():
            order = ObjectOrder(graph, cell, [event for event in members if event.action is not Action.TEST])
            phases = ObjectPhases(graph.logic, order)
            self.orders[cell], self.phases[cell] = order, phases
            self._updates(order, phases)
            self._tests(order, phases, [event for event in members if event.action is Action.TEST])

    def _updates(self, order: ObjectOrder, phases: ObjectPhases) -> None:
        for (i, j), formula in order.earlier.items():
            first, second = order.updates[i], order.updates[j]
            put(self.logic, self.mbar[first.uid], second.uid, self.logic.conj((formula, first.runs, second.runs)))
        for i, event in enumerate(order.updates):
            put(self.logic, self.bad, event.uid, phases.bad[i])
            put(self.logic, self.later, event.uid, phases.after_first_phase(i))
            put(self.logic, self.failed, event.uid, self.logic.both(event.runs, event.failed))

    def _tests(self, order: ObjectOrder, phases: ObjectPhases, events: list[ObjectEvent]) -> None:
        tests: list[ObjectTest] = []
        for event in events:
            earlier = [other for other in reversed(tests) if must_precede(other.event, event)]
            test = ObjectTest(order, phases, event, earlier)
            tests.append(test)
            uid = event.uid
            self.seen[uid] = test.seen
            for row, formula in ((self.done, test.done), (self.stale, test.stale), (self.bad, test.bad)):
                put(self.logic, row, uid, formula)
            for number, report in (event.report or {}).items():
                put(self.logic, self.reports[number], uid, self.logic.both(test.done, report))
            for i, update in enumerate(order.updates):
                put(self.logic, self.mbarended[update.uid], uid, test.ended[i])
                put(self.logic, self.mbarobs[update.uid], uid, test.observes[i])
                put(self.logic, self.mbarseen[update.uid], uid, test.sees_over[i])
                put(self.logic, self.mbarnext[uid], update.uid, test.followed[i])
                put(self.logic, self.mbarfr[uid], update.uid, test.before[i])
