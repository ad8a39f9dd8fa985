"""Sets of changes, by implicit hitting sets.

In: the changes that may be made, what tries them. Out: minimal sets that suffice, the cheapest first. If a
counterexample survives some changes, a repair has one of the others: this is a demand. The cheapest set that meets all
demands is judged in full. If it does not suffice, its counterexamples lead to further demands.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from memmodel.answer import HANG
from memmodel.base.rows import bits
from memmodel.repair.edits import Edit, about_numbers
from memmodel.repair.hints import kind, reasons
from memmodel.repair.judge import TextCounterexample
from memmodel.repair.searching.ideas import Idea, idea, stronger
from memmodel.repair.searching.survivors import Survivors
from memmodel.repair.searching.trials import Trials
from memmodel.repair.searching.turns import Changes, cost, covers, in_order
from memmodel.why.records import Reason

MOST_CHANGES = 8
"""Repairs of more changes than this are not looked for."""

EACH = 2
"""At most this many counterexamples of a set that does not suffice lead to demands."""

MOST_SEEN = 20_000
"""At most this many sets are gone through for the next one to be tried."""

EXPLAINED = 4
"""At most this many counterexamples that survive all the changes are explained."""


TINY = 1e-6
"""Sums of costs differ by less than this if only the order of summing does."""

LOOKS = 2
"""At most this many sets are looked at for each that is judged, once a repair is known."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A repair that makes all the changes `given` also makes one of `among`. Both are masks, as `Masks` has them."""

    given: int
    among: int


class Masks:
    """Sets of changes as numbers, a bit for each change in a given order: thousands of sets are gone through."""

    def __init__(self, ordered: Sequence[Edit]) -> None:
        self.ordered = list(dict.fromkeys(ordered))
        self.all = (1 << len(self.ordered)) - 1
        self._bits = {edit: 1 << number for number, edit in enumerate(self.ordered)}
        self.numbers = self.matching(about_numbers)
        groups: dict[object, int] = {}
        for edit, bit in self._bits.items():
            groups[edit.group] = groups.get(edit.group, 0) | bit
        self._groups = groups
        self._choices: dict[int, list[tuple[int, Edit, int]]] = {}
        self._kinds: dict[Hashable, int] = {}
        for edit, bit in self._bits.items():
            for change_kind in idea((edit,)):
                self._kinds[change_kind] = self._kinds.get(change_kind, 0) | bit

    def matching(self, is_one: Callable[[Edit], bool]) -> int:
        return sum(bit for edit, bit in self._bits.items() if is_one(edit))

    def mask(self, edits: Iterable[Edit]) -> int:
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
        return [self.matching(lambda edit, other=other: covers((edit,), (other,))) for other in known]  # type: ignore[misc]

    def having(self, known: Idea) -> list[int]:
        """For each kind of change of an idea, the changes of that kind or a stronger one."""
        return [
            sum(self._kinds.get(alternative, 0) for alternative in {change_kind, *stronger(change_kind)})
            for change_kind in known
        ]


def _all_in(chosen: int, ways: list[int]) -> bool:
    return all(chosen & way for way in ways)


