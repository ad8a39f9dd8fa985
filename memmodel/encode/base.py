"""The base sets and relations of cat that an execution decides, over an EventGraph, by name.

In: EventGraph. Out: `BaseFormulas`, which gives a row for each of these sets and a matrix for each of these relations.
All other base names follow from labels, places and which events run (`refine.cells`).
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.base.labels import Access, Family, InitialWrite
from memmodel.encode.barriers import Barriers
from memmodel.encode.boundaries import join_where_uncut
from memmodel.encode.communication import Communication
from memmodel.encode.completion import completion, cta_ends, dependencies, exits, warpgroup_completion
from memmodel.encode.mbarriers import Mbarriers
from memmodel.encode.relations import Rel, Row, no_pairs, put
from memmodel.events.graph import EventGraph, MemoryEvent
from memmodel.memory.bytes import Cell


class BaseFormulas:
    """Base names of one event graph. `runs`: when each event is one of the execution. `objects`: the same events as
    mbarrier objects are to see them."""

    def __init__(self, graph: EventGraph, objects: EventGraph | None = None) -> None:
        self.graph = graph
        self.communication = Communication(graph)
        self.barriers = Barriers(graph)
        self.mbarriers = Mbarriers(objects or graph)
        self.runs = self._when_they_run()
        self._relations: dict[str, Rel] = {}

    def _when_they_run(self) -> list[int]:
        """An initial write is one of the execution if some access touches its cell."""
        touched: dict[Cell, list[int]] = {}
        for event in self.graph.of_kind(MemoryEvent):
            if not isinstance(event.label, InitialWrite):
                touched.setdefault(event.cell, []).append(event.runs)
        return [
            self.graph.logic.disj(touched[event.cell])
            if isinstance(event, MemoryEvent) and isinstance(event.label, InitialWrite)
            else event.runs
            for event in self.graph.events
        ]

    def join_cells(self) -> None:
        """Cells that an execution does not cut apart are one; to be called when all final writes are asked for."""
        join_where_uncut(self.graph, self.communication)

    def set(self, name: str) -> Row:
        """A base set that an execution decides: event -> formula."""
        return DECIDED_SETS[name](self)

    def relation(self, name: str) -> Rel:
        """A base relation that an execution decides, computed once."""
        if name not in self._relations:
            self._relations[name] = DECIDED_RELATIONS[name](self)
        return self._relations[name]

    def refused(self) -> Row:
        """The responses of try_cancel requests that failed."""
        logic = self.graph.logic
        row: Row = {}
        for event in self.graph.events:
            responds = isinstance(event.label, Access) and event.label.family is Family.TRY_CANCEL
            if responds and event.visit in self.graph.requests:
                _, success = self.graph.requests[event.visit]
                put(logic, row, event.uid, logic.both(event.runs, -success))
        return row


DECIDED_SETS: dict[str, Callable[[BaseFormulas], Row]] = {
    "MBDONE": lambda base: base.mbarriers.done,
    "MBBAD": lambda base: base.mbarriers.bad,
    "MBSTALE": lambda base: base.mbarriers.stale,
    "MBLATER": lambda base: base.mbarriers.later,
    "REFUSED": BaseFormulas.refused,
    "MBREPORT": lambda base: base.mbarriers.reports[1],
    "MBCLEAR": lambda base: base.mbarriers.reports[0],
    "FAILED": lambda base: base.mbarriers.failed,
}

DECIDED_RELATIONS: dict[str, Callable[[BaseFormulas], Rel]] = {
    "rf": lambda base: base.communication.rf,
    "co": lambda base: base.communication.co,
    "sync_fence": lambda base: base.communication.sync_fence,
    "addr": lambda base: dependencies(base.graph, lambda e: e.addr),
    "data": lambda base: dependencies(base.graph, lambda e: e.data),
    "ctrl": lambda base: dependencies(base.graph, lambda e: e.ctrl),
    "syncbar": lambda base: base.barriers.syncbar,
    "samegen": lambda base: base.barriers.samegen,
    "genbefore": lambda base: base.barriers.genbefore,
    "barmix": lambda base: base.barriers.barmix,
    "compl": lambda base: completion(base.graph),
    "complwg": lambda base: warpgroup_completion(base.graph, base.relation("compl")),
    "mbar": lambda base: base.mbarriers.mbar,
    "mbarobs": lambda base: base.mbarriers.mbarobs,
    "mbarseen": lambda base: base.mbarriers.mbarseen,
    "mbarfr": lambda base: base.mbarriers.mbarfr,
    "mbarnext": lambda base: base.mbarriers.mbarnext,
    "mbarended": lambda base: base.mbarriers.mbarended,
    "exits": lambda base: exits(base.graph),
    "foreign": lambda base: no_pairs(len(base.graph.events)),
    "ctaends": lambda base: cta_ends(base.graph),
}
"""Base relation that an execution decides -> how it is found. A test keeps these names equal to the table's."""
