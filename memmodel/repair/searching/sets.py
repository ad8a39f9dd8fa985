"""Sets of changes, by implicit hitting sets.

In: the changes that may be made, what tries them. Out: minimal sets that suffice, the cheapest first. Changes that do
not suffice, as many as possible, say that a repair has one of the others. That is learnt from single executions that
are bad and stay consistent with the changes made. The cheapest set that answers all of this is judged in full; if it
does not suffice, there is more to answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from memmodel.answer import HANG
from memmodel.base.classes import dataclass
from memmodel.repair.edits import Edit, about_numbers
from memmodel.repair.hints import kind, reasons
from memmodel.repair.judge import Against
from memmodel.repair.searching.trials import Trials
from memmodel.repair.searching.turns import Changes, cost, covers, in_order
from memmodel.why.records import Reason

MOST_CHANGES = 8
"""Repairs of more changes than this are not looked for."""

EACH = 2
"""So many executions of a set of changes that does not suffice are learnt from."""

KNOWN = 6
"""So many answers to one execution are tried on another before its own are worked out."""


MOST_SEEN = 20_000
"""So many sets are gone through for the next one to be tried."""

EXPLAINED = 4
"""So many executions that none of the changes ends are explained."""


LOOKS = 2
"""So many sets are looked at for each that is judged, once a repair is known."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A repair that makes all the changes `given` makes one of `among` as well."""

    given: frozenset[Edit]
    among: frozenset[Edit]


