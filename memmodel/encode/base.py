"""The base sets and relations of cat over an EventGraph, by name. What the program settles is a constant.

In: EventGraph. Out: `Base`, which gives a row for every base set and a matrix for every base relation. The relations
that an execution decides (rf, co, sync_fence, syncbar) come from `encode.choices` with their well-formedness.
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.encode.asynchronous import completion, covers
from memmodel.encode.choices import Choices, issuers_in_scope
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
        """A base set: `_` is every event that runs; MBDONE and MBBAD depend on counts; the rest are tags."""
        if name in ("MBDONE", "MBBAD"):
            row = self.choices.mbarriers.done if name == "MBDONE" else self.choices.mbarriers.bad
            return {uid: formula for uid, formula in row.items() if formula != FALSE}
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
    def before(a: Event, b: Event) -> int:
        return TRUE if a.thread == b.thread and a.uid < b.uid and a.in_po and b.in_po else FALSE

    return base.pairs(before, threads_only=True)


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
    return base.pairs(base.choices.scopes_include, threads_only=True)


def _sri(base: Base) -> Rel:
    return base.pairs(lambda a, b: TRUE if issuers_in_scope(a, b) else FALSE, threads_only=True)


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


def _iss(base: Base) -> Rel:
    return base.pairs(lambda a, b: TRUE if b.issue == a.uid and b.thread == a.thread else FALSE, threads_only=True)


def _compl(base: Base) -> Rel:
    return completion(base.graph, base.algebra)


def _spcta(base: Base) -> Rel:
    """Performed in one CTA: accesses to shared memory and mbarrier objects where these lie, the rest at the thread."""
    return base.pairs(base.choices.performed_together, threads_only=True)


def _covers(base: Base) -> Rel:
    memory = [e for e in base.graph.events if "M" in e.tags or "MBINIT" in e.tags]
    rows = base.algebra.empty()
    for fence in base.graph.events:
        if "F" in fence.tags or fence.covers is not None:
            for access in memory:
                cell = base.graph.logic.both(covers(base.graph, fence, access), fence.runs)
                cell = base.graph.logic.both(cell, access.runs)
                if cell != FALSE:
                    rows[fence.uid][access.uid] = cell
    return rows


def _scg(base: Base) -> Rel:
    return base.pairs(lambda a, b: TRUE if a.unit is not None and a.unit == b.unit else FALSE, threads_only=True)


def _smma(base: Base) -> Rel:
    """The tensor-memory accesses of two MMAs with one accumulator, shape and kind."""

    def same(a: Event, b: Event) -> int:
        if (
            not ({"MMA", "TMEM", "M"} <= a.tags and {"MMA", "TMEM", "M"} <= b.tags)
            or a.form is None
            or (a.form, a.unit) != (b.form, b.unit)
        ):
            return FALSE
        return base.choices.same_location(a, b)

    return base.pairs(same, threads_only=True)


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
    "iss": _iss,
    "compl": _compl,
    "mbar": lambda base: base.choices.mbarriers.mbar,
    "mbarobs": lambda base: base.choices.mbarriers.observed,
    "mbarfr": lambda base: base.choices.mbarriers.before,
    "samebar": lambda base: base.choices.mbarriers.same,
    "covers": _covers,
    "spcta": _spcta,
    "sri": _sri,
    "scg": _scg,
    "smma": _smma,
}
"""Base relation -> how it is built. The names are those of `cat.names`; a test keeps the two lists equal."""
