"""Which changes an execution survives: with them it still exists, and is as bad.

In: an execution, the changes already made, those that are offered. Out: as many of these as it survives together.
"""

from __future__ import annotations

from memmodel.repair.edits import Edit
from memmodel.repair.judge import TextCounterexample
from memmodel.repair.searching.trials import Trials
from memmodel.repair.searching.turns import Changes

KNOWN = 6
"""At most this many sets that ended other executions are tried on one before its own is worked out."""


class Survivors:
    """Remembers what ended earlier executions. `endings`: for each of them what did, the last useful first."""

    def __init__(self, trials: Trials, endings: list[frozenset[Edit]]) -> None:
        self._trials, self._endings = trials, endings

    def as_before(self, counterexample: TextCounterexample, applied: Changes, offered: list[Edit]) -> list[Edit] | None:
        """All changes but those that end another execution, if this one survives them."""
        for number, ending in enumerate(self._endings[:KNOWN]):
            rest = [edit for edit in offered if edit not in ending]
            if len(rest) < len(offered) and self._trials.survives(counterexample, applied, rest):
                self._endings.insert(0, self._endings.pop(number))
                return rest
        return None

    def worked_out(self, counterexample: TextCounterexample, applied: Changes, offered: list[Edit]) -> list[Edit]:
        """A large set of changes that the counterexample survives together: if possible all that it survives part by
        part. The other changes end it, and are remembered for that.
        """
        kept = self._parted(counterexample, applied, offered, together=False)
        if not self._trials.survives(counterexample, applied, kept):
            kept = self._parted(counterexample, applied, kept, together=True)
        self._endings.insert(0, frozenset(offered).difference(kept))
        return kept

    def _parted(
        self, counterexample: TextCounterexample, applied: Changes, offered: list[Edit], *, together: bool
    ) -> list[Edit]:
        """The changes that the execution survives; what is stronger than one that ends it is not tried."""
        kept: list[Edit] = []
        ending: set[tuple[object, ...]] = set()
        todo = [offered]
        while todo:
            chunk = [edit for edit in todo.pop() if edit.group not in ending and not edit.implies & ending]
            if not chunk:
                continue
            if self._trials.survives(counterexample, applied, (*kept, *chunk) if together else chunk):
                kept += chunk
            elif len(chunk) > 1:
                middle = len(chunk) // 2
                todo += [chunk[middle:], chunk[:middle]]
            else:
                ending.add(chunk[0].group)
        return kept
