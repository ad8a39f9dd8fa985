"""Several answers under one budget.

In: Budget. Out: what is left of it for the next answer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from memmodel.answer import Budget
from memmodel.errors import BudgetSpent
from memmodel.limits.current import CURRENT
from memmodel.limits.usage import MOST_MEMORY, Usage, default_memory
from memmodel.limits.watching import Limits

EXPLAINING_SECONDS = 0.7
"""Seconds that reading and explaining inside `within_budget` may go on after the budget is spent."""


class SharedBudget:
    """One budget for several answers: what they have used so far."""

    def __init__(self, budget: Budget) -> None:
        self.usage = Usage(budget)
        self._counts: list[Callable[[], int]] = []
        self._effort = 0

    def count(self, spent: Callable[[], int]) -> None:
        """Add to the effort, when the next answer begins, what `spent` returns then."""
        self._counts.append(spent)

    def left(self) -> Budget:
        """What the next answer may use. Raises BudgetSpent if there is nothing left."""
        self._effort += sum(spent() for spent in self._counts)
        self._counts.clear()
        usage, budget = self.usage, self.usage.budget
        left = Budget(
            budget.effort - self._effort,
            usage.seconds_left(),
            min(usage.memory_left(), usage.most_memory),
            budget.original or budget,
        )
        if left.effort <= 0 or usage.overworked():
            raise BudgetSpent(budget.out_of_effort)
        if left.seconds <= 0:
            raise BudgetSpent(budget.out_of_seconds)
        if usage.memory_left() <= 0:
            raise BudgetSpent(budget.out_of_memory)
        return left


@contextmanager
def sharing_budget(budget: Budget) -> Iterator[None]:
    """All answers inside the block share one budget."""
    outer, CURRENT.shared = CURRENT.shared, SharedBudget(budget)
    try:
        yield
    finally:
        CURRENT.shared = outer


@contextmanager
def within_budget(budget: Budget) -> Iterator[None]:
    """All work inside the block has one budget: all answers, and also reading and explaining, which no engine limits.

    Raises BudgetSpent.
    """
    with (
        sharing_budget(budget),
        Limits(replace(budget, effort=sys.maxsize, original=budget.original or budget), EXPLAINING_SECONDS),
    ):
        yield


def available(budget: Budget) -> Budget:
    """The budget of one answer, at most what is left of a shared one. Raises BudgetSpent if nothing is left."""
    if CURRENT.shared is None:
        return budget
    left = CURRENT.shared.left()
    return Budget(
        min(left.effort, budget.effort),
        min(left.seconds, budget.seconds),
        min(left.memory or MOST_MEMORY, budget.memory or default_memory()),
        left.original,
    )


def counted(spent: Callable[[], int]) -> None:
    """Add a worker's effort to the shared budget, if several answers share one."""
    if CURRENT.shared is not None:
        CURRENT.shared.count(spent)
