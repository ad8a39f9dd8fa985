"""What an execution decides, and the facts that every execution obeys: rf, co, sync_fence, barriers, final values.

In: EventGraph. Out: `Choices`: matrices of variables; their well-formedness goes to `logic` as constraints, one named
function per fact. No rule of a memory model is here (docs/executions.md is the definition).
"""

from __future__ import annotations

from memmodel.encode.barriers import barriers
from memmodel.encode.mbarrier import Mbarriers
from memmodel.encode.relations import Algebra, Rel
from memmodel.events.graph import Event, EventGraph
from memmodel.events.values import Value
from memmodel.isa.memory import Location
from memmodel.logic import FALSE, TRUE
from memmodel.ptx import Place, Space


class Choices:
    """rf, co, sync_fence, syncbar of one event graph (events × events), and the final write of each location.

    `transitive_co`: the model uses co only under `+`, so co may be taken as transitive without changing it.
    """

    def __init__(self, graph: EventGraph, algebra: Algebra, *, transitive_co: bool) -> None:
        self.graph = graph
        self.logic = graph.logic
        self.algebra = algebra
        self.reads = [e for e in graph.events if e.is_read]
        self.writes = [e for e in graph.events if e.is_write]
        self.rf = algebra.empty()
        self.co = algebra.empty()
        self.sync_fence = algebra.empty()
        self._final: dict[Location, dict[int, int]] = {}
        for read in self.reads:
            self._rf_has_one_source(read)
        self._co_starts_with_the_initial_write()
        if transitive_co:
            self._is_strict_order(self.co)
        else:
            self.logic.require(-algebra.cyclic(self.co))
        self._sync_fence_relates_fences_in_scope()
        self.groups: list[tuple[int, dict[int, int]]] = []
        self.mbarriers = Mbarriers(graph, algebra)
        self.syncbar: Rel = barriers(graph, algebra, self.groups)

    # ---- where two events meet -----------------------------------------------------------------------------------

    def same_location(self, a: Event, b: Event) -> int:
        """The formula under which both access one location."""
        if not a.where or not b.where:
            return FALSE
        if a.uid == b.uid:
            return TRUE
        logic = self.logic
        there = b.at(logic)
        return logic.disj(logic.both(formula, there[where]) for where, formula in a.at(logic).items() if where in there)

    def scopes_include(self, a: Event, b: Event) -> int:
        """Do both events specify scopes that include the other? A signal stands where its mbarrier object is."""
        if a.scope is None or b.scope is None:
            return FALSE
        if "SIGNAL" not in a.tags and "SIGNAL" not in b.tags:
            return TRUE if issuers_in_scope(a, b) else FALSE
        logic = self.logic
        cells = []
        for first, when in self._places(a):
            for second, then in self._places(b):
                if first.shares(a.scope, second) and second.shares(b.scope, first):
                    cells.append(logic.both(when, then))
        return logic.disj(cells)

    def _places(self, event: Event) -> list[tuple[Place, int]]:
        """Where an event takes part in scope inclusion: a signal at its object's CTA, anything else at its thread."""
        assert event.place is not None
        if "SIGNAL" not in event.tags:
            return [(event.place, TRUE)]
        return [(_place_of(where.owner) or event.place, formula) for where, formula in event.at(self.logic).items()]

    def performed_together(self, a: Event, b: Event) -> int:
        """The formula under which both are performed in one CTA."""
        logic = self.logic
        cells = []
        for first, when in self._homes(a):
            for second, then in self._homes(b):
                if first == second:
                    cells.append(logic.both(when, then))
        return logic.disj(cells)

    def _homes(self, event: Event) -> list[tuple[tuple[object, ...], int]]:
        assert event.place is not None
        if not event.where:
            return [(event.place.cta_id, TRUE)]
        return [
            (where.owner if where.space is Space.SHARED and where.owner is not None else event.place.cta_id, formula)
            for where, formula in event.at(self.logic).items()
        ]

    # ---- rf ------------------------------------------------------------------------------------------------------

    def _rf_has_one_source(self, read: Event) -> None:
        """Each read that runs takes its value from exactly one write to its location."""
        logic = self.logic
        assert read.value is not None
        sources: list[tuple[Event, int]] = []
        for write in self.writes:
            assert write.value is not None
            if write.uid == read.uid or not _may_be_equal(write.value, read.value):
                continue
            meet = self.same_location(write, read)
            if meet != FALSE and logic.both(write.runs, read.runs) != FALSE:
                sources.append((write, meet))
        if len(sources) == 1:
            chosen = [read.runs]
        else:
            chosen = [logic.var(f"rf(e{write.uid},e{read.uid})") for write, _ in sources]
            logic.exactly_one(chosen, read.runs)
        if not sources:
            logic.require(-read.runs)
        for edge, (write, meet) in zip(chosen, sources, strict=True):
            assert write.value is not None
            logic.require(-edge, write.runs)
            logic.require(-edge, meet)
            self._same_value(edge, write.value, read.value)
            self.rf[write.uid][read.uid] = edge

    def _same_value(self, edge: int, written: Value, read: Value) -> None:
        """If the edge holds, what is read is what was written."""
        logic = self.logic
        if written.bits is not None or read.bits is not None:
            for a, b in zip(written.as_bits(logic), read.as_bits(logic), strict=True):
                logic.require(-edge, -a, b)
                logic.require(-edge, a, -b)
            return
        for number, formula in written.cases.items():
            logic.require(-edge, -formula, read.cases.get(number, FALSE))

    # ---- co ------------------------------------------------------------------------------------------------------

    def _co_starts_with_the_initial_write(self) -> None:
        """Writes to one location may be related either way; its initial write comes before every other."""
        logic = self.logic
        for a in self.writes:
            for b in self.writes:
                if a.uid == b.uid or b.thread is None:
                    continue
                meet = self.same_location(a, b)
                runs = logic.both(meet, logic.both(a.runs, b.runs))
                if runs == FALSE:
                    continue
                if a.thread is None:
                    self.co[a.uid][b.uid] = runs
                else:
                    edge = logic.var(f"co(e{a.uid},e{b.uid})")
                    logic.require(-edge, a.runs)
                    logic.require(-edge, b.runs)
                    logic.require(-edge, meet)
                    self.co[a.uid][b.uid] = edge

    def _is_strict_order(self, rel: Rel) -> None:
        """Transitive and asymmetric."""
        require = self.logic.require
        for a, row in enumerate(rel):
            for b, first in row.items():
                back = rel[b].get(a)
                if back is not None and a < b:
                    require(-first, -back)
                if first == TRUE and all(rel[a].get(c) == TRUE for c in rel[b]):
                    continue
                for c, second in rel[b].items():
                    if c != a:
                        require(-first, -second, row.get(c, FALSE))

    def final_writes(self, location: Location) -> dict[int, int]:
        """Uid of a write -> formula: it is the (chosen) co-maximal write that gives the location its final value."""
        if location not in self._final:
            logic = self.logic
            here = {e.uid: e for e in self.writes if location in e.at(logic)}
            if len(here) == 1:
                self._final[location] = dict.fromkeys(here, TRUE)
            else:
                chosen = {uid: logic.var(f"final({location},e{uid})") for uid in here}
                logic.exactly_one(list(chosen.values()))
                for uid, formula in chosen.items():
                    logic.require(-formula, here[uid].runs)
                    logic.require(-formula, here[uid].at(logic)[location])
                    for later in self.co[uid].values():
                        logic.require(-formula, -later)
                self._final[location] = chosen
        return self._final[location]

    def chosen_finals(self) -> list[tuple[Location, dict[int, int]]]:
        """The locations whose final write was asked for, with the formulas of their candidates."""
        return list(self._final.items())

    # ---- sync_fence ----------------------------------------------------------------------------------------------

    def _sync_fence_relates_fences_in_scope(self) -> None:
        """A strict partial order on fence.sc events that relates every pair whose scopes include each other."""
        logic = self.logic
        fences = [e for e in self.graph.events if "F" in e.tags and "SC" in e.tags]
        for a in fences:
            for b in fences:
                if a.uid != b.uid and logic.both(a.runs, b.runs) != FALSE:
                    edge = logic.var(f"sync_fence(e{a.uid},e{b.uid})")
                    logic.require(-edge, a.runs)
                    logic.require(-edge, b.runs)
                    self.sync_fence[a.uid][b.uid] = edge
        self._is_strict_order(self.sync_fence)
        for a in fences:
            for uid, edge in self.sync_fence[a.uid].items():
                other = self.graph.events[uid]
                if a.uid < uid and issuers_in_scope(a, other):
                    logic.require(-a.runs, -other.runs, edge, self.sync_fence[uid][a.uid])


def _may_be_equal(written: Value, read: Value) -> bool:
    wide = written.bits is not None or read.bits is not None
    return wide or bool(written.cases.keys() & read.cases.keys())


def issuers_in_scope(a: Event, b: Event) -> bool:
    """Do both events specify scopes that include the thread of the other?"""
    if a.scope is None or b.scope is None or a.place is None or b.place is None:
        return False
    return a.thread == b.thread or (a.place.shares(a.scope, b.place) and b.place.shares(b.scope, a.place))


def _place_of(owner: tuple[object, ...] | None) -> Place | None:
    """The place of a CTA from its identity (gpu, cluster identity, cta)."""
    if owner is None:
        return None
    gpu, cluster, cta = owner
    assert isinstance(gpu, int) and isinstance(cta, int) and isinstance(cluster, tuple)
    return Place(gpu, None if len(cluster) == 3 else cluster[1], cta)
