"""What the tests of an mbarrier object see, and which updates they observe.

In: one test, the order and the phases of its object. Out: cells of mbarobs, mbarfr, mbarnext, MBDONE, MBBAD, MBSTALE. A
test has a position in the order of updates that respects program order. It sees a life, and how many of its phases are
over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memmodel.base.labels import Action
from memmodel.base.lives import in_life
from memmodel.base.logic import FALSE, TRUE
from memmodel.encode.counting import at_least
from memmodel.encode.object_order import START, ObjectOrder, must_precede
from memmodel.encode.object_phases import ObjectPhases
from memmodel.events.graph import EventGraph, ObjectEvent

if TYPE_CHECKING:
    from memmodel.encode.mbarriers import Mbarriers

Seen = dict[tuple[int, int], int]
"""(life, phases over) -> formula; exactly one holds."""


def observe(
    whole: Mbarriers,
    graph: EventGraph,
    order: ObjectOrder,
    phases: ObjectPhases,
    test: ObjectEvent,
    earlier: list[ObjectEvent],
) -> None:
    """Everything about one test. `earlier`: the tests of its thread before it, last first."""
    one = _Test(whole, graph, order, phases, test)
    one.sees()
    one.follows_program_order(earlier)
    one.answers()
    one.places()
    one.is_valid()


class _Test:
    def __init__(
        self, whole: Mbarriers, graph: EventGraph, order: ObjectOrder, phases: ObjectPhases, test: ObjectEvent
    ) -> None:
        self.whole, self.order, self.phases, self.test = whole, order, phases, test
        self.logic = graph.logic
        self.seen: Seen = {}
        self.done = FALSE
        self._life: dict[int, int] = {}
        self._least: dict[int, list[int]] = {}

    def sees(self) -> None:
        """A life, and the phases over in it; of a single life it is told beforehand."""
        logic, order = self.logic, self.order
        lives = self._lives()
        options = [(life, k) for life in lives for k in range(self.phases.most[life] + 1)]
        if len(options) == 1:
            self.seen = {options[0]: TRUE}
        else:
            self.seen = {o: logic.var(f"seen(e{self.test.uid},{o[1]},{o[0]})") for o in options}
            logic.exactly_one(list(self.seen.values()))
        for (life, k), formula in self.seen.items():
            if k:
                logic.require(-formula, self.phases.over[life, k - 1])
            if life != START and len(lives) > 1:
                logic.require(-formula, -self.test.runs, order.updates[life].runs)
        self.whole.seen[self.test.uid] = self.seen
        self._by_life()

    def _lives(self) -> list[int]:
        """The lives that a test may be in: with one init only, the one that its thread's order leaves."""
        order = self.order
        if not order.inits:
            return [START]
        if len(order.inits) == 1 and order.declared is None:
            init = order.updates[order.inits[0]]
            return [START] if must_precede(self.test, init) else [order.inits[0]]
        return order.lives

    def _by_life(self) -> None:
        """`_life[l]`: the test sees life l. `_least[l][k]`: of life l, if it sees that, k phases are over or more."""
        logic = self.logic
        for life in dict.fromkeys(life for life, _ in self.seen):
            cases = {k: formula for (one, k), formula in self.seen.items() if one == life}
            alone = len(cases) == len(self.seen)
            self._life[life] = TRUE if alone else logic.disj(cases.values())
            self._least[life] = at_least(logic, cases)
        self.whole.least[self.test.uid] = self._least

    def follows_program_order(self, earlier: list[ObjectEvent]) -> None:
        """A thread's later test does not see less than those before it (which are given, last first)."""
        logic, order = self.logic, self.order
        nearer: list[ObjectEvent] = []
        for other in earlier:
            if any(logic.implies(self.test.runs, one.runs) for one in nearer):
                continue  # one in between sees no less than the other, and this one no less than that
            nearer.append(other)
            before = self.whole.least[other.uid]
            for first, levels in before.items():
                seen_first = [f for (life, _), f in self.whole.seen[other.uid].items() if life == first]
                was = TRUE if len(before) == 1 else logic.disj(seen_first)
                for second, now in self._life.items():
                    if first == second:
                        for k in range(1, len(levels)):
                            there = _at(self._least[first], k)
                            logic.require(-other.runs, -self.test.runs, -was, -now, -levels[k], there)
                    else:
                        back = TRUE if second == START else FALSE if first == START else order.earlier[second, first]
                        logic.require(-other.runs, -self.test.runs, -was, -now, -back)

    def answers(self) -> None:
        """The result of a test: is the phase that it asks for over?"""
        logic, test = self.logic, self.test
        true, stale = [], []
        for (life, k), formula in self.seen.items():
            if test.parity is not None:
                cases = test.parity.cases()
                true += [logic.both(formula, when) for p, when in cases.numbers.items() if k % 2 != p % 2]
            elif test.state is not None:
                cases = test.state.cases()
                for number, so_many in self.order.number(life).items():
                    seen, now = logic.both(formula, so_many), in_life(number, k)
                    true += [logic.both(seen, when) for state, when in cases.numbers.items() if now > state]
                    stale += [logic.both(seen, when) for state, when in cases.numbers.items() if now > state + 1]
        self.done = logic.both(test.runs, logic.disj(true))
        if self.done != FALSE:
            self.whole.done[test.uid] = self.done
        if (old := logic.both(test.runs, logic.disj(stale))) != FALSE:
            self.whole.stale[test.uid] = old
        if test.result is not None:
            logic.require(-test.runs, -self.done, test.result[1])
            logic.require(-test.runs, self.done, test.result[0])

    def places(self) -> None:
        """Program order between the test and each update, and what follows from what the test saw."""
        for i in range(len(self.order.updates)):
            if i in self.phases.phase:
                self._place_of_counting(i)
            else:
                self._place_of_life(i)

    def _place_of_counting(self, i: int) -> None:
        """Relate the test to an update that counts.

        The test observes the update if the update's phase is over. The update comes after the test if more phases are
        over after the update than the test sees.
        """
        logic, update = self.logic, self.order.updates[i]
        live, phase = self.order.live[i], self.phases.phase[i]
        observed, later, following = [], [], []
        for life, inside in self.order.life[i].items():
            for other, sees in self._life.items():
                here = logic.conj((sees, inside, live))
                if here == FALSE:
                    continue
                if other != life:
                    later.append(logic.both(here, self._begins_later(other, life)))
                    if must_precede(self.test, update):
                        logic.require(-self.test.runs, -here, self._begins_later(other, life))
                    continue
                seen = self._least[life]
                over = logic.disj(logic.both(f, _at(seen, k + 1)) for k, f in phase.items())
                observed.append(logic.both(here, over))
                if must_precede(self.test, update):
                    logic.require(-self.test.runs, -here, -over)
                current = [logic.both(f, self.seen.get((life, k), FALSE)) for k, f in phase.items()]
                following.append(logic.both(here, logic.disj(current)))
                beyond = logic.disj(logic.both(f, -_at(seen, k)) for k, f in phase.items() if k)
                ends = [logic.both(current_one, self.phases.ends[i]) for current_one in current]
                later.append(logic.both(here, logic.disj((beyond, *ends))))
        self._set(self.whole.mbarobs, update.uid, self.test.uid, logic.both(self.done, logic.disj(observed)))
        self._set(self.whole.mbarnext, self.test.uid, update.uid, logic.both(self.done, logic.disj(following)))
        self._comes_after(i, logic.disj(later))

    def _place_of_life(self, i: int) -> None:
        """An init or an inval: a test is in the life of an init, and of an inval it is told by program order only."""
        logic, update = self.logic, self.order.updates[i]
        if update.action is not Action.INIT:
            return
        observed = [sees for (life, k), sees in self.seen.items() if life == i and k > 0]
        own = logic.conj((self.done, update.runs, logic.disj(observed)))
        self._set(self.whole.mbarobs, update.uid, self.test.uid, own)
        lives = {life: logic.disj(f for (one, _), f in self.seen.items() if one == life) for life, _ in self.seen}
        later = logic.disj(logic.both(sees, self._begins_later(life, i)) for life, sees in lives.items() if life != i)
        self._comes_after(i, logic.both(update.runs, later))
        if must_precede(self.test, update):
            logic.require(-self.test.runs, -update.runs, later)

    def _begins_later(self, life: int, other: int) -> int:
        """Does life `other` begin after `life`?"""
        if other == START:
            return FALSE
        return TRUE if life == START else self.order.earlier[life, other]

    def _comes_after(self, i: int, later: int) -> None:
        """mbarfr; and no update that program order puts before the test comes after it."""
        logic, update = self.logic, self.order.updates[i]
        both = logic.conj((self.test.runs, update.runs, later))
        if must_precede(update, self.test):
            logic.require(-both)
        self._set(self.whole.mbarfr, self.test.uid, update.uid, both)

    def is_valid(self) -> None:
        """Mark the test if its object is invalid: not initialised yet, or invalidated by the test's own thread."""
        logic, order, test = self.logic, self.order, self.test
        bad = []
        for (life, _), sees in self.seen.items():
            if life == START and order.declared is None:
                bad.append(sees)
            if life != START:
                bad.append(logic.both(sees, -order.updates[life].runs))
            ended = [
                logic.both(order.updates[one].runs, TRUE if life == START else order.earlier[life, one])
                for one in order.invals
                if must_precede(order.updates[one], test)
            ]
            bad += [logic.both(sees, formula) for formula in ended]
        found = logic.both(test.runs, logic.disj(bad))
        if found != FALSE:
            self.whole.bad[test.uid] = found

    def _set(self, rel: list[dict[int, int]], a: int, b: int, formula: int) -> None:
        if formula != FALSE:
            rel[a][b] = self.logic.either(rel[a].get(b, FALSE), formula)


def _at(least: list[int], k: int) -> int:
    return least[k] if k < len(least) else FALSE
