"""mbarrier objects: the relations and sets that say what their operations did (docs/executions.md, "mbarrier objects").

In: EventGraph. Out: `Mbarriers`: the relations mbar, mbarobs, mbarfr, samebar (events × events) and the sets MBDONE and
MBBAD. Each object by itself is counted in `encode.mbarrier_object`.
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.encode.mbarrier_object import Cases, MbarrierObject
from memmodel.encode.relations import Algebra, Rel, Row
from memmodel.events.graph import Event, EventGraph
from memmodel.isa.memory import Location
from memmodel.logic import FALSE


class Mbarriers:
    """All mbarrier objects of an event graph."""

    def __init__(self, graph: EventGraph, algebra: Algebra) -> None:
        self.graph = graph
        self.logic = graph.logic
        self.mbar: Rel = algebra.empty()
        self.observed: Rel = algebra.empty()
        self.before: Rel = algebra.empty()
        self.same: Rel = algebra.empty()
        self.done: Row = {}
        self.bad: Row = {}
        self.tests: dict[int, Cases] = {}
        self.over: dict[Location, list[int]] = {}
        self._objects: dict[Location, MbarrierObject] = {}
        objects: dict[Location, list[tuple[Event, int]]] = {}
        for event in graph.events:
            if event.mbarrier is not None:
                for location, formula in event.at(self.logic).items():
                    present = self.logic.both(event.runs, formula)
                    if present != FALSE:
                        objects.setdefault(location, []).append((event, present))
        self._accesses(objects)
        for location, members in objects.items():
            self._objects[location] = MbarrierObject(self, location, members)
            self.over[location] = self._objects[location].over

    def _accesses(self, objects: dict[Location, list[tuple[Event, int]]]) -> None:
        """Memory accesses to the memory of an object belong to it too: samebar, either way round."""
        logic = self.logic
        for access in self.graph.events:
            for location, formula in access.at(logic).items() if "M" in access.tags else ():
                for event, present in objects.get(location, ()):
                    cell = logic.both(present, logic.both(formula, access.runs))
                    if cell != FALSE:
                        self.same[access.uid][event.uid] = self.same[event.uid][access.uid] = cell

    def order(self, holds: Callable[[int], bool]) -> dict[Location, list[int]]:
        """For each object, the uids of its updates that run, in order, under a valuation."""
        found = {}
        for location, one in self._objects.items():
            running = [i for i, update in enumerate(one.updates) if holds(update.present)]
            before = {i: sum(holds(one.earlier[j, i]) for j in running if i != j) for i in running}
            if running:
                found[location] = [one.updates[i].event.uid for i in sorted(running, key=before.__getitem__)]
        return found

    def missing(self, test: int, holds: Callable[[int], bool]) -> str:
        """What the phase that a test looks at still lacks: `bar phase 0: 1 of 2 arrivals, 16 of 32 bytes`."""
        for location, one in self._objects.items():
            for event, present in one.tests:
                if event.uid == test and holds(present):
                    return f"{location} {one.state(holds)}"
        return "its mbarrier phase is not over"
