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

MOVE = 30
"""Effort units of each value that a step moves between registers and memory."""

DOUBT = 0.2
"""This share of a trial's effort is spent before the trial is first asked whether its effort will do."""

CONFIDENT = 3
"""The first part of a search costs more than the rest: an estimate may exceed the effort by this factor."""

PREPARING = 0.22
"""This share of a trial's effort may go into finding values and paths. A test that needs more has too many of them."""

USUAL = 24
"""Evaluating a model on up to this many events takes the effort of one candidate; on more events it takes longer."""

_CLOCK_EVERY = 64 * CANDIDATE


class Meter:
    """Counts effort against a budget. `spend` raises BudgetSpent when effort or time is used up.

    `trial`: the work is given up as soon as it seems to need more effort than this.
    """

    def __init__(self, budget: Budget, trial: int | None = None) -> None:
        self._whole = budget.effort
        self._effort = budget.effort if trial is None else min(int(PREPARING * trial), budget.effort)
        self._trial = trial
        self._ready = 0
        self._out_of_seconds = budget.out_of_seconds
        self._deadline = monotonic() + budget.seconds
        self._look = 0
        self._weight = 1.0
        self.spent = 0
        counted(lambda: self.spent)

    def ready(self) -> None:
        """Preparations are over: from here on, effort is in proportion to the share of the work that is done."""
        self._ready = self.spent
        self._effort = self._whole

    def expect(self, done: float) -> None:
        """Say which share of the work is done. Raises BudgetSpent in a trial that seems to need too much."""
        if self._trial is not None and self.spent - self._ready > DOUBT * self._trial:
            self._try((self.spent - self._ready) / max(CONFIDENT * done, 1e-9) + self._ready)

    def weigh(self, events: int) -> None:
        """Say how many events the next candidates have: in a trial, larger ones cost more."""
        if self._trial is not None:
            self._weight = max(1.0, events / USUAL) ** 2

    def needs(self, effort: int) -> None:
        """Say how much effort is still needed at least. Raises BudgetSpent in a trial that has less left."""
        self._try(self.spent + effort)

    def _try(self, effort: float) -> None:
        if self._trial is not None and effort > self._trial:
            raise BudgetSpent(f"{self._trial:,} effort units would not do")

    def spend(self, effort: int) -> None:
        self.spent += int(effort * self._weight)
        if self.spent > self._effort:
            raise BudgetSpent(f"the budget of {self._effort:,} effort units ran out")
        if self.spent >= self._look:
            self._look = self.spent + _CLOCK_EVERY
            if monotonic() > self._deadline:
                raise BudgetSpent(self._out_of_seconds)
