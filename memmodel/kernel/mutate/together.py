"""The least synchronization that a kernel needs, of what it has: which instructions can go together.

In: the kernel, the removals, those of them that are not noticed alone. Out: `MinimumSet`. Settled here: all needless
instructions are left out at once, or else as many as can be in the order of the text; then what works on mbarrier
objects of which nothing else is left, and then every other one is tried beside them, until none of what is left can go
by itself. An arrive is needed as long as a thread waits for it, and not any more beside the wait. Another order of
trying may leave fewer, so what is left is an upper bound; where there are few sets that would leave fewer, all of them
are judged, and it is exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb
from typing import TypeVar

from memmodel.errors import BudgetSpent
from memmodel.kernel.mutate.mutations import Mutation, with_all
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction

T = TypeVar("T")

MOST = 16
"""Sets of removals that are judged to show that what is left is the least."""


@dataclass(frozen=True, slots=True)
class MinimumSet:
    """`dropped`: can go together, and none of the others beside them. `kept`: needless alone, but not beside those.
    `exact`: no set of more instructions can go; if not, what is left is an upper bound. `late`: what ran out before all
    others were tried, so that `kept` is not known. `untried`: how many of the others would have taken too much work.
    """

    dropped: tuple[PtxInstruction, ...]
    kept: tuple[PtxInstruction, ...]
    exact: bool = False
    late: str = ""
    untried: int = 0


class RemovalJudge(ABC):
    """What is noticed of removals that are made together. `unnoticed` has the last word; the other answers save runs of
    it. All of them may raise BudgetSpent.
    """

    @abstractmethod
    def unnoticed(self, mutant: PtxFunction) -> bool:
        """True if a changed kernel shows nothing new."""

    def shown(self, changes: Sequence[Mutation]) -> bool:
        """True if these changes together are known to be noticed."""
        return False

    def seen(self, changes: Sequence[Mutation]) -> bool:
        """True if it is seen at a glance that these changes together are noticed."""
        return False

    def stay_broken(self, changes: Sequence[Mutation], others: Sequence[Mutation]) -> bool:
        """True if the kernel with some changes, which is wrong, still is with other removals."""
        return not others

    def counts(self, change: Mutation) -> bool:
        """True if a removal updates mbarrier objects."""
        return True

    def idle(self, changes: Sequence[Mutation]) -> bool:
        """True if nothing else is left of the mbarrier objects that the removed instructions work on."""
        return False

    def affordable(self, changes: Sequence[Mutation]) -> bool:
        """True if the last change may be judged beside the others; if not, it is not tried."""
        return True


def minimum_set(
    entry: PtxFunction,
    removals: Sequence[Mutation] | None,
    needless: Sequence[Mutation],
    judge: RemovalJudge,
    broken: Sequence[Sequence[Mutation]] = (),
) -> MinimumSet:
    """The removals that can be made together; `removals` None: of the needless ones only. `needless`: those that are
    not noticed alone. `broken`: changes with which the kernel is wrong.

    If the time runs out, the answer is what went together until then. Raises BudgetSpent if nothing did.
    """
    sets = _Sets(entry, judge, [list(changes) for changes in broken])
    dropped: list[Mutation] = []
    larger: list[Mutation] | None = None
    late = ""
    try:
        if len(needless) == 1:
            dropped += needless
        else:
            likely = largest(needless, lambda changes: not judge.seen(changes))
            if likely and judge.shown(likely):
                likely = largest(needless, lambda changes: not judge.shown(changes))
            if likely and sets.goes(likely):
                dropped += likely
            else:
                largest(needless, sets.still_goes, dropped)
        if removals is not None:
            updates = [change for change in removals if judge.counts(change)]
            while dropped and _drop_idle(updates, dropped, sets):
                pass
            if dropped:
                _drop(removals, dropped, sets)
            larger = _larger(removals, len(dropped), sets)
    except BudgetSpent as spent:
        if not dropped:
            raise
        late = str(spent)
    if larger:
        dropped = larger
    untried = [change for change in dict.fromkeys(sets.untried) if change not in dropped]
    kept = [] if late else [change for change in needless if change not in dropped and change not in untried]
    gone = sorted(_instructions(dropped), key=lambda instruction: instruction.number)
    exact = larger is not None
    return MinimumSet(tuple(gone), _instructions(kept), exact, late, 0 if exact else len(untried))


def _instructions(changes: Iterable[Mutation]) -> tuple[PtxInstruction, ...]:
    return tuple(instruction for change in changes for instruction in change.instructions)


@dataclass(slots=True)
class _Sets:
    """Sets of removals. `wrong`: sets that are noticed; `untried`: changes of which it would take too much work to know
    whether they can go beside others."""

    entry: PtxFunction
    judge: RemovalJudge
    wrong: list[list[Mutation]]
    untried: list[Mutation] = field(default_factory=list)

    def goes(self, changes: Sequence[Mutation]) -> bool:
        """True if nothing new is noticed in the kernel with these changes."""
        right = not self.judge.shown(changes) and self.judge.unnoticed(with_all(self.entry, changes))
        if not right:
            self.wrong.append(list(changes))
        return right

    def known(self, changes: Sequence[Mutation]) -> bool:
        """True if the kernel with some of the changes is known to be wrong, and still is with the others."""
        all_ = {id(change) for change in changes}
        for some in self.wrong:
            mine = {id(change) for change in some}
            if mine <= all_ and self.judge.stay_broken(some, [change for change in changes if id(change) not in mine]):
                return True
        return False

    def still_goes(self, changes: Sequence[Mutation]) -> bool:
        """As `goes`, for changes of which it may be known that they do not go together."""
        return not self.known(changes) and self.goes(changes)

    def one_more_goes(self, changes: Sequence[Mutation]) -> bool:
        """As `still_goes`, for one more change, the last one; False if it is not affordable to judge it."""
        if self.known(changes):
            return False
        if self.judge.shown(changes):
            self.wrong.append(list(changes))
            return False
        if self.judge.affordable(changes):
            return self.goes(changes)
        self.untried.append(changes[-1])
        return False


def largest(items: Sequence[T], allowed: Callable[[Sequence[T]], bool], kept: list[T] | None = None) -> list[T]:
    """Items that are allowed together, added in their order: all at once if that is allowed, else half by half. `kept`:
    the list that they are added to; if `allowed` raises, it holds what was added so far.
    """
    kept = [] if kept is None else kept

    def add(part: Sequence[T]) -> None:
        if allowed([*kept, *part]):
            kept.extend(part)
        elif len(part) > 1:
            add(part[: len(part) // 2])
            add(part[len(part) // 2 :])

    if items:
        add(items)
    return kept


def _larger(removals: Sequence[Mutation], size: int, sets: _Sets) -> list[Mutation] | None:
    """The largest set of more than `size` removals that is not noticed, empty if there is none: all of them are judged
    but those that are `known` to be noticed, and single ones. None if they are too many.
    """
    sizes = range(len(removals), max(size, 1), -1)
    if sum(comb(len(removals), count) for count in sizes) > MOST:
        return None
    every = (changes for count in sizes for changes in combinations(removals, count))
    return list(next((changes for changes in every if sets.still_goes(changes)), ()))


def _drop(changes: Sequence[Mutation], dropped: list[Mutation], sets: _Sets) -> None:
    """Add each change that is not noticed beside the others, until none of those that are left can go."""
    waiting, failed = deque(change for change in changes if change not in dropped), 0
    while failed < len(waiting):
        change = waiting.popleft()
        if sets.one_more_goes([*dropped, change]):
            dropped.append(change)
            failed = 0
        else:
            waiting.append(change)
            failed += 1


def _drop_idle(changes: Sequence[Mutation], dropped: list[Mutation], sets: _Sets) -> bool:
    """Add the changes that are idle beside the others, at once if they can be; True if there is one. One may be idle
    only beside another one: an init beside the arrivals at its object."""
    before, found, more = len(dropped), list[Mutation](), list(changes)
    while more:
        left = [change for change in changes if change not in dropped and change not in found]
        tried = ((change, [*dropped, *found, change]) for change in left)
        more = [change for change, beside in tried if sets.judge.idle(beside) and not sets.known(beside)]
        found += more
    largest(found, sets.still_goes, dropped)
    return len(dropped) > before
