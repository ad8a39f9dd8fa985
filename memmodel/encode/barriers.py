"""Barriers: which arrivals make a generation, and which waits they release (docs/executions.md, "Barriers").

In: EventGraph. Out: `Barriers`: the relations syncbar, samegen, genbefore, barmix (events × events); and constraints: a
generation is its first arrivals, every wait that runs is released, and a thread that waits for ever is not.
"""

from __future__ import annotations

from collections.abc import Sequence

from memmodel.base.labels import BETWEEN_GRIDS, Barrier, Domain, Half
from memmodel.base.logic import FALSE, TRUE
from memmodel.base.points import BarrierId
from memmodel.encode.counting import ByNumber, count
from memmodel.encode.relations import Rel, cyclic, no_pairs
from memmodel.events.graph import BarrierEvent, EventGraph
from memmodel.events.objects import barrier_of


class Barriers:
    """All barriers of an event graph."""

    def __init__(self, graph: EventGraph) -> None:
        self.graph = graph
        self.logic = graph.logic
        self.syncbar, self.samegen, self.genbefore, self.barmix = (no_pairs(len(graph.events)) for _ in range(4))
        barriers: dict[BarrierId, list[BarrierEvent]] = {}
        for event in graph.of_kind(BarrierEvent):
            barriers.setdefault(event.barrier, []).append(event)
        self.generations: dict[int, ByNumber] = {}
        self._exits: list[tuple[int, int, int]] = []
        for barrier, halves in barriers.items():
            one = _OneBarrier(graph, barrier, halves)
            self.generations.update(one.generation)
            self._relate(one)
        self._released = [event for halves in barriers.values() for event in halves]
        if barriers:
            self._no_cycle_of_waiting()
            self._reductions()

    def _relate(self, one: _OneBarrier) -> None:
        if one.barrier.domain is Domain.PAIR:
            return
        logic = self.logic
        for wait in one.waits:
            link = one.link[wait.uid]
            for arrive in one.arrives:
                cells = [
                    logic.conj((here, in_wait, one.complete[number]))
                    for number, here in one.generation[arrive.uid].items()
                    if (in_wait := link.get(number, FALSE)) != FALSE
                ]
                self._set(self.syncbar, arrive.uid, wait.uid, logic.both(wait.runs, logic.disj(cells)))
        for first in one.arrives:
            for second in one.arrives:
                if first is second or logic.both(first.runs, second.runs) == FALSE:
                    continue
                same: list[int] = []
                before: list[int] = []
                for number, here in one.generation[first.uid].items():
                    for later, there in one.generation[second.uid].items():
                        if number <= later:
                            (same if number == later else before).append(logic.both(here, there))
                self._set(self.samegen, first.uid, second.uid, logic.disj(same))
                self._set(self.genbefore, first.uid, second.uid, logic.disj(before))
                if one.barrier.domain not in BETWEEN_GRIDS and _differ(first, second):
                    self._set(self.barmix, first.uid, second.uid, logic.both(first.runs, second.runs))
        self._exits += one.exits

    def _set(self, rel: Rel, a: int, b: int, formula: int) -> None:
        if formula != FALSE:
            rel[a][b] = self.logic.either(rel[a].get(b, FALSE), formula)

    def _no_cycle_of_waiting(self) -> None:
        """A wait cannot end before the arrivals that release it, nor before the exit of a thread that does not arrive;
        and no arrival of a generation comes before one of the generations before it."""
        logic = self.logic
        step = no_pairs(len(self.graph.events))
        for event in self._released:
            for other in self._released:
                if event.thread == other.thread and _order(event) < _order(other):
                    self._set(step, event.uid, other.uid, logic.both(event.runs, other.runs))
            for rel in (self.syncbar, self.genbefore):
                for uid, formula in rel[event.uid].items():
                    if self.graph.events[uid].thread != event.thread:
                        self._set(step, event.uid, uid, formula)
            for thread, uid, formula in self._exits:
                if event.thread == thread and self.graph.events[uid].thread != thread:
                    self._set(step, event.uid, uid, logic.both(event.runs, formula))
        logic.require(-cyclic(logic, step))

    def _reductions(self) -> None:
        """barrier.cta.red: tie each result to the values of the arrivals of its generation."""
        logic = self.logic
        gives = {uid: reduction.nonzero for reduction in self.graph.reductions for uid in reduction.arrives}
        for reduction in self.graph.reductions:
            for uid in reduction.arrives:
                own = self.graph.events[uid]
                assert isinstance(own, BarrierEvent)
                for number, formula in self.generations[uid].items():
                    inputs = [
                        (self.generations[other.uid].get(number, FALSE), gives.get(other.uid, FALSE))
                        for other in self._released
                        if other.half is Half.ARRIVE and other.barrier == own.barrier
                    ]
                    for result, held in reduction.result.items():
                        wanted = _combined(self.graph, reduction.op, inputs).get(result, FALSE)
                        logic.require(-reduction.runs, -own.runs, -formula, -held, wanted)


