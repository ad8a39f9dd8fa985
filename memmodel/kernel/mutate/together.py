"""The least synchronization that a kernel needs, of what it has: which instructions can go together.

In: the kernel, the removals, those of them that are not noticed alone. Out: `MinimumSet`. Settled here: all needless
instructions are left out at once, or else one after the other in the order of the text; then every other one is tried
beside them, until none of what is left can go by itself. An arrive is needed as long as somebody waits for it, and not
any more beside the wait. Another order of trying may leave fewer, so what is left is an upper bound; where there are
few sets that would leave fewer, all of them are judged, and it is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

from memmodel.kernel.mutate.mutations import Mutation
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction

MOST = 16
"""Sets of removals that are judged to show that what is left is the least."""


@dataclass(frozen=True, slots=True)
class MinimumSet:
    """`dropped`: can go together, and none of the others beside them. `kept`: needless alone, but not beside those.
    `exact`: no set of more instructions can go; if not, what is left is an upper bound. `only_needless`: nothing else
    was tried beside the dropped ones.
    """

    dropped: tuple[PtxInstruction, ...]
    kept: tuple[PtxInstruction, ...]
    exact: bool = False
    only_needless: bool = False


def minimum_set(
    entry: PtxFunction,
    removals: Sequence[Mutation] | None,
    needless: Sequence[Mutation],
    unnoticed: Callable[[PtxFunction], bool],
    broken: Collection[int] = (),
    only_orders: Callable[[Mutation], bool] = lambda change: False,
) -> MinimumSet:
    """Which of the removals can be made together; None: of the needless ones only. `needless`: those that are not
    noticed alone. `unnoticed`: judges a changed kernel; True if it shows nothing new.

    `broken`: the instructions without which the kernel is wrong; `only_orders`: True for removals beside which each of
    these is still needed. Raises what `unnoticed` raises, such as BudgetSpent.
    """

    def known(changes: Sequence[Mutation]) -> bool:
        """True if one of the changes is noticed alone, and still is beside the others."""
        return any(
            change.instruction.number in broken and all(it is change or only_orders(it) for it in changes)
            for change in changes
        )

    dropped: list[Mutation] = []
    if len(needless) == 1 or (needless and unnoticed(_without(entry, needless))):
        dropped += needless
    else:
        _drop(entry, needless, dropped, unnoticed)
    larger: list[Mutation] | None = None
    if removals is not None:
        while dropped and _drop(entry, [it for it in removals if not known([*dropped, it])], dropped, unnoticed):
            pass
        larger = _larger(entry, removals, len(dropped), unnoticed, known)
    if larger:
        dropped = larger
    gone = sorted((it for change in dropped for it in change.instructions), key=lambda instruction: instruction.number)
    kept = tuple(it for change in needless if change not in dropped for it in change.instructions)
    return MinimumSet(tuple(gone), kept, larger is not None, removals is None)


def _larger(
    entry: PtxFunction,
    removals: Sequence[Mutation],
    size: int,
    unnoticed: Callable[[PtxFunction], bool],
    known: Callable[[Sequence[Mutation]], bool],
) -> list[Mutation] | None:
    """The largest set of more than `size` removals that is not noticed, empty if there is none: all of them are judged
    but those that are `known` to be noticed, and single ones. None if they are too many.
    """
    sizes = range(len(removals), max(size, 1), -1)
    if sum(comb(len(removals), count) for count in sizes) > MOST:
        return None
    sets = (changes for count in sizes for changes in combinations(removals, count))
    left = (changes for changes in sets if not known(changes))
    return list(next((changes for changes in left if unnoticed(_without(entry, changes))), ()))


def _drop(
    entry: PtxFunction,
    changes: Sequence[Mutation],
    dropped: list[Mutation],
    unnoticed: Callable[[PtxFunction], bool],
) -> bool:
    """Add each change that is not noticed beside the others; True if there is one."""
    before = len(dropped)
    for change in changes:
        if change not in dropped and unnoticed(_without(entry, [*dropped, change])):
            dropped.append(change)
    return len(dropped) > before


def _without(entry: PtxFunction, changes: Sequence[Mutation]) -> PtxFunction:
    for change in changes:
        entry = change.of(entry)
    return entry
