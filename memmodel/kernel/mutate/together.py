"""The least synchronization that a kernel needs, of what it has: which instructions can go together.

In: the kernel, the removals, those of them that are not noticed alone. Out: `MinimumSet`. Settled here: all needless
instructions are left out at once, or else as many as can be in the order of the text; then what works on mbarrier
objects of which nothing else is left, and then every other one is tried beside them, until none of what is left can go
by itself. An arrive is needed as long as a thread waits for it, and not any more beside the wait. Another order of
trying may leave fewer, so what is left is an upper bound; where there are few sets that would leave fewer, all of them
are judged, and it is exact.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
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


def minimum_set(
    entry: PtxFunction,
    removals: Sequence[Mutation] | None,
    needless: Sequence[Mutation],
    unnoticed: Callable[[PtxFunction], bool],
    broken: Sequence[Sequence[Mutation]] = (),
    counts: Callable[[Mutation], bool] = lambda change: True,
    stays_broken: Callable[[Sequence[Mutation], Sequence[Mutation]], bool] = lambda changes, others: not others,
    shown: Callable[[Sequence[Mutation]], bool] = lambda changes: False,
    seen: Callable[[Sequence[Mutation]], bool] = lambda changes: False,
    idle: Callable[[Sequence[Mutation]], bool] = lambda changes: False,
    affordable: Callable[[Sequence[Mutation]], bool] = lambda changes: True,
) -> MinimumSet:
    """Which of the removals can be made together; None: of the needless ones only. `needless`: those that are not
    noticed alone. `unnoticed`: judges a changed kernel; True if it shows nothing new.

    `broken`: changes with which the kernel is wrong; `counts`: True for removals that update mbarrier objects;
    `stays_broken`: True if the kernel with some changes, which is wrong, still is with others; `shown`: True if changes
    that are made together are known to be noticed; `seen`: the same, of those that show it at a glance; `idle`: True
    for removals beside which nothing is left of the mbarrier objects that they work on, so that they are tried at once.
    `affordable`: True if one more change beside the others may be judged; if not, it is not tried.
    Where the time runs out, what went together until then is given. Raises what `unnoticed` and `shown` raise:
    BudgetSpent if nothing did.
    """

    sets = _Sets(entry, unnoticed, stays_broken, shown, affordable, [list(changes) for changes in broken])
    dropped: list[Mutation] = []
    larger: list[Mutation] | None = None
    late = ""
    try:
        if len(needless) == 1:
            dropped += needless
        else:
            likely = largest(needless, lambda changes: not seen(changes))
            if likely and shown(likely):
                likely = largest(needless, lambda changes: not shown(changes))
            if likely and sets.goes(likely):
                dropped += likely
            else:
                largest(needless, sets.still_goes, dropped)
        if removals is not None:
            updates = [it for it in removals if counts(it)]
            while dropped and _drop_idle(updates, dropped, sets, idle):
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
    gone = sorted((it for change in dropped for it in change.instructions), key=lambda instruction: instruction.number)
    left = [it for it in dict.fromkeys(sets.untried) if it not in dropped]
    others = [] if late else [it for it in needless if it not in dropped and it not in left]
    kept = tuple(it for change in others for it in change.instructions)
    return MinimumSet(tuple(gone), kept, larger is not None, late, 0 if larger is not None else len(left))


@dataclass(slots=True)
class _Sets:
    """Sets of removals. The first five fields as in `minimum_set`; `wrong`: those that are noticed; `untried`: changes
    of which it would take too much work to know whether they can go beside others."""

    entry: PtxFunction
    unnoticed: Callable[[PtxFunction], bool]
    stays_broken: Callable[[Sequence[Mutation], Sequence[Mutation]], bool]
    shown: Callable[[Sequence[Mutation]], bool]
    affordable: Callable[[Sequence[Mutation]], bool]
    wrong: list[list[Mutation]]
    untried: list[Mutation] = field(default_factory=list)

    def goes(self, changes: Sequence[Mutation]) -> bool:
        """True if nothing new is noticed in the kernel with these changes."""
        right = not self.shown(changes) and self.unnoticed(with_all(self.entry, changes))
        if not right:
            self.wrong.append(list(changes))
        return right

    def known(self, changes: Sequence[Mutation]) -> bool:
        """True if the kernel with some of the changes is known to be wrong, and still is with the others."""
        all_ = {id(change) for change in changes}
        for some in self.wrong:
            mine = {id(change) for change in some}
            if mine <= all_ and self.stays_broken(some, [change for change in changes if id(change) not in mine]):
                return True
        return False

    def still_goes(self, changes: Sequence[Mutation]) -> bool:
        """As `goes`, for changes of which it may be known that they do not go together."""
        return not self.known(changes) and self.goes(changes)

    def one_more_goes(self, changes: Sequence[Mutation]) -> bool:
        """The same of one more change, the last one, if to know it is affordable."""
        if self.known(changes):
            return False
        if self.shown(changes):
            self.wrong.append(list(changes))
            return False
        if self.affordable(changes):
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


def _drop_idle(
    changes: Sequence[Mutation],
    dropped: list[Mutation],
    sets: _Sets,
    idle: Callable[[Sequence[Mutation]], bool],
) -> bool:
    """Add the changes that are idle beside the others, at once if they can be; True if there is one. One may be idle
    only beside another one: an init beside the arrivals at its object."""
    before, found, more = len(dropped), list[Mutation](), list(changes)
    while more:
        left = [change for change in changes if change not in dropped and change not in found]
        tried = ((change, [*dropped, *found, change]) for change in left)
        more = [change for change, beside in tried if idle(beside) and not sets.known(beside)]
        found += more
    largest(found, sets.still_goes, dropped)
    return len(dropped) > before
