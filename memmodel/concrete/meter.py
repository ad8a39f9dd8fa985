"""How much work an enumeration has done, and the one place where it stops for having done too much."""

from __future__ import annotations

from time import monotonic

from memmodel.answer import Budget
from memmodel.errors import BudgetSpent
from memmodel.limits import counted

CANDIDATE = 1000
"""Effort units of evaluating a model on one candidate execution, or of keeping one trace of a thread."""

STEP = 10
"""Effort units of running one step of a thread."""

_CLOCK_EVERY = 64 * CANDIDATE


class Meter:
    """Counts effort against a budget. `spend` raises BudgetSpent when effort or time is used up."""

    def __init__(self, budget: Budget) -> None:
        self._effort = budget.effort
        self._seconds = budget.seconds
        self._deadline = monotonic() + budget.seconds
        self._look = 0
        self.spent = 0
        counted(lambda: self.spent)

    def spend(self, effort: int) -> None:
        self.spent += effort
        if self.spent > self._effort:
            raise BudgetSpent(f"the budget of {self._effort:,} effort units ran out")
        if self.spent >= self._look:
            self._look = self.spent + _CLOCK_EVERY
            if monotonic() > self._deadline:
                raise BudgetSpent(f"the budget of {self._seconds:g} seconds ran out")
