"""What saying why may cost: seconds, of those that the answer has left.

In: some work on a reason. Out: what it found, or nothing where the time ran out: an answer without its reason is still
the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TypeVar

from memmodel.answer import Answer, Budget
from memmodel.errors import BudgetSpent
from memmodel.limits import Limits, available, together

T = TypeVar("T")

LEAST, MOST = 0.3, 10.0
"""Seconds that all reasons of one answer may take together."""


def reasons(answer: Answer, budget: Budget) -> AbstractContextManager[None]:
    """All reasons for an answer inside the block share what it has left of its budget."""
    left = budget.seconds - (answer.times.encode + answer.times.solve) / 1000
    return together(replace(budget, seconds=max(LEAST, min(left, MOST))))


def limited(work: Callable[[], T], otherwise: T) -> T:
    """What some work finds; `otherwise` if its time runs out."""
    try:
        with Limits(available(Budget(seconds=MOST))):
            return work()
    except BudgetSpent:
        return otherwise