class Sets:
    """Sets of the changes `offered`; at most one in a set changes a number or moves something.

    `why`: the reasons that the changes offered may answer. `unanswered`: reasons of counterexamples that survive them.
    """

    def __init__(self, trials: Trials, offered: Iterable[Edit], why: frozenset[Reason]) -> None:
        self.trials = trials
        self.ordered = sorted(offered, key=lambda edit: ("fence.sc" in edit.text, edit.cost, edit.start))
        self.risky = frozenset(edit for edit in self.ordered if trials.risky(edit))
        self.predictable = [edit for edit in self.ordered if edit not in self.risky]
        self.why = why
        self.unanswered: frozenset[Reason] = frozenset()
        self._explained = 0
        self._cut = False
        self._survivors = Survivors(trials, trials.endings)
        first = {
            counterexample.flag: counterexample for counterexample in reversed(trials.counterexamples(trials.before))
        }
        self._masks = Masks(self.ordered)
        self._fit: dict[int, int] = {}
        self._demands = [Demand(0, self._among(counterexample, ())) for counterexample in first.values()]
        self._repairs = [self._masks.covering(edits) for edits in trials.known_repairs]

    def search(self, most: int, patience: Callable[[], int], *, predictable: bool) -> bool:
        """Add minimal repairs to those known until `patience` programs in a row bring none. True if it gave up.

        `predictable`: only changes whose effect on an execution is known. Stops early if an unanswered reason is not
        in `why`: then other changes have to be offered.
        """
        trials = self.trials
        last, looked = trials.tried, trials.looked
        while trials.tried - last < patience() and trials.looked - looked < self._looks() * patience():
            hit = self._cheapest(frozenset(self.predictable) if predictable else None)
            if hit is None or trials.enough(cost(tuple(hit)), most):
                return hit is None and self._cut
            dearer = bool(trials.known_repairs) and cost(tuple(hit)) > min(map(cost, trials.known_repairs))
            if dearer and trials.tried - last >= patience() // trials.effort_divisor:
                return True
            if trials.is_right(hit):
                edits = self._needed(in_order(hit))
                self._repairs.append(self._masks.covering(edits))
                ideas = len(trials.ideas())
                trials.known_repairs.append(edits)
                if len(trials.ideas()) > ideas:  # another form of what is known is nothing new
                    last, looked = trials.tried, trials.looked
                continue
            self._demands += self._demands_of(hit)
            if not trials.known_repairs and not self.unanswered <= self.why:
                return False
        return True

    def _looks(self) -> int:
        return LOOKS if self.trials.known_repairs else 1

    def _needed(self, edits: Changes) -> Changes:
        """A repair without the changes that it does not need."""
        for edit in sorted(edits, key=lambda edit: -edit.cost):
            rest = tuple(kept for kept in edits if kept is not edit)
            if rest and not self._open(self._masks.mask(rest)) and self.trials.is_right(rest):
                return self._needed(rest)
        return edits

    def _open(self, chosen: int) -> list[Demand]:
        """The demands that a set does not meet."""
        return [demand for demand in self._demands if not (demand.given & ~chosen or demand.among & chosen)]

    def _demands_of(self, hit: frozenset[Edit]) -> list[Demand]:
        """The demands that follow from a set that does not suffice."""
        trials, known, of = self.trials, hit & self.risky, self._masks.mask
        demands = []
        for counterexample in islice(trials.counterexamples(trials.failed, new=True), EACH):
            new = counterexample.flag if trials.is_new(counterexample) else None
            demands.append(
                Demand(of(known if new is None else hit), self._among(counterexample, in_order(hit)) & ~of(hit))
            )
            if new is not None and known < hit:  # an unpredictable change may do it by itself
                earlier = trials.counterexample_of(known, new)
                demands += (
                    [] if earlier is None else [Demand(of(known), self._among(earlier, in_order(known)) & ~of(known))]
                )
        return demands or [Demand(of(hit), self._masks.all & ~of(hit))]

    def _among(self, counterexample: TextCounterexample, applied: Changes) -> int:
        """The changes of which a repair has one: all but those that the counterexample survives."""
        predictable = [edit for edit in self.predictable if edit not in applied]
        kept = self._survivors.as_before(counterexample, applied, predictable)
        if kept is None:
            kept = self._survivors.worked_out(counterexample, applied, predictable)
            if (
                set(kept) == set(predictable)
                and not self.trials.known_repairs
                and self.unanswered <= self.why < frozenset(Reason)
            ):
                self._explained += 1
                self.unanswered |= reasons([counterexample]) if self._explained <= EXPLAINED else frozenset()
        past = {
            edit for edit in self.risky if edit not in applied and self.trials.passed_by(counterexample, edit, applied)
        }
        return self._masks.all & ~self._masks.mask({*kept, *applied, *past})

    def _cheapest(self, allowed: frozenset[Edit] | None) -> frozenset[Edit] | None:
        """The cheapest set that meets all demands and contains no known repair; None if there is none."""
        trials, masks = self.trials, self._masks
        offered = masks.all if allowed is None else masks.mask(allowed)
        shown = [(cost(its[0]), masks.having(idea(its[0]))) for its in trials.ideas()]
        best: tuple[float, int] | None = None
        pending: list[tuple[float, int]] = [(0.0, 0)]
        seen: set[int] = set()
        while pending and len(seen) < MOST_SEEN:
            price, chosen = pending.pop()
            if chosen in seen or (best is not None and price >= best[0]):
                continue
            seen.add(chosen)
            if any(_all_in(chosen, ways) for ways in self._repairs):
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
        """The changes that may join a set with these changes of numbers and moves.

        A set has one such change; of a test that hangs, it may change two numbers of one kind.
        """
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
        return masks.all & ~masks.numbers | masks.matching(lambda edit: about_numbers(edit) and kind(edit) in kinds)
