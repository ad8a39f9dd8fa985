"""The search for changes after which a test is right.

In: a text, what judges a changed one, the changes that may be made. Out: sets of changes, the cheapest first. Settled
here: what is tried when. What the explanations ask for comes first, then single changes, then sets of them. Changes
whose effect on an execution is known come before those that have to be judged to be known.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, islice

from memmodel.answer import HANG
from memmodel.repair.edits import Edit, about_numbers
from memmodel.repair.exchanging.exchanges import ALIKE
from memmodel.repair.guided import asked_for
from memmodel.repair.hints import answers, awaited_objects, broken_rules, by_turns, kind, lines, moves_a_fence, reasons
from memmodel.repair.judge import AnswersOfTest, TextCounterexample
from memmodel.repair.purpose import progress
from memmodel.repair.searching.ideas import makes_strong
from memmodel.repair.searching.sets import MOST_CHANGES, Sets
from memmodel.repair.searching.trials import Trials
from memmodel.repair.searching.turns import NEARBY, RELEVANT, Changes, Turns, cost, covers, in_order, spot
from memmodel.why.records import Reason

PATIENCE = 12
"""After the first repair, the search stops after this many further changes of equal or higher cost."""

MUCH_PATIENCE = 60
"""At most this many of them are looked at, those included that a known counterexample refutes without a judgement."""

MORE_SETS, FEW_SETS = 20, 6
"""After the first repair, the search stops after this many further sets: of few changes, of many."""

LARGE = 25
"""Of a test of more instructions than this, half as many programs are judged after a repair was found, and only such
as answer a reason."""

MANY = 80
"""More changes than this are many; then sets are made of those at the lines that an explanation names."""

MOST_PAIRS = 24
"""At most this many pairs of numbers are tried to end a hang."""

FEW_BLIND = 12
"""At most this many sets are judged of changes that no explanation suggests."""

FEW_LIVE = 16
"""At most this many changes are each tried together with all changes that only add order, before sets are tried."""

MOST_SETS = 30
"""At most this many sets are judged in each of the two rounds: those that the reasons ask for, and all."""

GUIDED = 20
"""At most this many programs are judged that explanations lead to."""

UP = 4
"""A wait that helps is tried at most this number of places further up."""

MOST_NUMBERS = 4
"""At most this many numbers are changed to end a hang."""

MOST_CARRIED = 8
"""At most this many counterexamples of the test are tried on each single change."""

MOST_SINGLES = 80
"""The single changes of a test that takes long to judge that are looked at where none is a repair."""

POOL = 16
"""At most this many counterexamples of single changes are kept, to try other changes on."""


class RepairSearch(Trials):
    """Tries changes of one text."""

    def repairs(self, stronger: list[Edit], others: list[Edit], most: int) -> list[Changes]:
        """Minimal repairs, about the cheapest first. `stronger`: changes that only add order."""
        self.known_repairs.clear()
        self.survivors_of.clear()
        known = self.counterexamples(self.before)
        self.effort_divisor = 2 if self.instructions() > LARGE else 1
        why = reasons(known)
        numbers = [edit for edit in others if about_numbers(edit) and kind(edit) != "move"]
        numbers.sort(key=lambda edit: edit.group[3:] != ALIKE)
        asked = self._onward(numbers) if self.before.findings == {HANG} else self.guided(stronger, others)
        self.known_repairs += [asked] if asked else []
        predictable = [edit for edit in stronger if not edit.more and edit.adds <= 1]
        if self._hopeless(known, [edit for edit in predictable if _serves(edit, why)]) and not self._hopeless(
            known, predictable
        ):
            why |= {Reason.NO_FENCE_SC}
        predictable = [edit for edit in predictable if _serves(edit, why)]
        first = set(predictable)
        self.order_only = [edit for edit in predictable if self.carry.legal(edit) and not self.risky(edit)]
        self.useless.clear()
        self.cheaper_untried = False
        self.refuted_by.clear()
        hopeless = self._hopeless(known, predictable)
        if not hopeless:
            self._singles(predictable, set(stronger), why, most)
            if not self._single(asked):
                hopeless = not self.known_repairs and self._all_in_vain()
                if not hopeless:
                    self._sets(predictable, why, most, predictable=True)
        self._singles([edit for edit in (*stronger, *others) if edit not in first], set(stronger), why, most)
        if (
            not self._single(asked)
            and not (hopeless and broken_rules(known))
            and not (self.known_repairs and self.effort_divisor > 1)
        ):
            offered = [edit for edit in (*stronger, *others) if not moves_a_fence(edit)]
            if hopeless:
                reached = [edit for edit in offered if not self._passed_over(edit)]
                live = self._live(reached)
                if any(map(self.risky, live)):
                    self._sets(live, why, most, predictable=False)
                if not self.known_repairs and HANG in self.before.findings:
                    self._pairs([edit for edit in numbers if answers(edit, why)])
                if not self.known_repairs:
                    self._blind([edit for edit in reached if self.risky(edit)], most)
            else:
                self._sets(offered, why, most, predictable=False)
        if not self.known_repairs and self.aim.outcomes and not self.aim.stays:
            self._singles(self.accesses, set(), why, most)
        strong = all(any(map(makes_strong, repair)) for repair in self.known_repairs) and not self.asks_for_strong
        if strong and self.aim.outcomes and not self.aim.stays:
            self._flags()
        self.known_repairs.sort(key=cost)
        return self.known_repairs

    def _hopeless(self, known: list[TextCounterexample], edits: list[Edit]) -> bool:
        """True if a counterexample of the test survives all these changes."""
        legal = tuple(edit for edit in edits if self.carry.legal(edit) and not self.risky(edit))
        if legal not in self.survivors_of:
            self.survivors_of[legal] = self._survivors(known, legal)
        self.survivors, hopeless = self.survivors_of[legal]
        return hopeless

    def _survivors(self, known: list[TextCounterexample], legal: Changes) -> tuple[list[TextCounterexample], bool]:
        first = {counterexample.flag: counterexample for counterexample in reversed(known)}.values()
        survivors = [counterexample for counterexample in first if self.survives(counterexample, (), legal)]
        tried = by_turns(known)[:MOST_CARRIED]
        return survivors, bool(survivors) or any(self.survives(counterexample, (), legal) for counterexample in tried)

    def _passed_over(self, edit: Edit) -> bool:
        """True if an execution that survives all added order does not reach what a change concerns."""
        return self.risky(edit) and any(self.passed_by(counterexample, edit) for counterexample in self.survivors)

    def _all_in_vain(self, *more: Edit) -> bool:
        """True if the test is still wrong with `more` and all changes that only add order: no set of these suffices."""
        return self.counterexample(self._with_all(*more)) is not None

    def _hangs(self, edit: Edit) -> bool:
        """True if the test hangs with a change and all that only adds order: it hangs with less order as well."""
        return HANG not in self.before.findings and self.counterexample_of(self._with_all(edit), HANG) is not None

    def _with_all(self, *more: Edit) -> list[Edit]:
        """All that only adds order, and more."""
        implied = {group for edit in self.order_only for group in edit.implies}
        return [edit for edit in (*self.order_only, *more) if edit.group not in implied]

    def _live(self, offered: list[Edit]) -> list[Edit]:
        """The changes that may help: all that only add order, and others that are not known to be in vain."""
        shown = self.refuted_by.items()
        self.useless |= {
            edit
            for edit, seen in shown
            if any(self.survives(counterexample, (edit,), self.order_only) for counterexample in seen)
        }
        others = [edit for edit in offered if self.risky(edit) and edit not in self.useless and self.carry.legal(edit)]
        if len(others) <= FEW_LIVE:
            self.useless |= {edit for edit in others if self._all_in_vain(edit) or self._hangs(edit)}
        return [edit for edit in offered if edit not in self.useless]

    def _pairs(self, numbers: list[Edit]) -> None:
        """Two numbers of one kind that end a hang, first those of one thread."""
        pairs = [pair for pair in combinations(numbers, 2) if kind(pair[0]) == kind(pair[1])]
        pairs = [pair for pair in pairs if pair[0].group != pair[1].group]
        pairs.sort(key=lambda pair: (pair[0].group[0] != pair[1].group[0], cost(pair)))
        likely = (pair for pair in pairs[:MOST_PAIRS] if not (self._idle(*pair) or self._idle(*reversed(pair))))
        self.known_repairs += [self.needed(in_order(pair)) for pair in islice(filter(self.is_right, likely), 1)]

    def _idle(self, edit: Edit, more: Edit) -> bool:
        """True if a counterexample of one change does not reach what the other change concerns."""
        return any(self.passed_by(counterexample, more, (edit,)) for counterexample in self.refuted_by.get(edit, ()))

    def _blind(self, risky: list[Edit], most: int) -> None:
        """A few sets of changes of which each is in vain with all that only adds order."""
        sets = Sets(self, risky, frozenset(Reason))
        self.gave_up = (
            sets.search(
                most, lambda: FEW_SETS if self.known_repairs else FEW_BLIND // self.effort_divisor, predictable=False
            )
            or self.gave_up
        )

    def _single(self, asked: Changes) -> bool:
        """True if a single change is known to be a repair, other than the one that the explanations asked for."""
        return any(len(repair) == 1 and repair != asked for repair in self.known_repairs)

    def _sets(self, everything: list[Edit], why: frozenset[Reason], most: int, *, predictable: bool) -> None:
        """Sets of changes that suffice: first of those that answer the reasons, then of all."""
        known = self.counterexamples(self.before)
        while True:
            turns = Turns(self.text, why, lines(known), awaited_objects(known))
            likely = [edit for edit in everything if turns.turn(edit) <= RELEVANT]
            if self.known_repairs and len(likely) > MANY:
                likely = [edit for edit in likely if turns.turn(edit) <= NEARBY]
            more = self._hitting(likely, most, why, predictable=predictable)
            if self.known_repairs or more <= why:
                break
            why |= more
        serving = [edit for edit in everything if _serves(edit, why)]
        if not self.known_repairs and not broken_rules(known) and len(likely) < len(serving):
            self._hitting(serving, most, frozenset(Reason), predictable=predictable)

    def _hitting(
        self, offered: list[Edit], most: int, why: frozenset[Reason], *, predictable: bool
    ) -> frozenset[Reason]:
        """Sets of some changes; the reasons of an execution that is left, where these are others."""
        sets = Sets(self, offered, why)
        if not self.known_repairs and not sets.unanswered <= why:
            return sets.unanswered
        few = len(offered) > MANY or not (predictable or self.enumerates)
        patience = FEW_SETS if few else MORE_SETS if self.enumerates else MORE_SETS // 2
        most_sets = MOST_SETS // self.effort_divisor if predictable or self.enumerates else FEW_BLIND
        gave_up = sets.search(most, lambda: patience if self.known_repairs else most_sets, predictable=predictable)
        self.gave_up = self.gave_up or (gave_up and not self.known_repairs)
        return sets.unanswered

    def _flags(self) -> None:
        """A flag that one thread sets and another one waits for."""
        first = next((edit for edit in self.flags if self.carry.legal(edit) and self.is_right((edit,))), None)
        self.known_repairs += [] if first is None else [(first,)]

    # ---- one change ----------------------------------------------------------------------------------------------

    def _singles(self, offered: Iterable[Edit], adding: set[Edit], why: frozenset[Reason], most: int) -> None:
        """All single changes that suffice and are cheap enough to be listed. `adding`: those that only add order."""
        known = self.counterexamples(self.before)
        pool: list[tuple[TextCounterexample, Changes]] = [
            (counterexample, ()) for counterexample in by_turns(known)[:MOST_CARRIED]
        ]
        turns = Turns(self.text, why, lines(known))
        always = self.before.findings == {HANG} and not self.ended(self.text)  # more order ends no hang
        first, last, since = self.looked, self.tried, 0
        for edit in sorted(
            offered, key=lambda edit: (turns.turn(edit), edit.group[3:] != ALIKE, edit.cost, spot(edit))
        ):
            since += 1
            if (
                not (self.enumerates or self.known_repairs)
                and self.looked - first >= MOST_SINGLES // self.effort_divisor
            ):
                self.gave_up = True
                break
            cheaper = edit.cost < min(map(cost, self.known_repairs), default=0)
            patience = 2 * PATIENCE if cheaper and self.enumerates else PATIENCE // self.effort_divisor
            idle = self.known_repairs and (self.tried - last >= patience or since >= MUCH_PATIENCE)
            near = cheaper and turns.turn(edit) <= NEARBY
            tired = bool(idle) and (self.effort_divisor > 1 or not near)
            self.cheaper_untried = self.cheaper_untried or (tired and near)
            elsewhere = self.effort_divisor > 1 and self.known_repairs and turns.turn(edit) > RELEVANT
            if tired or elsewhere or self.enough(edit.cost, most) or self.covered((edit,)):
                continue
            if self.shown_already((edit,)):
                continue
            if (edit in adding and always and "commit" not in edit.text) or self._in_vain(edit, pool):
                continue
            if self.is_right((edit,)):
                last, since = self.tried, 0
                self.known_repairs = [repair for repair in self.known_repairs if not covers(repair, (edit,))]
                self.known_repairs.append((edit,))
            elif not self.risky(edit):
                if edit in adding and len(pool) < POOL:
                    pool += [(counterexample, (edit,)) for counterexample in self.counterexamples(self.failed)[:1]]
            elif self.skips_phase:
                self.useless.add(edit)
            else:
                self.refuted_by[edit] = self.counterexamples(self.failed, new=True)[:1]

    def _in_vain(self, edit: Edit, pool: list[tuple[TextCounterexample, Changes]]) -> bool:
        """True if a counterexample of the test survives the change."""
        if not self.carry.legal(edit):
            return True
        if self.risky(edit):
            known = [counterexample for counterexample, applied in pool if not applied]
            return self.waits_in_vain((edit,)) or any(
                self.passed_by(speaking, edit) or self.moved_in_vain(speaking, edit) for speaking in known
            )
        for number, (counterexample, applied) in enumerate(pool):
            if self.survives(counterexample, applied, (edit,)):
                pool.insert(0, pool.pop(number))  # what refuted one change is likely to refute the next
                return True
        return False

    def guided(self, stronger: list[Edit], others: list[Edit]) -> Changes:
        """The changes that the explanations ask for, one execution after the other, as far as they are needed."""
        todo: list[tuple[Changes, AnswersOfTest | None]] = [((), self.before)]
        seen: set[Changes] = set()
        while todo and len(seen) < GUIDED:
            applied, now = todo.pop()
            further: list[tuple[Changes, AnswersOfTest | None]] = []
            for more in self._asked(now, applied, stronger, others):
                edits = in_order({*applied, *more})
                if edits in seen or len(edits) > MOST_CHANGES:
                    continue
                seen.add(edits)
                if self.is_right(edits, fully=True):
                    return self._cheaper(self.needed(edits), stronger)
                further.append((edits, self.failed))
                for other in self._earlier(more, stronger) if _left(self.failed) < _left(now) else ():
                    edits = in_order({*applied, *other})
                    if edits not in seen:
                        seen.add(edits)
                        if self.is_right(edits, fully=True):
                            return self._cheaper(self.needed(edits), stronger)
                        further.append((edits, self.failed))
            todo += reversed(sorted(further, key=lambda step: _left(step[1])))
        return ()

    def _asked(
        self, now: AnswersOfTest | None, applied: Changes, stronger: list[Edit], others: list[Edit]
    ) -> list[frozenset[Edit]]:
        """Sets of changes that answer an explanation each; first those whose effect is known."""
        speaking = {counterexample.flag: counterexample for counterexample in reversed(self.counterexamples(now))}
        asked = [
            more
            for counterexample in reversed(speaking.values())
            for more in asked_for(counterexample, self.carry, applied, stronger, others)
        ]
        heard = [more for more in dict.fromkeys(asked) if not self.waits_in_vain((*applied, *more))]
        return sorted(heard, key=lambda edits: any(map(self.risky, edits)))

    def _earlier(self, edits: frozenset[Edit], offered: list[Edit]) -> list[frozenset[Edit]]:
        """The sets in which one wait stands further up in its thread."""
        sets: list[frozenset[Edit]] = []
        for edit in edits:
            thread, index, name = edit.group[:3]
            if edit.rank == 0 and edit.adds > 0 and isinstance(index, int):
                same = [edit for edit in offered if edit.group[0] == thread and edit.group[2] == name]
                above = [edit for edit in same if isinstance(at := edit.group[1], int) and at < index]
                sets += (edits - {edit} | {higher} for higher in sorted(above, key=lambda higher: -higher.start)[:UP])
        return sets

    def _cheaper(self, edits: Changes, offered: list[Edit]) -> Changes:
        """A repair with cheaper fences and spellings where those are enough."""
        for edit in sorted(edits, key=lambda edit: -edit.cost):
            rest = tuple(kept for kept in edits if kept is not edit)
            for other in sorted(offered, key=lambda edit: edit.cost):
                less = other.group in edit.implies or (other.group == edit.group and other.level < edit.level)
                if less and other.cost < edit.cost and self.is_right((*rest, other)):
                    return self._cheaper(in_order((*rest, other)), offered)
        return edits

    def _onward(self, numbers: list[Edit]) -> Changes:
        """Other numbers with which a test that hangs gets further, one after the other, until it gets to its end."""
        applied: Changes = ()
        now = self.before
        for _ in range(MOST_NUMBERS):
            why = reasons(self.counterexamples(now))
            alike = [edit for edit in numbers if applied and kind(edit) == kind(applied[0])]
            others = [edit for edit in numbers if edit not in alike and answers(edit, why)]
            step = self._step(applied, alike, now) or self._step(applied, others, now)
            if step is None or not step[1]:
                return () if step is None else self.needed(step[0])
            applied, now = step[0], step[1]
        return ()

    def _step(
        self, applied: Changes, numbers: list[Edit], now: AnswersOfTest
    ) -> tuple[Changes, AnswersOfTest | None] | None:
        """Change one more number: the one that ends the hang, or else the one with which the test gets furthest. None
        if none gets it further.
        """
        best: tuple[Changes, AnswersOfTest] | None = None
        far = progress(now)
        stuck = [counterexample for counterexample in self.counterexamples(now) if counterexample.flag == HANG]
        for edit in numbers:
            if edit.group in {change.group for change in applied} or any(
                self.passed_by(counterexample, edit) for counterexample in stuck
            ):
                continue
            more = in_order((*applied, edit))
            if self.is_right(more):
                return more, None
            if self.failed is not None and self.failed.hangs and progress(self.failed) > far:
                far, best = progress(self.failed), (more, self.failed)
        return best


def _serves(edit: Edit, why: frozenset[Reason]) -> bool:
    """True unless the change adds a fence.sc that no reason asks for: cheaper fences do nearly as much there."""
    return "fence.sc" not in edit.text or Reason.NO_FENCE_SC in why


def _left(now: AnswersOfTest | None) -> tuple[int, int]:
    """A measure of what is wrong with a test that is not right yet."""
    return (99, 0) if now is None else (len(now.findings), len(now.counterexamples))
