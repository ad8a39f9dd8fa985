"""Which changes an execution survives: with them it still exists, and is as bad.

In: an execution, the changes already made, those that are offered. Out: as many of these as it survives together.
"""

from __future__ import annotations

from memmodel.repair.edits import Edit
from memmodel.repair.judge import Against
from memmodel.repair.searching.trials import Trials
from memmodel.repair.searching.turns import Changes

KNOWN = 6
"""So many answers to one execution are tried on another before its own are worked out."""


class Survivors:
    """Remembers what ended earlier executions. `answers`: that, for each of them, the last that helped first."""

    def __init__(self, trials: Trials, answers: list[frozenset[Edit]]) -> None:
        self._trials, self._answers = trials, answers

    def as_before(self, against: Against, applied: Changes, offered: list[Edit]) -> list[Edit] | None:
        """All changes but those that end another execution, if this one survives them."""
        for number, answers in enumerate(self._answers[:KNOWN]):
            rest = [edit for edit in offered if edit not in answers]
            if len(rest) < len(offered) and self._trials.survives(against, applied, rest):
                self._answers.insert(0, self._answers.pop(number))
                return rest
        return None

    def worked_out(self, against: Against, applied: Changes, offered: list[Edit]) -> list[Edit]:
        """As many changes as it survives together: all that it survives part by part, if it can. The others are
        remembered as its answers.
        """
        kept = self._parted(against, applied, offered, together=False)
        if not self._trials.survives(against, applied, kept):
            kept = self._parted(against, applied, kept, together=True)
        self._answers.insert(0, frozenset(offered).difference(kept))
        return kept

    def _parted(self, against: Against, applied: Changes, offered: list[Edit], *, together: bool) -> list[Edit]:
        """The changes that the execution survives; what is stronger than one that ends it is not tried."""
        kept: list[Edit] = []
        ending: set[tuple[object, ...]] = set()
        todo = [offered]
        while todo:
            chunk = [edit for edit in todo.pop() if edit.group not in ending and not edit.implies & ending]
            if not chunk:
                continue
            if self._trials.survives(against, applied, (*kept, *chunk) if together else chunk):
                kept += chunk
            elif len(chunk) > 1:
                middle = len(chunk) // 2
                todo += [chunk[middle:], chunk[:middle]]
            else:
                ending.add(chunk[0].group)
        return kept
