"""The base sets and relations of cat over an EventGraph, by name. What the program settles is a constant.

In: EventGraph. Out: `BaseFormulas`, which gives a row for every base set and a matrix for every base relation. The
tables of `memmodel.base` say which events a label or a place puts into each; what an execution decides is here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from memmodel.base.labels import Access, Family, InitialWrite
from memmodel.base.logic import FALSE
from memmodel.base.points import Point
from memmodel.base.relations import RELATION_ROWS, BaseRelation
from memmodel.base.sets import SET_ROWS
from memmodel.encode.barriers import Barriers
from memmodel.encode.boundaries import join_where_uncut
from memmodel.encode.communication import Communication
from memmodel.encode.completion import completion, cta_ends, dependencies, exits, warpgroup_completion
from memmodel.encode.mbarriers import Mbarriers, mbarriers
from memmodel.encode.relations import Rel, Row, no_pairs
from memmodel.events.graph import Event, EventGraph, MemoryEvent
from memmodel.memory.bytes import Cell


class BaseFormulas:
    """Base names of one event graph."""

    def __init__(self, graph: EventGraph) -> None:
        self.graph = graph
        self.communication = Communication(graph)
        self.barriers = Barriers(graph)
        self.mbarriers: Mbarriers = mbarriers(graph)
        self.runs = self._when_they_run()
        self._sets: dict[str, Row] = {}
        self._relations: dict[str, Rel] = {}

    def _when_they_run(self) -> list[int]:
        """When each event is one of the execution: an initial write, if some access touches its cell."""
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
        """A base set: event -> formula."""
        if name not in self._sets:
            row = SET_ROWS[name]
            if row.holds is None:
                self._sets[name] = DECIDED_SETS[name](self)
            else:
                self._sets[name] = {
                    e.uid: self.runs[e.uid] for e in self.graph.events if row.holds(e.label) and row.has(e.point.cell)
                }
        return self._sets[name]

    def relation(self, name: str) -> Rel:
        """A base relation, computed once."""
        if name not in self._relations:
            row = RELATION_ROWS[name]
            settled = row.key is not None or row.holds is not None
            self._relations[name] = self._settled(row) if settled else DECIDED_RELATIONS[name](self)
        return self._relations[name]

    def _settled(self, row: BaseRelation) -> Rel:
        """The pairs of events that run and that the table relates."""
        rows = no_pairs(len(self.graph.events))
        if row.key is None:
            left = [e for e in self.graph.events if row.domain is None or row.domain(e.point)]
            right = [e for e in self.graph.events if row.range is None or row.range(e.point)]
            self._pairs(rows, left, right, row.holds)
            return rows
        groups: dict[Hashable, list[Event]] = {}
        for event in self.graph.events:
            key = row.key(event.point)
            if key is not None:
                groups.setdefault(key, []).append(event)
        for members in groups.values():
            self._pairs(rows, members, members, row.holds)
        return rows

    def _pairs(
        self, rows: Rel, left: list[Event], right: list[Event], holds: Callable[[Point, Point], bool] | None
    ) -> None:
        both = self.graph.logic.both
        for a in left:
            row = rows[a.uid]
            runs, point = self.runs[a.uid], a.point
            for b in right:
                if (holds is None or holds(point, b.point)) and (cell := both(runs, self.runs[b.uid])) != FALSE:
                    row[b.uid] = cell

    def refused(self) -> Row:
        """The responses of try_cancel requests that failed."""
        both = self.graph.logic.both
        return {
            e.uid: formula
            for e in self.graph.events
            if e.visit in self.graph.requests
            and isinstance(e.label, Access)
            and e.label.family is Family.TRY_CANCEL
            and (formula := both(e.runs, -self.graph.requests[e.visit][1])) != FALSE
        }


DECIDED_SETS: dict[str, Callable[[BaseFormulas], Row]] = {
    "MBDONE": lambda base: base.mbarriers.done,
    "MBBAD": lambda base: base.mbarriers.bad,
    "MBSTALE": lambda base: base.mbarriers.stale,
    "MBLATER": lambda base: base.mbarriers.later,
    "REFUSED": BaseFormulas.refused,
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
    "mbarfr": lambda base: base.mbarriers.mbarfr,
    "mbarnext": lambda base: base.mbarriers.mbarnext,
    "exits": lambda base: exits(base.graph),
    "foreign": lambda base: no_pairs(len(base.graph.events)),
    "ctaends": lambda base: cta_ends(base.graph),
}
"""Base relation that an execution decides -> how it is found. A test keeps these names equal to the table's."""