def _combined(graph: EventGraph, op: str, inputs: Sequence[tuple[int, int]]) -> ByNumber:
    """The reduction of the values that arrive (each under a formula), as cases."""
    logic = graph.logic
    if op == "popc":
        counts = count(logic, [logic.both(present, value) for present, value in inputs])
        return dict(enumerate(counts))
    if op == "and":
        every = logic.conj(logic.either(-present, value) for present, value in inputs)
        return {0: -every, 1: every}
    some = logic.disj(logic.both(present, value) for present, value in inputs)
    return {0: -some, 1: some}


def _differ(first: BarrierEvent, second: BarrierEvent) -> bool:
    """Do two arrivals ask for different counts, or does only one of them belong to a .red?"""
    assert isinstance(first.label, Barrier) and isinstance(second.label, Barrier)
    return first.count != second.count or first.label.reduces is not second.label.reduces


def _ends(event: BarrierEvent) -> bool:
    """Is this arrival the end of a thread?"""
    return isinstance(event.label, Barrier) and event.label.ends


def _order(event: BarrierEvent) -> int:
    assert event.point.order is not None
    return event.point.order


class _OneBarrier:
    """One barrier: the generation of each arrival, and when generations are complete.

    `generation`: uid of an arrive half -> number of its generation -> formula (the arrival runs and is in it).
    `link`: uid of a wait half -> number of the generation that it waits for -> formula. `complete[g]`: generation g has
    all its arrivals. `exits`: (thread, uid, formula): that wait is released by the exit of a thread.
    """

    def __init__(self, graph: EventGraph, barrier: BarrierId, halves: list[BarrierEvent]) -> None:
        self.graph = graph
        self.logic = graph.logic
        self.barrier = barrier
        self.arrives = [event for event in halves if event.half is Half.ARRIVE]
        self.waits = [event for event in halves if event.half is Half.WAIT]
        self.domain = [
            number
            for number, thread in enumerate(graph.lowered.test.threads)
            if barrier_of(barrier.domain, barrier.key, thread.place, number) == barrier
        ]
        self.generation: dict[int, ByNumber] = {}
        self.exits: list[tuple[int, int, int]] = []
        indexed = self._is_indexed()
        if barrier.domain is Domain.LAUNCH:
            self._choose_first_launch()
        elif indexed:
            self._count_by_thread()
        else:
            self._choose_generations()
        self.numbers = sorted({number for cases in self.generation.values() for number in cases})
        self.complete = {number: self._complete(number) for number in self.numbers}
        if not indexed and barrier.domain is not Domain.LAUNCH:
            self._first_arrivals_make_a_generation()
        self.link = {wait.uid: self._link(wait, wait.runs) for wait in self.waits}
        for wait in self.waits:
            self._is_released(wait, indexed)
        self._stuck_is_not_released()

    # ---- generations ---------------------------------------------------------------------------------------------

    def _is_indexed(self) -> bool:
        """Is the k-th arrival of each thread in generation k? So it is if everyone has to arrive, or as many threads
        as a generation takes use the barrier, each of them waiting whenever it arrives; and where a grid ends or a pair
        of CTAs acts together."""
        if self.barrier.domain in (Domain.GRID, Domain.PAIR):
            return True
        counts = {event.count for event in self.arrives}
        if counts <= {None} or all(number is not None and number < 0 for number in counts):
            return True
        users = {event.thread for event in self.arrives}
        waiting = {event.point.instruction for event in self.waits}
        return counts == {len(users)} and all(event.point.instruction in waiting for event in self.arrives)

    def _count_by_thread(self) -> None:
        """Generation k has the k-th arrival of every thread."""
        logic = self.logic
        for thread in {event.thread for event in self.arrives}:
            earlier = [TRUE]  # earlier[k]: exactly k of the arrivals before this one ran
            for _, alternatives in _visits(self.arrives, thread):
                ran = logic.disj(event.runs for event in alternatives)
                for event in alternatives:
                    cases = {k: logic.both(event.runs, formula) for k, formula in enumerate(earlier)}
                    self.generation[event.uid] = {k: formula for k, formula in cases.items() if formula != FALSE}
                earlier = [
                    logic.either(
                        logic.both(-ran, earlier[k]) if k < len(earlier) else FALSE,
                        logic.both(ran, earlier[k - 1]) if k else FALSE,
                    )
                    for k in range(len(earlier) + 1)
                ]

    def _choose_first_launch(self) -> None:
        """Generation 0 is the first launch of the CTA, by any of its threads; without one, the ends of all of them."""
        logic = self.logic
        launches = [event for event in self.arrives if not _ends(event)]
        launched = logic.disj(event.runs for event in launches)
        chosen = {event.uid: logic.var(f"first(e{event.uid})") for event in launches}
        logic.exactly_one(list(chosen.values()), launched)
        for event in self.arrives:
            here = chosen.get(event.uid, -launched)
            cases = {0: logic.both(event.runs, here), 1: logic.both(event.runs, -here)}
            self.generation[event.uid] = {k: formula for k, formula in cases.items() if formula != FALSE}
        for event in launches:
            earlier = logic.disj(e.runs for e in launches if e.thread == event.thread and _order(e) < _order(event))
            logic.require(-chosen[event.uid], event.runs)
            logic.require(-chosen[event.uid], -earlier)

    def _choose_generations(self) -> None:
        """Which arrivals make a generation is the execution's choice."""
        logic = self.logic
        least = max(1, min(self._needed(event) for event in self.arrives))
        if any(self.graph.exited[thread] != FALSE for thread in self.domain):
            least = 1  # exits complete generations that are not full
        most = len(_all_visits(self.arrives)) // least + 1
        for event in self.arrives:
            cases = {k: logic.var(f"generation(e{event.uid},{k})") for k in range(most)}
            logic.exactly_one(list(cases.values()), event.runs)
            self.generation[event.uid] = cases
        for thread in {event.thread for event in self.arrives}:
            visits = _visits(self.arrives, thread)
            for at, (_, first) in enumerate(visits):
                for _, second in visits[at + 1 :]:
                    for a in first:
                        for b in second:
                            self._in_order(a, b)

    def _in_order(self, a: BarrierEvent, b: BarrierEvent) -> None:
        """A thread's later arrival is in no earlier generation, and behind a wait in a later one."""
        between = self.logic.disj(
            wait.runs for wait in self.waits if wait.thread == a.thread and _order(a) < _order(wait) < _order(b)
        )
        for k, first in self.generation[a.uid].items():
            for later, second in self.generation[b.uid].items():
                if later < k:
                    self.logic.require(-first, -second)
                elif later == k:
                    self.logic.require(-first, -second, -between)

    def _needed(self, event: BarrierEvent) -> int:
        """How many arrivals a half asks for."""
        return len(self.domain) if event.count is None else event.count

    def _members(self, number: int) -> list[tuple[BarrierEvent, int]]:
        """The arrivals that may be in a generation, each with the formula."""
        return [
            (event, formula)
            for event in self.arrives
            if (formula := self.generation[event.uid].get(number, FALSE)) != FALSE
        ]

    def _full(self, number: int) -> int:
        """A generation has as many arrivals as any of them asks for."""
        logic = self.logic
        members = self._members(number)
        counts = count(logic, [formula for _, formula in members])
        asked = sorted({self._needed(event) for event, _ in members if self._needed(event) >= 0})
        cells = []
        for at, wanted in enumerate(asked):
            some = logic.disj(formula for event, formula in members if self._needed(event) == wanted)
            more = logic.disj(formula for event, formula in members if self._needed(event) in asked[at + 1 :])
            size = counts[wanted] if wanted < len(counts) else FALSE
            cells.append(logic.conj((some, -more, size)))
        return logic.disj(cells)

    def _complete(self, number: int) -> int:
        """A generation is full, or it has no count and every other thread of the domain has exited ("exit": barriers
        that wait for all threads do not wait for those).
        """
        logic = self.logic
        members = self._members(number)
        some = logic.disj(formula for _, formula in members)
        if self.barrier.domain in (*BETWEEN_GRIDS, Domain.PAIR):
            return self._full(number)
        arrived = {
            thread: logic.disj(formula for event, formula in members if event.thread == thread)
            for thread in self.domain
        }
        present = [logic.either(arrived[thread], self._gone(thread, number)) for thread in self.domain]
        everyone = logic.conj((some, *present))
        if all(event.count is None for event, _ in members):
            return everyone
        however_many = logic.disj(f for event, f in members if event.count is not None and event.count < 0)
        counted = logic.disj(f for event, f in members if event.count is not None)
        return logic.disj((however_many, self._full(number), logic.both(everyone, -counted)))

    def _gone(self, thread: int, number: int) -> int:
        """A thread has exited without arriving: in this generation or, before it exits, in a later one."""
        logic = self.logic
        later = logic.disj(
            formula
            for event in self.arrives
            if event.thread == thread
            for generation, formula in self.generation[event.uid].items()
            if generation >= number
        )
        return logic.both(self.graph.exited[thread], -later)

    def _first_arrivals_make_a_generation(self) -> None:
        """No generation has more arrivals than it asks for; and none begins before the one before it is complete."""
        logic = self.logic
        for number in self.numbers:
            members = self._members(number)
            counts = count(logic, [formula for _, formula in members])
            asked = sorted({self._needed(event) for event, _ in members if self._needed(event) >= 0})
            for at, wanted in enumerate(asked):
                above = logic.disj(formula for event, formula in members if self._needed(event) in asked[at + 1 :])
                some = logic.disj(formula for event, formula in members if self._needed(event) == wanted)
                for size in range(wanted + 1, len(counts)):
                    logic.require(-some, above, -counts[size])
            if number + 1 in self.numbers:
                following = logic.disj(formula for _, formula in self._members(number + 1))
                logic.require(-following, self.complete[number])

    # ---- waits -----------------------------------------------------------------------------------------------------

    def _link(self, wait: BarrierEvent, runs: int) -> ByNumber:
        """The generation that a wait half waits for: that of its instruction's arrive half."""
        logic = self.logic
        if self.barrier.domain in BETWEEN_GRIDS:
            return {0: runs}
        if self.barrier.domain is Domain.CLUSTER:
            return self._link_by_number(wait, runs)
        found: ByNumber = {}
        for event in self.arrives:
            if event.point.instruction == wait.point.instruction:
                for number, formula in self.generation[event.uid].items():
                    if (cell := logic.both(runs, formula)) != FALSE:
                        found[number] = logic.either(found.get(number, FALSE), cell)
        return found

    def _link_by_number(self, wait: BarrierEvent, runs: int) -> ByNumber:
        """The k-th barrier.cluster.wait of a thread waits for generation k."""
        before = [e.runs for e in self.waits if e.thread == wait.thread and _order(e) < _order(wait)]
        cases = {k: self.logic.both(runs, formula) for k, formula in enumerate(count(self.logic, before))}
        return {k: formula for k, formula in cases.items() if formula != FALSE}

    def _is_released(self, wait: BarrierEvent, indexed: bool) -> None:
        """A wait that runs waits for a complete generation, but for one of a pair of CTAs, which need not wait."""
        if self.barrier.domain is Domain.PAIR:
            return
        logic = self.logic
        link = self.link[wait.uid]
        logic.require(-wait.runs, *link.values())
        for number, formula in link.items():
            logic.require(-formula, self.complete.get(number, FALSE))
            if self.barrier.domain in BETWEEN_GRIDS:
                continue
            members = self._members(number)
            full = self._full(number) if any(event.count is not None for event, _ in members) else FALSE
            for thread in self.domain:
                gone = logic.conj((self._gone(thread, number), -full, formula))
                if gone != FALSE:
                    self.exits.append((thread, wait.uid, gone))

    def _stuck_is_not_released(self) -> None:
        """A thread that waits for ever waits for a generation that is never complete."""
        for stuck in self.graph.stuck:
            if stuck.arrives is None:
                continue
            wait = next((w for w in self.waits if w.visit == stuck.visit), None)
            if wait is None:
                continue
            for number, formula in self._link(wait, stuck.when).items():
                self.logic.require(-formula, -self.complete.get(number, FALSE))


def _visits(events: Sequence[BarrierEvent], thread: int | None) -> list[tuple[int, list[BarrierEvent]]]:
    """The halves of a thread in program order; those of one step, which exclude one another, together."""
    found: dict[int, list[BarrierEvent]] = {}
    for event in events:
        if event.thread == thread:
            found.setdefault(_order(event), []).append(event)
    return sorted(found.items())


def _all_visits(events: Sequence[BarrierEvent]) -> set[int]:
    return {_order(event) for event in events}
