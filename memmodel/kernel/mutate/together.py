"""The least synchronization that a kernel needs, of what it has: which instructions can go together.

In: the kernel, the removals, those of them that are not noticed alone. Out: `MinimumSet`. Settled here: all needless
instructions are left out at once, or else one after the other in the order of the text; then every other one is tried
beside them, until none of what is left can go by itself. An arrive is needed as long as somebody waits for it, and not
any more beside the wait. Another order of trying may leave fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memmodel.kernel.mutate.mutations import Mutation
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction


@dataclass(frozen=True, slots=True)
class MinimumSet:
    """`dropped`: can go together, and none of the others beside them. `kept`: needless alone, but not beside those."""

    dropped: tuple[PtxInstruction, ...]
    kept: tuple[PtxInstruction, ...]


def minimum_set(
    entry: PtxFunction,
    removals: Sequence[Mutation],
    needless: Sequence[Mutation],
    unnoticed: Callable[[PtxFunction], bool],
) -> MinimumSet:
    """Which of the removals can be made together. `needless`: those that are not noticed alone. `unnoticed`: judges a
    changed kernel; True if it shows nothing new.

    Raises what `unnoticed` raises, such as BudgetSpent.
    """
    dropped: list[Mutation] = []
    if needless and unnoticed(_without(entry, needless)):
        dropped += needless
    else:
        _drop(entry, needless, dropped, unnoticed)
    while dropped and _drop(entry, removals, dropped, unnoticed):
        pass
    gone = sorted((change.instruction for change in dropped), key=lambda instruction: instruction.number)
    return MinimumSet(tuple(gone), tuple(change.instruction for change in needless if change not in dropped))


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
