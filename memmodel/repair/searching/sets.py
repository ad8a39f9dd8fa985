"""Sets of changes, by implicit hitting sets.

In: the changes that may be made, what tries them. Out: minimal sets that suffice, the cheapest first. Changes that do
not suffice, as many as possible, say that a repair has one of the others. That is learnt from single executions that
are bad and stay consistent with the changes made. The cheapest set that answers all of this is judged in full; if it
does not suffice, there is more to answer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from memmodel.answer import HANG
from memmodel.base.rows import bits
from memmodel.repair.edits import Edit, about_numbers
from memmodel.repair.hints import kind, reasons
from memmodel.repair.judge import Against
from memmodel.repair.searching.ideas import Idea, idea, stronger
from memmodel.repair.searching.survivors import Survivors
from memmodel.repair.searching.trials import Trials
from memmodel.repair.searching.turns import Changes, cost, covers, in_order
from memmodel.why.records import Reason

MOST_CHANGES = 8
"""Repairs of more changes than this are not looked for."""

EACH = 2
"""So many executions of a set of changes that does not suffice are learnt from."""

MOST_SEEN = 20_000
"""So many sets are gone through for the next one to be tried."""

EXPLAINED = 4
"""So many executions that none of the changes ends are explained."""


TINY = 1e-6
"""Sums of costs differ by less than this if only the order of summing does."""

LOOKS = 2
"""So many sets are looked at for each that is judged, once a repair is known."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A repair that makes all the changes `given` makes one of `among` as well. Both are masks, as `Masks` has them."""

    given: int
    among: int


class Masks:
    """Sets of changes as numbers, a bit for each change in a given order: thousands of sets are gone through."""

    def __init__(self, ordered: Sequence[Edit]) -> None:
        self.ordered = list(dict.fromkeys(ordered))
        self.all = (1 << len(self.ordered)) - 1
        self._bits = {edit: 1 << number for number, edit in enumerate(self.ordered)}
        self.numbers = self.where(about_numbers)
        groups: dict[object, int] = {}
        for edit, bit in self._bits.items():
            groups[edit.group] = groups.get(edit.group, 0) | bit
        self._groups = groups
        self._choices: dict[int, list[tuple[int, Edit, int]]] = {}
        self._kinds: dict[Hashable, int] = {}
        for edit, bit in self._bits.items():
            for kind_ in idea((edit,)):
                self._kinds[kind_] = self._kinds.get(kind_, 0) | bit

    def where(self, is_one: Callable[[Edit], bool]) -> int:
        return sum(bit for edit, bit in self._bits.items() if is_one(edit))

    def of(self, edits: Iterable[Edit]) -> int:
        return sum(self._bits[edit] for edit in edits)

    def edits(self, mask: int) -> frozenset[Edit]:
        return frozenset(self.ordered[number] for number in bits(mask))

    def choices(self, mask: int) -> list[tuple[int, Edit, int]]:
        """The changes of a set, the dearest first: each with its bit, and those of its group."""
        if mask not in self._choices:
            edits = sorted(self.edits(mask), key=lambda edit: (-edit.cost, edit.start, edit.what))
            self._choices[mask] = [(self._bits[edit], edit, self._groups[edit.group]) for edit in edits]
        return self._choices[mask]

    def covering(self, known: Iterable[Edit]) -> list[int]:
        """For each change of a repair, those that do it too: a set with one of each does all that the repair does."""
        return [self.where(lambda edit, other=other: covers((edit,), (other,))) for other in known]  # type: ignore[misc]

    def having(self, known: Idea) -> list[int]:
        """For each kind of change of an idea, the changes of that kind or a stronger one."""
        return [sum(self._kinds.get(alternative, 0) for alternative in {kind_, *stronger(kind_)}) for kind_ in known]


def _all_in(chosen: int, ways: list[int]) -> bool:
    return all(chosen & way for way in ways)


