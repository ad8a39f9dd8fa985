"""The least synchronization that a kernel needs, of what it has: which needless instructions can go together.

In: the kernel, the instructions whose removal alone is not noticed. Out: `MinimumSet`. Settled here: what is needed as
long as all else stands is needed with less as well, since leaving synchronization out only takes order away. So the set
is the least one if all needless instructions can go at once; else they are left out one after the other, and another
order might leave fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memmodel.kernel.mutate.mutations import Mutation
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction


@dataclass(frozen=True, slots=True)
class MinimumSet:
    """`dropped`: can go together; `kept`: needless alone, but not beside those. `exact`: no smaller set is right."""

    dropped: tuple[PtxInstruction, ...]
    kept: tuple[PtxInstruction, ...]
    exact: bool


def minimum_set(
    entry: PtxFunction, needless: Sequence[Mutation], unnoticed: Callable[[PtxFunction], bool]
) -> MinimumSet:
    """Which of the removals can be made together. `unnoticed`: judges a changed kernel; True if it shows nothing new.

    Raises what `unnoticed` raises, such as BudgetSpent.
    """
    if not needless:
        return MinimumSet((), (), exact=True)
    every = _without(entry, needless)
    if unnoticed(every):
        return MinimumSet(tuple(change.instruction for change in needless), (), exact=True)
    dropped: list[Mutation] = []
    kept: list[PtxInstruction] = []
    for change in needless:
        if unnoticed(_without(entry, [*dropped, change])):
            dropped.append(change)
        else:
            kept.append(change.instruction)
    # One that is kept beside all others but itself: each of two is needless because of the other, and one has to stay.
    exact = len(kept) == 1
    return MinimumSet(tuple(change.instruction for change in dropped), tuple(kept), exact)


def _without(entry: PtxFunction, changes: Sequence[Mutation]) -> PtxFunction:
    for change in changes:
        entry = change.of(entry)
    return entry
