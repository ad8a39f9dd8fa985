"""mbarrier objects: the relations and sets that say what their operations did (docs/executions.md, "mbarrier objects").

In: EventGraph. Out: `Mbarriers`: the relations mbar, mbarobs, mbarfr, mbarnext (events × events) and the sets MBDONE,
MBBAD, MBSTALE and MBLATER. Each object is ordered in `object_order`, counted in `object_phases` and observed in
`object_tests`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from memmodel.base.labels import Action
from memmodel.base.logic import FALSE
from memmodel.encode.object_order import ObjectOrder, must_precede
from memmodel.encode.object_phases import ObjectPhases
from memmodel.encode.object_tests import observe
from memmodel.encode.relations import Rel, Row, no_pairs
from memmodel.events.graph import EventGraph, ObjectEvent
from memmodel.memory.bytes import Cell


@dataclass(slots=True)
class Mbarriers:
    """All mbarrier objects of an event graph. `seen`: for each test, the (life, phases over) that it sees; `least`:
    for each test and life, the formulas that it sees so many phases over or more."""

    mbar: Rel
    mbarobs: Rel
    mbarfr: Rel
    mbarnext: Rel
    done: Row = field(default_factory=dict)
    bad: Row = field(default_factory=dict)
    stale: Row = field(default_factory=dict)
    later: Row = field(default_factory=dict)
    seen: dict[int, dict[tuple[int, int], int]] = field(default_factory=dict)
    least: dict[int, dict[int, list[int]]] = field(default_factory=dict)
    orders: dict[Cell, ObjectOrder] = field(default_factory=dict)
    phases: dict[Cell, ObjectPhases] = field(default_factory=dict)


def mbarriers(graph: EventGraph) -> Mbarriers:
    """The objects of a test; constraints go to its logic. Raises TooLarge."""
    count = len(graph.events)
    made = Mbarriers(no_pairs(count), no_pairs(count), no_pairs(count), no_pairs(count))
    objects: dict[Cell, list[ObjectEvent]] = {}
    for event in graph.of_kind(ObjectEvent):
        objects.setdefault(event.object, []).append(event)
    logic = graph.logic
    for cell, members in objects.items():
        order = ObjectOrder(graph, cell, [event for event in members if event.action is not Action.TEST])
        made.orders[cell] = order
        for (i, j), formula in order.earlier.items():
            first, second = order.updates[i], order.updates[j]
            both = logic.conj((formula, first.runs, second.runs))
            if both != FALSE:
                made.mbar[first.uid][second.uid] = both
        phases = made.phases[cell] = ObjectPhases(logic, order)
        for i, event in enumerate(order.updates):
            _put(made.bad, event.uid, phases.bad[i])
            _put(made.later, event.uid, phases.later(i))
        tests = [event for event in members if event.action is Action.TEST]
        for number, test in enumerate(tests):
            observe(made, graph, order, phases, test, [one for one in tests[number::-1] if must_precede(one, test)])
    return made


def _put(row: Row, uid: int, formula: int) -> None:
    if formula != FALSE:
        row[uid] = formula