class Sets:
    """Sets of the changes `offered`; of other numbers and moves at most one in a set.

    `why`: the reasons that the changes offered may answer. `beyond`: reasons of an execution that they cannot end.
    """

    def __init__(self, trials: Trials, offered: Iterable[Edit], why: frozenset[Reason]) -> None:
        self.trials = trials
        self.ordered = sorted(offered, key=lambda edit: ("fence.sc" in edit.text, edit.cost, edit.start))
        self.risky = frozenset(edit for edit in self.ordered if trials.risky(edit))
        self.predictable = [edit for edit in self.ordered if edit not in self.risky]
        self.why = why
        self.beyond: frozenset[Reason] = frozenset()
        self._explained = 0
        self._cut = False
        self._survivors = Survivors(trials, trials.answers)
        first = {against.flag: against for against in reversed(trials.speaking(trials.before))}
        self._masks = Masks(self.ordered)
        self._fit: dict[int, int] = {}
        self._needs = [Demand(0, self._among(against, ())) for against in first.values()]
        self._done = [self._masks.covering(edits) for edits in trials.best]

    def search(self, most: int, patience: Callable[[], int], *, predictable: bool) -> bool:
        """Add minimal repairs to those known until nothing new comes up in `patience` programs; whether it was that.

        `predictable`: only changes whose effect on an execution is known. Stops where `beyond` goes beyond `why`.
        """
        trials = self.trials
        last, looked = trials.tried, trials.looked
        while trials.tried - last < patience() and trials.looked - looked < self._looks() * patience():
            hit = self._cheapest(frozenset(self.predictable) if predictable else None)
            if hit is None or trials.enough(cost(tuple(hit)), most):
                return hit is None and self._cut
            dearer = bool(trials.best) and cost(tuple(hit)) > min(map(cost, trials.best))
            if dearer and trials.tried - last >= patience() // trials.slow:
                return True
            if trials.is_right(hit):
                edits = self._needed(in_order(hit))
                self._done.append(self._masks.covering(edits))
                ideas = len(trials.ideas())
                trials.best.append(edits)
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
        for edit in sorted(edits, key=lambda edit: -edit.cost):
            rest = tuple(kept for kept in edits if kept is not edit)
            if rest and not self._open(self._masks.of(rest)) and self.trials.is_right(rest):
                return self._needed(rest)
        return edits

    def _open(self, chosen: int) -> list[Demand]:
        """The needs that a set does not meet."""
        return [demand for demand in self._needs if not (demand.given & ~chosen or demand.among & chosen)]

    def _learnt(self, hit: frozenset[Edit]) -> list[Demand]:
        """What a set that does not suffice says of those that do."""
        trials, known, of = self.trials, hit & self.risky, self._masks.of
        demands = []
        for against in islice(trials.speaking(trials.failed, new=True), EACH):
            new = against.flag if trials.is_new(against) else None
            demands.append(Demand(of(known if new is None else hit), self._among(against, in_order(hit)) & ~of(hit)))
            if new is not None and known < hit:  # an unpredictable change may do it by itself
                earlier = trials.flagged(known, new)
                demands += (
                    [] if earlier is None else [Demand(of(known), self._among(earlier, in_order(known)) & ~of(known))]
                )
        return demands or [Demand(of(hit), self._masks.all & ~of(hit))]

    def _among(self, against: Against, applied: Changes) -> int:
        """The changes of which a repair has one: those that remain when as many are made as the execution survives."""
        predictable = [edit for edit in self.predictable if edit not in applied]
        kept = self._survivors.as_before(against, applied, predictable)
        if kept is None:
            kept = self._survivors.worked_out(against, applied, predictable)
            if set(kept) == set(predictable) and not self.trials.best and self.beyond <= self.why < frozenset(Reason):
                self._explained += 1
                self.beyond |= reasons([against]) if self._explained <= EXPLAINED else frozenset()
        past = {edit for edit in self.risky if edit not in applied and self.trials.passed_by(against, edit, applied)}
        return self._masks.all & ~self._masks.of({*kept, *applied, *past})

    def _cheapest(self, allowed: frozenset[Edit] | None) -> frozenset[Edit] | None:
        """The cheapest set that meets all needs and contains nothing that is done; None if there is none."""
        trials, masks = self.trials, self._masks
        offered = masks.all if allowed is None else masks.of(allowed)
        shown = [(cost(its[0]), masks.having(idea(its[0]))) for its in trials.ideas()]
        best: tuple[float, int] | None = None
        pending: list[tuple[float, int]] = [(0.0, 0)]
        seen: set[int] = set()
        while pending and len(seen) < MOST_SEEN:
            price, chosen = pending.pop()
            if chosen in seen or (best is not None and price >= best[0]):
                continue
            seen.add(chosen)
            if any(_all_in(chosen, ways) for ways in self._done):
                continue
            if any(_all_in(chosen, ways) and least <= price + TINY for least, ways in shown) and trials.shown_already(
                masks.edits(chosen)
            ):
                continue
            open_ = self._open(chosen)
            if not open_:
                best = (price, chosen)
                continue
            if chosen.bit_count() == MOST_CHANGES:
                continue
            trials.in_time()
            free = offered & self._fitting(chosen & masks.numbers)
            for bit, edit, group in masks.choices(min(open_, key=lambda demand: demand.among.bit_count()).among):
                if bit & free and not group & chosen and trials.carry.legal(edit):
                    pending.append((price + edit.cost, chosen | bit))
        self._cut = bool(pending)
        return None if best is None else masks.edits(best[1])

    def _fitting(self, numbers: int) -> int:
        """What goes with these numbers and moves: they come alone; of a test that hangs, two numbers of one kind."""
        if numbers not in self._fit:
            self._fit[numbers] = self._fitting_all(numbers)
        return self._fit[numbers]

    def _fitting_all(self, numbers: int) -> int:
        masks = self._masks
        if not numbers:
            return masks.all
        kinds = {kind(edit) for edit in masks.edits(numbers)} - {"move"}
        if HANG not in self.trials.before.findings or numbers.bit_count() > 1 or not kinds:
            return masks.all & ~masks.numbers
        return masks.all & ~masks.numbers | masks.where(lambda edit: about_numbers(edit) and kind(edit) in kinds)
