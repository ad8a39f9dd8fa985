"""What the tests of an mbarrier object see, and which updates they observe.

In: one test, the order and the phases of its object. Out: `ObjectTest`: cells of mbarobs, mbarseen, mbarfr, mbarnext,
mbarended, MBDONE, MBBAD, MBSTALE. A test has a position in the order of updates that respects program order. It sees a
life, and how many of its phases are over.
"""

from __future__ import annotations

from collections.abc import Sequence

from memmodel.base.labels import Action
from memmodel.base.lives import in_life
from memmodel.base.logic import FALSE, TRUE
from memmodel.encode.counting import at_least
from memmodel.encode.object_order import START, ObjectOrder, must_precede
from memmodel.encode.object_phases import ObjectPhases
from memmodel.events.graph import ObjectEvent

Seen = dict[tuple[int, int], int]
"""(life, phases over) -> formula; exactly one holds."""


class ObjectTest:
    """One test; constraints go to the logic. `earlier`: the tests of its thread before it, last first.

    `done`, `stale`, `bad`: when the test is in MBDONE, MBSTALE, MBBAD. By the number of an update: the test `observes`
    it (mbarobs), `sees_over` its phase (mbarseen), is `followed` by it (mbarnext), is `before` it (mbarfr), saw its
    phase `ended` last (mbarended).
    """

    def __init__(
        self, order: ObjectOrder, phases: ObjectPhases, event: ObjectEvent, earlier: Sequence[ObjectTest]
    ) -> None:
        self.order, self.phases, self.event = order, phases, event
        self.logic = order.logic
        self.seen = self._seen()
        lives = dict.fromkeys(life for life, _ in self.seen)
        cases = {life: {k: formula for (other, k), formula in self.seen.items() if other == life} for life in lives}
        self.life = {
            life: TRUE if len(lives) == 1 else self.logic.disj(inside.values()) for life, inside in cases.items()
        }
        """When the test sees each life."""
        self.at_least = {life: at_least(self.logic, inside) for life, inside in cases.items()}
        """Of each life, if the test sees that: k phases are over or more."""
        self._follows_program_order(earlier)
        self.lags = {view: FALSE for view in self.seen}
        """By what the test sees: if the conditional phase is asked for, an operation of a phase that is over failed."""
        self.done, self.stale = self._answers()
        self.sees = self.logic.both(
            self.done, -self.logic.disj(self.logic.both(self.seen[view], lags) for view, lags in self.lags.items())
        )
        count = len(order.updates)
        self.observes, self.sees_over, self.followed, self.before, self.ended = ([FALSE] * count for _ in range(5))
        for i in range(count):
            if i in phases.phase:
                self._relate_to_counting(i)
            elif order.updates[i].action is Action.INIT:  # of an inval, program order alone counts
                self._relate_to_init(i)
        self.bad = self._invalid()

    def _seen(self) -> Seen:
        """A life, and the phases over in it; a single life is known beforehand."""
        logic, order = self.logic, self.order
        lives = self._lives()
        options = [(life, k) for life in lives for k in range(self.phases.most[life] + 1)]
        if len(options) == 1:
            seen = {options[0]: TRUE}
        else:
            seen = {(life, k): logic.var(f"seen(e{self.event.uid},{k},{life})") for life, k in options}
            logic.exactly_one(list(seen.values()))
        for (life, k), formula in seen.items():
            if k:
                logic.require(-formula, self.phases.over[life, k - 1])
            if life != START and len(lives) > 1:
                logic.require(-formula, -self.event.runs, order.updates[life].runs)
        return seen

    def _lives(self) -> list[int]:
        """The lives that a test may be in: with one init only, the one that its thread's order leaves."""
        order = self.order
        if not order.inits:
            return [START]
        if len(order.inits) == 1 and order.declared is None:
            init = order.updates[order.inits[0]]
            return [START] if must_precede(self.event, init) else [order.inits[0]]
        return order.lives

    def _follows_program_order(self, earlier: Sequence[ObjectTest]) -> None:
        """A thread's later test does not see less than those before it."""
        logic = self.logic
        nearer: list[ObjectEvent] = []
        for other in earlier:
            if any(logic.implies(self.event.runs, between.runs) for between in nearer):
                continue  # one in between sees no less than the other, and this one no less than that
            nearer.append(other.event)
            self._sees_no_less_than(other)

    def _sees_no_less_than(self, earlier: ObjectTest) -> None:
        """In the same life, phases that were over are over; another life does not begin before that of the earlier."""
        for before, levels in earlier.at_least.items():
            for life, now in self.life.items():
                together = (-earlier.event.runs, -self.event.runs, -earlier.life[before], -now)
                if before != life:
                    self.logic.require(*together, -self._begins_later(life, before))
                    continue
                for k in range(1, len(levels)):
                    self.logic.require(*together, -levels[k], _at(self.at_least[life], k))

    def _answers(self) -> tuple[int, int]:
        """The result of a test: the phase that it asks for is over; and the formula that its state is too old."""
        logic, test = self.logic, self.event
        true, stale = [], []
        for (life, k), formula in self.seen.items():
            if test.parity is not None:
                odd = test.parity.cases().is_odd(logic)
                true.append(logic.both(formula, logic.choose(self._is_odd(life, k), -odd, odd)))
            elif test.state is not None:
                state = test.state.cases()
                for number, before in self.order.number(life).items():
                    seen, now = logic.both(formula, before), in_life(number, k)
                    true.append(logic.both(seen, state.is_less(logic, now)))
                    stale.append(logic.both(seen, state.is_less(logic, now - 1)))
        done = logic.both(test.runs, logic.disj(true))
        if test.result is not None:
            logic.require(-test.runs, -done, test.result[1])
            logic.require(-test.runs, done, test.result[0])
        return done, logic.both(test.runs, logic.disj(stale))

    def _is_odd(self, life: int, over: int) -> int:
        """The number of completed phases that count for the test is odd: of conditional ones, those in
        which nothing failed."""
        logic, odd = self.logic, TRUE if over % 2 else FALSE
        if not self.event.conditional:
            return odd
        for phase in range(over):
            failed = [
                logic.conj((update.runs, update.failed, self.phases.inside(i, (life, phase))))
                for i, update in enumerate(self.order.updates)
                if i in self.phases.phase and update.failed != FALSE
            ]
            fails = logic.disj(failed)
            self.lags[life, over] = logic.either(self.lags[life, over], fails)
            odd = logic.choose(fails, -odd, odd)
        return odd

    # ---- the test among the updates ----------------------------------------------------------------------------------

    def _relate_to_counting(self, i: int) -> None:
        """Relate the test to an update that counts.

        The test observes the update if the update's phase is over. The update comes after the test if more phases are
        over after the update than the test sees.
        """
        logic, update = self.logic, self.order.updates[i]
        live, phase = self.order.live[i], self.phases.phase[i]
        observed, later, following, last = [], [], [], []
        for life, inside in self.order.life[i].items():
            for other, sees in self.life.items():
                both = logic.conj((sees, inside, live))
                if both == FALSE:
                    continue
                if other != life:
                    later.append(logic.both(both, self._begins_later(other, life)))
                    if must_precede(self.event, update):
                        logic.require(-self.event.runs, -both, self._begins_later(other, life))
                    continue
                seen = self.at_least[life]
                over = logic.disj(logic.both(f, _at(seen, k + 1)) for k, f in phase.items())
                observed.append(logic.both(both, over))
                if must_precede(self.event, update):
                    logic.require(-self.event.runs, -both, -over)
                current = [logic.both(f, self.seen.get((life, k), FALSE)) for k, f in phase.items()]
                following.append(logic.both(both, logic.disj(current)))
                just_over = [logic.both(f, self.seen.get((life, k + 1), FALSE)) for k, f in phase.items()]
                last.append(logic.both(both, logic.disj(just_over)))
                beyond = logic.disj(logic.both(f, -_at(seen, k)) for k, f in phase.items() if k)
                ends = [logic.both(formula, self.phases.ends[i]) for formula in current]
                later.append(logic.both(both, logic.disj((beyond, *ends))))
        self._sees_over(i, logic.disj(observed))
        self.followed[i] = logic.both(self.sees, logic.disj(following))
        self.ended[i] = logic.both(self.sees, logic.disj(last))
        self._comes_after(i, logic.disj(later))

    def _relate_to_init(self, i: int) -> None:
        """Relate the test to an init: it is in the life that this begins, or in another."""
        logic, update = self.logic, self.order.updates[i]
        observed = [sees for (life, k), sees in self.seen.items() if life == i and k > 0]
        self._sees_over(i, logic.both(update.runs, logic.disj(observed)))
        lives = {life: logic.disj(f for (other, _), f in self.seen.items() if other == life) for life in self.life}
        later = logic.disj(logic.both(sees, self._begins_later(life, i)) for life, sees in lives.items() if life != i)
        self._comes_after(i, logic.both(update.runs, later))
        if must_precede(self.event, update):
            logic.require(-self.event.runs, -update.runs, later)

    def _begins_later(self, life: int, other: int) -> int:
        """Life `other` begins after `life`."""
        if other == START:
            return FALSE
        return TRUE if life == START else self.order.earlier[life, other]

    def _sees_over(self, i: int, over: int) -> None:
        """mbarobs and mbarseen."""
        self.observes[i] = self.logic.both(self.sees, over)
        self.sees_over[i] = self.logic.both(self.event.runs, over)

    def _comes_after(self, i: int, later: int) -> None:
        """mbarfr; and no update that program order puts before the test comes after it."""
        update = self.order.updates[i]
        self.before[i] = self.logic.conj((self.event.runs, update.runs, later))
        if must_precede(update, self.event):
            self.logic.require(-self.before[i])

    def _invalid(self) -> int:
        """The object of the test is invalid: not initialised yet, or invalidated by the test's own thread."""
        logic, order, test = self.logic, self.order, self.event
        bad = []
        for (life, _), sees in self.seen.items():
            if life == START and order.declared is None:
                bad.append(sees)
            if life != START:
                bad.append(logic.both(sees, -order.updates[life].runs))
            for inval in order.invals:
                if must_precede(order.updates[inval], test):
                    after = TRUE if life == START else order.earlier[life, inval]
                    bad.append(logic.both(sees, logic.both(order.updates[inval].runs, after)))
        return logic.both(test.runs, logic.disj(bad))


def _at(least: list[int], k: int) -> int:
    return least[k] if k < len(least) else FALSE
