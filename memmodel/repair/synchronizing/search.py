"""The cheapest set of changes after which a test is right, and the proof that no cheaper set of them is.

In: `Trials` of a text, changes with their prices. Out: `Reached`: a set, or a bound. The search is by implicit hitting
sets. The cheapest set that meets all demands is judged. If it is not right, a counterexample leads to a new demand: a
right set makes at least one of certain other changes. The first set that is right is the cheapest, since every cheaper
one fails a demand.

Settled here: what a counterexample demands. It is carried to a text with as few changes that wait or signal as
possible, and with as many other changes as possible. It is a counterexample of every set in between. For changes that
add order, `carry` shows that. For waits it holds because a wait takes executions away and adds none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import monotonic

from memmodel.errors import BudgetSpent
from memmodel.program.lowered import LoweredTest
from memmodel.repair.edits import Edit, apply
from memmodel.repair.glance import once_more
from memmodel.repair.judge import TextCounterexample, parse
from memmodel.repair.searching.survivors import KNOWN, Survivors
from memmodel.repair.searching.trials import Trials
from memmodel.repair.searching.turns import Changes, in_order
from memmodel.solve.cheapest import Cheapest
from memmodel.solve.seek import OUTCOME

EACH = 2
"""At most this many counterexamples of a set that does not suffice lead to demands."""

WAIT = re.compile(r"wait\.parity[^;]*(\[[^]]*\]), (\S+);")
"""A wait for a phase: a thread gets one for each object and parity."""

OUT_OF_TIME = "the time for the search ran out"
BROKEN = "the proof does not hold, since a set that it excludes is right (a fault of memmodel)"

TINY = 1e-6
"""Sums of costs differ by less than this if only the order of summing does."""


@dataclass(frozen=True, slots=True)
class Reached:
    """The end of a search. `changes`: the cheapest set that is right as far as is known; None: none is known.

    `bound`: no set that costs less is right. `stopped`: why the search stopped; empty if it was done.
    """

    changes: Changes | None
    bound: float
    stopped: str = ""


class CheapestSearch:
    """Sets of `offered` changes. `price`: what a change adds to the cost of a program. `given`: changes that are made
    beside each set. `demands`: how many there are."""

    def __init__(
        self,
        name: str,
        trials: Trials,
        offered: Sequence[Edit],
        price: Callable[[Edit], float],
        given: frozenset[Edit] = frozenset(),
    ) -> None:
        self.name = name
        self.given = given
        self.trials = trials
        self.offered = list(dict.fromkeys(offered))
        self.price = {edit: price(edit) for edit in self.offered}
        self.demands = 0
        self._number = {edit: number for number, edit in enumerate(self.offered)}
        self._order = [edit for edit in self.offered if not trials.risky(edit)]
        self._others = [edit for edit in self.offered if trials.risky(edit)]
        self._survivors = Survivors(trials, [])
        self._stays: list[frozenset[Edit]] = []
        self._read: dict[str, tuple[LoweredTest, ...] | None] = {}
        self._master = Cheapest([self.price[edit] for edit in self.offered])
        groups: dict[object, list[int]] = {}
        for edit in self.offered:
            groups.setdefault(edit.group, []).append(self._number[edit])
            wait = WAIT.search(edit.text)
            if wait is not None:
                groups.setdefault((edit.group[0], *wait.groups()), []).append(self._number[edit])
        for numbers in groups.values():
            self._master.forbid_pairs(numbers)

    def search(self, known: Changes | None = None, below: float | None = None) -> Reached:
        """The cheapest set, as far as time allows. `known`: one that is right. `below`: dearer ones are not wanted."""
        best = known
        bound, stopped = 0.0, ""
        try:
            before = [] if self.given else self.trials.counterexamples(self.trials.before)
            for counterexample in {it.flag: it for it in reversed(before)}.values():
                self._demand(counterexample, frozenset())
            while True:
                self.trials.in_time()
                numbers = self._master.choice(self.trials.until - monotonic())
                if numbers is None:
                    stopped = BROKEN if best is not None else ""
                    break
                chosen = frozenset(self.offered[number] for number in numbers)
                bound = self.total(chosen)
                if below is not None and bound >= below - TINY:
                    return Reached(None, bound)
                if best is not None and bound >= self.total(best) - TINY:
                    stopped = BROKEN if bound > self.total(best) + TINY else ""
                    break
                best = self._grown_until_right(chosen, best)
        except BudgetSpent as spent:
            stopped = str(spent) or OUT_OF_TIME
        return Reached(best, bound if stopped or best is None else min(bound, self.total(best)), stopped)

    def total(self, edits: Iterable[Edit]) -> float:
        """What changes cost together."""
        return sum(self.price[edit] for edit in edits)

    def _grown_until_right(self, chosen: frozenset[Edit], best: Changes | None) -> Changes | None:
        """Enlarge a set by what its counterexamples demand, until it is right or no cheaper than the best set known.
        Return the best set then. Each demand on the way is about other changes.
        """
        while best is None or self.total(chosen) < self.total(best) - TINY:
            if self.trials.is_right(chosen | self.given):
                return in_order(chosen)
            taken = {edit.group for edit in chosen}
            wanted = [
                min(more, key=lambda edit: (self.price[edit], edit.start, edit.what))
                for among in self._learn(chosen)
                if (more := [edit for edit in among if edit.group not in taken])
            ]
            if not wanted:
                return best
            chosen = chosen.union(wanted[:1])
        return best

    def _learn(self, chosen: frozenset[Edit]) -> list[set[Edit]]:
        """Demands from the counterexamples of a set; without one, that another set is wanted."""
        speaking = self.trials.counterexamples(self.trials.failed, new=True)[:EACH]
        if speaking:
            return [self._demand(counterexample, chosen) for counterexample in speaking]
        self._require(set(self.offered) - chosen, [edit for edit in chosen if self.trials.risky(edit)])
        return []

    def _demand(self, counterexample: TextCounterexample, chosen: frozenset[Edit]) -> set[Edit]:
        """The changes of which a right set makes one, if it makes those of the chosen ones that wait or signal and that
        the execution needs."""
        waiting = self.given.union(edit for edit in chosen if self.trials.risky(edit))
        bare = self._in(counterexample, waiting)
        if bare is not None:
            counterexample, chosen = bare, waiting
        counterexample, made = self._with_fewer(counterexample, chosen | self.given)
        counterexample, passed = self._with_more(counterexample, made)
        applied = in_order(made | passed)
        offered = [edit for edit in self._order if edit not in made]
        kept = self._survivors.as_before(counterexample, applied, offered)
        if kept is None:
            kept = self._survivors.worked_out(counterexample, applied, offered)
        among = set(self.offered).difference(made, passed, kept)
        self._require(among, [edit for edit in made - self.given if self.trials.risky(edit)])
        return among

    def _require(self, among: Iterable[Edit], given: Iterable[Edit]) -> None:
        self.demands += 1
        self._master.require((self._number[edit] for edit in among), (self._number[edit] for edit in given))

    # ---- what waits or signals -----------------------------------------------------------------------------------

    def _with_fewer(
        self, counterexample: TextCounterexample, chosen: frozenset[Edit]
    ) -> tuple[TextCounterexample, frozenset[Edit]]:
        """The execution where as few of the chosen changes that wait or signal are made as it allows."""
        risky = [edit for edit in chosen - self.given if self.trials.risky(edit)]
        for less in ([risky] if len(risky) > 1 else []) + [[edit] for edit in risky]:
            rest = chosen.difference(less)
            if len(rest) == len(chosen) - len(less):
                same = self._in(counterexample, rest)
                if same is not None:
                    counterexample, chosen = same, rest
        return counterexample, chosen

    def _with_more(
        self, counterexample: TextCounterexample, changes: frozenset[Edit]
    ) -> tuple[TextCounterexample, frozenset[Edit]]:
        """The execution where as many more changes that wait or signal are made as it stays bad with."""
        taken = {edit.group for edit in changes}
        others = [edit for edit in self._others if edit not in changes and edit.group not in taken]
        for number, known in enumerate(self._stays[:KNOWN]):
            more = [edit for edit in others if edit in known]
            same = self._in(counterexample, changes.union(more)) if more else None
            if same is not None:
                self._stays.insert(0, self._stays.pop(number))
                return same, frozenset(more)
        applied = in_order(changes)
        aside = [edit for edit in others if self.trials.passed_by(counterexample, edit, applied)]
        passed: set[Edit] = set()
        todo = [[edit for edit in others if edit not in aside], aside]
        while todo:
            chunk = todo.pop()
            same = self._in(counterexample, changes.union(passed, chunk)) if chunk else None
            if same is not None:
                counterexample = same
                passed |= set(chunk)
            elif len(chunk) > 1:
                middle = len(chunk) // 2
                todo += [chunk[middle:], chunk[:middle]]
        self._stays.insert(0, frozenset(passed))
        return counterexample, frozenset(passed)

    def _in(self, counterexample: TextCounterexample, edits: Iterable[Edit]) -> TextCounterexample | None:
        """The execution as one of the text with other changes, if it is one there and as bad."""
        self.trials.in_time()
        text = apply(self.trials.text, in_order(edits))
        if text not in self._read:
            self._read[text] = parse(self.name, text)
        asked = self._read[text]
        return None if asked is None else once_more(counterexample, asked, [counterexample.flag or OUTCOME])
