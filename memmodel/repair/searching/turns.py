"""Sets of changes, and which changes are tried first.

In: changes, what the explanations say. Out: an order. Settled here: when a set of changes does all that another does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from memmodel.repair.costs import MOVED_ACCESS
from memmodel.repair.edits import Edit
from memmodel.repair.hints import answers, meets, relevant
from memmodel.repair.insertion.arrivals import ARRIVALS
from memmodel.why.records import Reason

Changes = tuple[Edit, ...]

NEARBY, RELEVANT = 1, 2
"""Turns of changes that answer a reason: at a line that an explanation names, and elsewhere."""

NEAR = 2
"""A change at most this number of lines from one that an explanation names is tried early."""


class Turns:
    """Which changes are tried first: those at the lines that the explanations name, as far as they answer a reason,
    and arrivals on an object that a thread waits for in vain (`awaited`)."""

    def __init__(
        self, text: str, why: frozenset[Reason], named: frozenset[int], awaited: frozenset[str] = frozenset()
    ) -> None:
        self.awaited = tuple(f"[{name}]" for name in awaited)
        self.starts = [0, *(at + 1 for at, char in enumerate(text) if char == "\n")]
        self.why = why
        self.named = named

    def turn(self, edit: Edit) -> int:
        """A number for a change: those with smaller numbers are tried first."""
        if not relevant(edit, self.why):
            return RELEVANT + 1
        if edit.rank == ARRIVALS and Reason.COUNT in self.why and any(name in edit.text for name in self.awaited):
            return 0
        places = (edit, *edit.more) if meets(edit) else (edit,)
        lines = [bisect_right(self.starts, edit.start) for edit in places]
        declares = edit.group[0] == -1  # a declaration concerns every line that names its variable
        near = declares or any(abs(line - other) <= NEAR for line in lines for other in self.named)
        if answers(edit, self.why):
            return 0 if near else NEARBY
        return NEARBY if near else RELEVANT


def spot(edit: Edit) -> int:
    """A number for the place of a change: those with smaller numbers are tried first. What a thread has left is given
    back behind its last access, so that an arrival is tried at the end of a thread first. Moved accesses stay in the
    order in which they are offered."""
    if edit.group[2] == "move" and edit.cost == MOVED_ACCESS:
        return 0
    return -edit.start if edit.rank == ARRIVALS and "mbarrier.arrive" in edit.text else edit.start


def in_order(edits: Iterable[Edit]) -> Changes:
    """Changes in the order of the text."""
    return tuple(sorted(edits, key=lambda edit: (edit.start, edit.end, edit.rank, edit.what)))


def cost(edits: Sequence[Edit]) -> float:
    """What changes cost together."""
    return sum(edit.cost for edit in edits)


def covers(edits: Iterable[Edit], known: Iterable[Edit]) -> bool:
    """True if each change of a known repair is among these or implied by one of them."""
    changes = tuple(edits)
    return all(
        any(
            change == other
            or (change.group == other.group and change.level >= other.level)
            or other.group in change.implies
            for change in changes
        )
        for other in known
    )
