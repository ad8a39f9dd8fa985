"""Barriers: which arrivals make a generation, and which waits they release (docs/executions.md, "Barriers").

In: EventGraph. Out: `Barriers`: the relations syncbar, samegen, genbefore, barmix (events × events); and constraints: a
generation is its first arrivals, every wait that runs is released, and a thread that waits for ever is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, permutations, product

from memmodel.base.labels import BETWEEN_GRIDS, OF_TENSOR_MEMORY, Barrier, Domain, Half
from memmodel.base.logic import FALSE, Logic
from memmodel.base.points import BarrierId
from memmodel.encode.counting import ByNumber, count
from memmodel.encode.relations import cyclic, no_pairs, put
from memmodel.events.graph import BarrierEvent, EventGraph


class Barriers:
    """All barriers of an event graph. `generations`: of each arrive half, as in `_OneBarrier`."""

    def __init__(self, graph: EventGraph) -> None:
        self.graph = graph
        self.logic = graph.logic
        self.syncbar, self.samegen, self.genbefore, self.barmix = (no_pairs(len(graph.events)) for _ in range(4))
        halves: dict[BarrierId, list[BarrierEvent]] = {}
        for event in graph.of_kind(BarrierEvent):
            halves.setdefault(event.barrier, []).append(event)
        self.generations: dict[int, ByNumber] = {}
        self._exits: list[tuple[int, int, int]] = []
        for name, members in halves.items():
            barrier = _OneBarrier(graph, name, members)
            self.generations.update(barrier.generation)
            self._relate(barrier)
        self._halves = [event for members in halves.values() for event in members]
        if halves:
            self._no_cycle_of_waiting()
            self._reductions()

    def _relate(self, barrier: _OneBarrier) -> None:
        domain = barrier.barrier.domain
        if domain in OF_TENSOR_MEMORY:
            return
        logic = self.logic
        for wait in barrier.waits:
            link = barrier.link[wait.uid]
            for arrive in barrier.arrives:
                cells = [
                    logic.conj((inside, in_wait, barrier.complete[number]))
                    for number, inside in barrier.generation[arrive.uid].items()
                    if (in_wait := link.get(number, FALSE)) != FALSE
                ]
                put(logic, self.syncbar[arrive.uid], wait.uid, logic.both(wait.runs, logic.disj(cells)))
        for first, second in permutations(barrier.arrives, 2):
            if logic.both(first.runs, second.runs) == FALSE:
                continue
            same: list[int] = []
            before: list[int] = []
            pairs = product(barrier.generation[first.uid].items(), barrier.generation[second.uid].items())
            for (number, in_first), (later, in_second) in pairs:
                if number <= later:
                    (same if number == later else before).append(logic.both(in_first, in_second))
            put(logic, self.samegen[first.uid], second.uid, logic.disj(same))
            put(logic, self.genbefore[first.uid], second.uid, logic.disj(before))
            if domain not in BETWEEN_GRIDS and _differ(first, second):
                put(logic, self.barmix[first.uid], second.uid, logic.both(first.runs, second.runs))
        self._exits += barrier.exits

    def _no_cycle_of_waiting(self) -> None:
        """A wait cannot end before the arrivals that release it, nor before the exit of a thread that does not arrive;
        and no arrival of a generation comes before one of the generations before it."""
        logic = self.logic
        step = no_pairs(len(self.graph.events))
        for event in self._halves:
            row = step[event.uid]
            for other in self._halves:
                if event.thread == other.thread and event.moment < other.moment:
                    put(logic, row, other.uid, logic.both(event.runs, other.runs))
            for rel in (self.syncbar, self.genbefore):
                for uid, formula in rel[event.uid].items():
                    if self.graph.events[uid].thread != event.thread:
                        put(logic, row, uid, formula)
            for thread, uid, formula in self._exits:
                if event.thread == thread and self.graph.events[uid].thread != thread:
                    put(logic, row, uid, logic.both(event.runs, formula))
        logic.require(-cyclic(logic, step))

    def _reductions(self) -> None:
        """barrier.cta.red: tie each result to the values of the arrivals of its generation."""
        logic = self.logic
        values = {uid: reduction.nonzero for reduction in self.graph.reductions for uid in reduction.arrives}
        for reduction in self.graph.reductions:
            for uid in reduction.arrives:
                own = self.graph.events[uid]
                assert isinstance(own, BarrierEvent)
                for number, formula in self.generations[uid].items():
                    inputs = [
                        (self.generations[other.uid].get(number, FALSE), values.get(other.uid, FALSE))
                        for other in self._halves
                        if other.half is Half.ARRIVE and other.barrier == own.barrier
                    ]
                    for result, held in reduction.result.items():
                        wanted = _combined(logic, reduction.op, inputs).get(result, FALSE)
                        logic.require(-reduction.runs, -own.runs, -formula, -held, wanted)


def _combined(logic: Logic, op: str, inputs: Sequence[tuple[int, int]]) -> ByNumber:
    """The reduction of the values that arrive (each under a formula), as cases."""
    if op == "popc":
        return dict(enumerate(count(logic, [logic.both(present, value) for present, value in inputs])))
    if op == "and":
        every = logic.conj(logic.either(-present, value) for present, value in inputs)
        return {0: -every, 1: every}
    some = logic.disj(logic.both(present, value) for present, value in inputs)
    return {0: -some, 1: some}


def _differ(first: BarrierEvent, second: BarrierEvent) -> bool:
    """True if two arrivals ask for different counts, or only one of them belongs to a .red."""
    assert isinstance(first.label, Barrier) and isinstance(second.label, Barrier)
    return first.count != second.count or first.label.reduces is not second.label.reduces


def _ends(event: BarrierEvent) -> bool:
    """True if the arrival is the end of a thread."""
    return isinstance(event.label, Barrier) and event.label.ends


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
            if barrier.of_thread(thread.place, number)
        ]
        self.generation: dict[int, ByNumber] = {}
        self.exits: list[tuple[int, int, int]] = []
        chosen = barrier.domain is not Domain.LAUNCH and not self._is_indexed()
        if barrier.domain is Domain.LAUNCH:
            self._choose_first_launch()
        elif chosen:
            self._choose_generations()
        else:
            self._count_by_thread()
        self.numbers = sorted({number for cases in self.generation.values() for number in cases})
        self.complete = {number: self._complete(number) for number in self.numbers}
        if chosen:
            self._first_arrivals_make_a_generation()
        self.link = {wait.uid: self._link(wait, wait.runs) for wait in self.waits}
        for wait in self.waits:
            self._is_released(wait)
        self._stuck_is_not_released()

    # ---- generations ---------------------------------------------------------------------------------------------

    def _is_indexed(self) -> bool:
        """True if the k-th arrival of each thread is in generation k: everyone has to arrive, or as many threads as a
        generation takes use the barrier, each of them waiting whenever it arrives; or a grid ends, or a pair of CTAs
        acts together, or an alloc waits for columns."""
        if self.barrier.domain in (Domain.GRID, *OF_TENSOR_MEMORY):
            return True
        counts = {event.count for event in self.arrives}
        if counts <= {None} or all(number is not None and number < 0 for number in counts):
            return True
        users = {event.thread for event in self.arrives}
        waiting = {event.point.instruction for event in self.waits}
        return counts == {len(users)} and all(event.point.instruction in waiting for event in self.arrives)

    def _count_by_thread(self) -> None:
        """Generation k has the k-th arrival of every thread."""
        for thread in {event.thread for event in self.arrives}:
            earlier: list[int] = []
            for alternatives in _steps(self.arrives, thread):
                numbers = dict(enumerate(count(self.logic, earlier)))
                for event in alternatives:
                    self.generation[event.uid] = self._under(event.runs, numbers)
                earlier.append(self.logic.disj(event.runs for event in alternatives))

    def _under(self, runs: int, cases: ByNumber) -> ByNumber:
        """Cases under a formula, but for those that it rules out."""
        under = {number: self.logic.both(runs, formula) for number, formula in cases.items()}
        return {number: formula for number, formula in under.items() if formula != FALSE}

    def _choose_first_launch(self) -> None:
        """Generation 0 is the first launch of the CTA, by any of its threads; without one, the ends of all of them."""
        logic = self.logic
        launches = [event for event in self.arrives if not _ends(event)]
        launched = logic.disj(event.runs for event in launches)
        chosen = {event.uid: logic.var(f"first(e{event.uid})") for event in launches}
        logic.exactly_one(list(chosen.values()), launched)
        for event in self.arrives:
            first = chosen.get(event.uid, -launched)
            self.generation[event.uid] = self._under(event.runs, {0: first, 1: -first})
        for event in launches:
            earlier = logic.disj(e.runs for e in launches if e.thread == event.thread and e.moment < event.moment)
            logic.require(-chosen[event.uid], event.runs)
            logic.require(-chosen[event.uid], -earlier)

    def _choose_generations(self) -> None:
        """Which arrivals make a generation is the execution's choice."""
        logic = self.logic
        least = max(1, min(self._needed(event) for event in self.arrives))
        if any(self.graph.exited[thread] != FALSE for thread in self.domain):
            least = 1  # exits complete generations that are not full
        most = len({event.moment for event in self.arrives}) // least + 1
        for event in self.arrives:
            cases = {k: logic.var(f"generation(e{event.uid},{k})") for k in range(most)}
            logic.exactly_one(list(cases.values()), event.runs)
            self.generation[event.uid] = cases
        for thread in {event.thread for event in self.arrives}:
            for first, second in combinations(_steps(self.arrives, thread), 2):
                for a, b in product(first, second):
                    self._in_order(a, b)

    def _in_order(self, a: BarrierEvent, b: BarrierEvent) -> None:
        """A thread's later arrival is in no earlier generation, and after a wait in a later one."""
        between = self.logic.disj(
            wait.runs for wait in self.waits if wait.thread == a.thread and a.moment < wait.moment < b.moment
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

    def _asked(self, members: Sequence[tuple[BarrierEvent, int]]) -> Iterator[tuple[int, int, int]]:
        """Each count that arrivals may ask for, with the formulas that one asks for it, and that one asks for more."""
        counts = sorted({self._needed(event) for event, _ in members if self._needed(event) >= 0})
        for at, wanted in enumerate(counts):
            some = self.logic.disj(formula for event, formula in members if self._needed(event) == wanted)
            more = self.logic.disj(formula for event, formula in members if self._needed(event) in counts[at + 1 :])
            yield wanted, some, more

    def _full(self, number: int) -> int:
        """A generation has as many arrivals as any of them asks for."""
        logic = self.logic
        members = self._members(number)
        counts = count(logic, _formulas(members))
        return logic.disj(
            [
                logic.conj((some, -more, counts[wanted] if wanted < len(counts) else FALSE))
                for wanted, some, more in self._asked(members)
            ]
        )

    def _complete(self, number: int) -> int:
        """A generation is full, or it has no count and every other thread of the domain has exited ("exit": barriers
        that wait for all threads do not wait for those).
        """
        logic = self.logic
        members = self._members(number)
        if self.barrier.domain in (*BETWEEN_GRIDS, *OF_TENSOR_MEMORY):
            return self._full(number)
        some = logic.disj(_formulas(members))
        present = [
            logic.either(
                logic.disj(formula for event, formula in members if event.thread == thread),
                self._exited(thread, number),
            )
            for thread in self.domain
        ]
        everyone = logic.conj((some, *present))
        if all(event.count is None for event, _ in members):
            return everyone
        however_many = logic.disj(f for event, f in members if event.count is not None and event.count < 0)
        counted = logic.disj(f for event, f in members if event.count is not None)
        return logic.disj((however_many, self._full(number), logic.both(everyone, -counted)))

    def _exited(self, thread: int, number: int) -> int:
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
            counts = count(logic, _formulas(members))
            for wanted, some, more in self._asked(members):
                for size in range(wanted + 1, len(counts)):
                    logic.require(-some, more, -counts[size])
            if number + 1 in self.numbers:
                following = logic.disj(_formulas(self._members(number + 1)))
                logic.require(-following, self.complete[number])

    # ---- waits -----------------------------------------------------------------------------------------------------

    def _link(self, wait: BarrierEvent, runs: int) -> ByNumber:
        """The generation that a wait half waits for: that of its instruction's arrive half.

        The k-th barrier.cluster.wait of a thread waits for generation k.
        """
        if self.barrier.domain in BETWEEN_GRIDS:
            return {0: runs}
        if self.barrier.domain is Domain.CLUSTER:
            before = [e.runs for e in self.waits if e.thread == wait.thread and e.moment < wait.moment]
            return self._under(runs, dict(enumerate(count(self.logic, before))))
        link: ByNumber = {}
        for event in self.arrives:
            if event.point.instruction == wait.point.instruction:
                for number, formula in self.generation[event.uid].items():
                    put(self.logic, link, number, self.logic.both(runs, formula))
        return link

    def _is_released(self, wait: BarrierEvent) -> None:
        """A wait that runs waits for a complete generation, but for one of a pair of CTAs, which need not wait."""
        if self.barrier.domain is Domain.PAIR:
            return
        logic = self.logic
        link = self.link[wait.uid]
        logic.require(-wait.runs, *link.values())
        for number, formula in link.items():
            logic.require(-formula, self.complete.get(number, FALSE))
            if self.barrier.domain in (*BETWEEN_GRIDS, *OF_TENSOR_MEMORY):
                continue
            members = self._members(number)
            full = self._full(number) if any(event.count is not None for event, _ in members) else FALSE
            for thread in self.domain:
                gone = logic.conj((self._exited(thread, number), -full, formula))
                if gone != FALSE:
                    self.exits.append((thread, wait.uid, gone))

    def _stuck_is_not_released(self) -> None:
        """A thread that waits for ever waits for a generation that is never complete."""
        waits = {wait.visit: wait for wait in reversed(self.waits)}
        for stuck in self.graph.stuck:
            if stuck.visit in waits:
                for number, formula in self._link(waits[stuck.visit], stuck.when).items():
                    self.logic.require(-formula, -self.complete.get(number, FALSE))


def _formulas(members: Iterable[tuple[BarrierEvent, int]]) -> list[int]:
    return [formula for _, formula in members]


def _steps(events: Sequence[BarrierEvent], thread: int | None) -> list[list[BarrierEvent]]:
    """The halves of a thread in program order; those of one step, which exclude one another, together."""
    steps: dict[int, list[BarrierEvent]] = {}
    for event in events:
        if event.thread == thread:
            steps.setdefault(event.moment, []).append(event)
    return [steps[moment] for moment in sorted(steps)]
