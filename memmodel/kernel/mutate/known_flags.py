"""The flags of a run with some changes, which are kept for what is asked next.

In: changes, flags. Out: `KnownFlags`, `LastAsked`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memmodel.kernel.mutate.mutations import Mutation
from memmodel.kernel.order.flags import Flags


def told_apart(changes: Sequence[Mutation]) -> frozenset[tuple[int, str]]:
    """What tells changes of a kernel apart."""
    return frozenset((it.instruction.number, it.what) for it in changes)


@dataclass(frozen=True, slots=True)
class LastAsked:
    """The flags of the run with some changes, evaluated by what differs from those in `known`."""

    changed: frozenset[tuple[int, str]]
    known: KnownFlags
    flags: Flags

    def is_about(self, changes: Sequence[Mutation], known: KnownFlags) -> bool:
        return self.known is known and self.changed == told_apart(changes)


@dataclass(frozen=True, slots=True)
class KnownFlags:
    """The flags of the run without some instructions. `removed`: their numbers; `events`: what they do."""

    removed: frozenset[int]
    events: int
    flags: Flags