class Sets:
    """Sets of the changes `offered`; of other numbers and moves at most one in a set.

    `why`: the reasons that the changes offered may answer. `beyond`: reasons of an execution that they cannot end.
    """

    def __init__(self, trials: Trials, offered: Iterable[Edit], why: frozenset[Reason]) -> None:
        self.trials = trials
        self.ordered = sorted(offered, key=lambda one: ("fence.sc" in one.text, one.cost, one.start))
        self.risky = frozenset(edit for edit in self.ordered if trials.risky(edit))
        self.told = [edit for edit in self.ordered if edit not in self.risky]
        self.why = why
        self.beyond: frozenset[Reason] = frozenset()
        self._explained = 0
        self._cut = False
        self._answers = trials.answers
        first = {one.flag: one for one in reversed(trials.speaking(trials.before))}
        self._needs = [Demand(frozenset(), self._among(one, ())) for one in first.values()]
        self._done = [frozenset(one) for one in trials.best]

    def search(self, most: int, patience: Callable[[], int], *, told: bool) -> bool:
        """Add minimal repairs to those known until nothing new comes up in `patience` programs; whether it was that.

        `told`: only of changes whose effect on an execution is known. Stops where `beyond` goes beyond `why`.
        """
        trials = self.trials
        last, looked = trials.tried, trials.looked
        while trials.tried - last < patience() and trials.looked - looked < self._looks() * patience():
            hit = self._cheapest(frozenset(self.told) if told else None)
            if hit is None or trials.enough(cost(tuple(hit)), most):
                return hit is None and self._cut
            dearer = bool(trials.best) and cost(tuple(hit)) > min(map(cost, trials.best))
            if dearer and trials.tried - last >= patience() // trials.slow:
                return True
            if trials.good(hit):
                found = self._needed(in_order(hit))
                self._done.append(frozenset(found))
                ideas = len(trials.ideas())
                trials.best.append(found)
                if len(trials.ideas()) > ideas:  # another form of what is known is nothing new
                    last, looked = trials.tried, trials.looked
                continue
            self._needs += self._learnt(hit)
            if not trials.best and not self.beyond <= self.why:
                return False
        return True

    def _looks(self) -> int:
        return LOOKS if self.trials.best else 1

    def _needed(self, edits: Changes) -> Changes:
        """A repair less what it does not need; what meets all needs is judged to know."""
        for edit in sorted(edits, key=lambda one: -one.cost):
            rest = tuple(one for one in edits if one is not edit)
            if rest and not self._open(frozenset(rest)) and self.trials.good(rest):
                return self._needed(rest)
        return edits

    def _open(self, chosen: frozenset[Edit]) -> list[Demand]:
        """The needs that a set does not meet."""
        return [one for one in self._needs if one.given <= chosen and not one.among & chosen]

    def _learnt(self, hit: frozenset[Edit]) -> list[Demand]:
        """What a set that does not suffice says of those that do."""
        trials, given = self.trials, hit & self.risky
        found = []
        for one in islice(trials.speaking(trials.failed, new=True), EACH):
            new = one.flag if trials.is_new(one) else None
            found.append(Demand(given if new is None else hit, self._among(one, in_order(hit)) - hit))
            if new is not None and given < hit:  # what is not told may do it by itself
                earlier = trials.flagged(given, new)
                found += [] if earlier is None else [Demand(given, self._among(earlier, in_order(given)) - given)]
        return found or [Demand(hit, frozenset(self.ordered) - hit)]

    def _among(self, against: Against, made: Changes) -> frozenset[Edit]:
        """The changes of which a repair has one: those that remain when as many are made as the execution survives."""
        told = [one for one in self.told if one not in made]
        kept = self._as_before(against, made, told)
        if kept is None:
            kept = self._survived(against, made, told)
            answers = frozenset(told) - frozenset(kept)
            self._answers.insert(0, answers)
            if not answers and not self.trials.best and self.beyond <= self.why < frozenset(Reason):
                self._explained += 1
                self.beyond |= reasons([against]) if self._explained <= EXPLAINED else frozenset()
        past = {one for one in self.risky if one not in made and self.trials.passed_by(against, one, made)}
        return frozenset(self.ordered) - frozenset(kept) - frozenset(made) - past

    def _as_before(self, against: Against, made: Changes, told: list[Edit]) -> list[Edit] | None:
        """All changes but those that end another execution, if this one survives them."""
        for number, answers in enumerate(self._answers[:KNOWN]):
            rest = [one for one in told if one not in answers]
            if len(rest) < len(told) and self.trials.survives(against, made, rest):
                self._answers.insert(0, self._answers.pop(number))
                return rest
        return None

    def _survived(self, against: Against, made: Changes, told: list[Edit]) -> list[Edit]:
        """As many changes as the execution survives together: all that it survives part by part, if it can."""
        parts = self._parted(against, made, told, together=False)
        if self.trials.survives(against, made, parts):
            return parts
        return self._parted(against, made, parts, together=True)

    def _parted(self, against: Against, made: Changes, told: list[Edit], *, together: bool) -> list[Edit]:
        """The changes that the execution survives; what is stronger than one that ends it is not tried."""
        kept: list[Edit] = []
        ending: set[tuple[object, ...]] = set()
        todo = [told]
        while todo:
            chunk = [one for one in todo.pop() if one.group not in ending and not one.implies & ending]
            if not chunk:
                continue
            if self.trials.survives(against, made, (*kept, *chunk) if together else chunk):
                kept += chunk
            elif len(chunk) > 1:
                middle = len(chunk) // 2
                todo += [chunk[middle:], chunk[:middle]]
            else:
                ending.add(chunk[0].group)
        return kept

    def _cheapest(self, allowed: frozenset[Edit] | None) -> frozenset[Edit] | None:
        """The cheapest set that meets all needs and contains nothing that is done; None if there is none."""
        trials = self.trials
        best: tuple[float, frozenset[Edit]] | None = None
        pending: list[tuple[float, frozenset[Edit]]] = [(0.0, frozenset())]
        seen: set[frozenset[Edit]] = set()
        while pending and len(seen) < MOST_SEEN:
            price, chosen = pending.pop()
            if chosen in seen or (best is not None and price >= best[0]):
                continue
            seen.add(chosen)
            if any(covers(chosen, one) for one in self._done) or trials.shown_already(chosen):
                continue
            open_ = self._open(chosen)
            if not open_:
                best = (price, chosen)
                continue
            if len(chosen) == MOST_CHANGES:
                continue
            trials.in_time()
            numbers = frozenset(edit for edit in chosen if about_numbers(edit))
            groups = {edit.group for edit in chosen}
            for edit in sorted(min(open_, key=_choices).among, key=lambda one: (-one.cost, one.start, one.what)):
                fits = (allowed is None or edit in allowed) and edit.group not in groups and self._fits(edit, numbers)
                if fits and trials.carry.legal(edit):
                    pending.append((price + edit.cost, chosen | {edit}))
        self._cut = bool(pending)
        return None if best is None else best[1]

    def _fits(self, edit: Edit, numbers: frozenset[Edit]) -> bool:
        """Other numbers and moves come alone; of a test that hangs, two numbers of one kind."""
        if not numbers or not about_numbers(edit):
            return True
        kinds = {kind(one) for one in numbers}
        hangs = HANG in self.trials.before.findings
        return hangs and len(numbers) == 1 and kinds == {kind(edit)} and kind(edit) != "move"


def _choices(need: Demand) -> int:
    return len(need.among)
