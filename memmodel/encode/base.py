"""The base sets and relations of cat over an EventGraph, by name. What the program settles is a constant.

In: EventGraph. Out: `Base`, which gives a row for every base set and a matrix for every base relation. The relations
that an execution decides (rf, co, sync_fence, syncbar) come from `encode.choices` with their well-formedness.
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.encode.choices import Choices
from memmodel.encode.relations import Algebra, Rel, Row
from memmodel.events.graph import Event, EventGraph
from memmodel.events.values import Deps
from memmodel.logic import FALSE, TRUE


class Base:
    """Base names of one event graph. `choices` holds what the solver decides."""

    def __init__(self, graph: EventGraph, algebra: Algebra, choices: Choices) -> None:
        self.graph = graph
        self.algebra = algebra
        self.choices = choices
        self._relations: dict[str, Rel] = {}

    def set(self, name: str) -> Row:
        """A base set: `_` is every event that runs; any other name is the tag of that name."""
        return {e.uid: e.runs for e in self.graph.events if name == "_" or name in e.tags}

    def relation(self, name: str) -> Rel:
        """A base relation, computed once."""
        if name not in self._relations:
            self._relations[name] = RELATIONS[name](self)
        return self._relations[name]

    # ---- helpers -------------------------------------------------------------------------------------------------

    def pairs(self, related: Callable[[Event, Event], int], threads_only: bool = False) -> Rel:
        """The pairs of events that run and for which `related` holds (a formula)."""
        both = self.graph.logic.both
        events = [e for e in self.graph.events if not threads_only or e.thread is not None]
        rows = self.algebra.empty()
        for a in events:
            row = rows[a.uid]
            for b in events:
                cell = related(a, b)
                if cell != FALSE:
                    cell = both(cell, both(a.runs, b.runs)) if a.uid != b.uid else both(cell, a.runs)
                    if cell != FALSE:
                        row[b.uid] = cell
        return rows

    def deps(self, part: Callable[[Event], Deps]) -> Rel:
        """Dependencies: from each read to the events that depend on it."""
        both = self.graph.logic.both
        rows = self.algebra.empty()
        for event in self.graph.events:
            for uid, formula in part(event).items():
                cell = both(formula, both(event.runs, self.graph.events[uid].runs))
                if cell != FALSE:
                    rows[uid][event.uid] = cell
        return rows


def _po(base: Base) -> Rel:
    return base.pairs(lambda a, b: TRUE if a.thread == b.thread and a.uid < b.uid else FALSE, threads_only=True)


def _rmw(base: Base) -> Rel:
    rows = base.algebra.empty()
    for event in base.graph.events:
        if event.partner is not None:
            rows[event.partner][event.uid] = event.runs
    return rows


def _loc(base: Base) -> Rel:
    return base.pairs(base.choices.same_location)


def _vloc(base: Base) -> Rel:
    logic = base.graph.logic

    def same(a: Event, b: Event) -> int:
        if not a.where or not b.where:
            return FALSE
        if a.uid == b.uid:
            return TRUE
        return logic.disj(logic.both(formula, b.where[key]) for key, formula in a.where.items() if key in b.where)

    return base.pairs(same)


def _sr(base: Base) -> Rel:
    return base.pairs(lambda a, b: TRUE if base.choices.scopes_include(a, b) else FALSE, threads_only=True)


def _together(part: str) -> Callable[[Base], Rel]:
    def build(base: Base) -> Rel:
        return base.pairs(
            lambda a, b: TRUE if getattr(a.place, part) == getattr(b.place, part) else FALSE, threads_only=True
        )

    return build


def _int(base: Base) -> Rel:
    return base.pairs(lambda a, b: TRUE if a.thread is not None and a.thread == b.thread else FALSE)


def _ext(base: Base) -> Rel:
    return base.pairs(lambda a, b: FALSE if a.thread is not None and a.thread == b.thread else TRUE)


RELATIONS: dict[str, Callable[[Base], Rel]] = {
    "po": _po,
    "rmw": _rmw,
    "loc": _loc,
    "vloc": _vloc,
    "sr": _sr,
    "int": _int,
    "ext": _ext,
    "scta": _together("cta_id"),
    "scluster": _together("cluster_id"),
    "sgpu": _together("gpu"),
    "id": lambda base: base.algebra.identity(base.set("_")),
    "addr": lambda base: base.deps(lambda e: e.address_deps),
    "data": lambda base: base.deps(lambda e: e.data_deps),
    "ctrl": lambda base: base.deps(lambda e: e.control_deps),
    "rf": lambda base: base.choices.rf,
    "co": lambda base: base.choices.co,
    "sync_fence": lambda base: base.choices.sync_fence,
    "syncbar": lambda base: base.choices.syncbar,
}
"""Base relation -> how it is built. The names are those of `cat.names`; a test keeps the two lists equal."""
