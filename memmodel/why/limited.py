"""What saying why may cost: no more than the answer did, and of what the answer has left.

In: some work on a reason. Out: what it found, or nothing where the time ran out: an answer without its reason is still
the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from time import monotonic
from typing import TypeVar

from memmodel.answer import Answer, Budget
from memmodel.errors import BudgetSpent
from memmodel.limits import Limits, available, sharing_budget

T = TypeVar("T")

LEAST, MOST = 0.3, 10.0
"""Seconds that all reasons of one answer may take together."""

QUICK = 4.0
"""Seconds that reasons may take where the answer took less: that is quick on any machine."""

ROUNDED = 0.01
"""Seconds by which a search may end too early, since solvers count in milliseconds."""

CUT = "the reason is cut short: it may take no longer than the answer did"


@dataclass(slots=True)
class TimeForReasons:
    """`over`: when it ends. `cut`: the time of one of the reasons ran out."""

    over: float
    cut: bool = False


_TIME: ContextVar[TimeForReasons | None] = ContextVar("time for reasons", default=None)


@contextmanager
def reasons(answer: Answer, budget: Budget) -> Iterator[TimeForReasons]:
    """All reasons for an answer inside the block take together no longer than it did, and than its budget has left.

    A search inside may end in silence when the time is over; so what used it up counts as cut.
    """
    spent = (answer.times.encode + answer.times.solve) / 1000
    seconds = max(LEAST, min(budget.seconds - spent, max(spent, QUICK), MOST))
    time = TimeForReasons(monotonic() + seconds - ROUNDED)
    token = _TIME.set(time)
    try:
        with sharing_budget(replace(budget, seconds=seconds)):
            yield time
    finally:
        _TIME.reset(token)
        time.cut |= monotonic() >= time.over


def time_is_over() -> bool:
    """True if a search for a reason may have ended because its time did."""
    time = _TIME.get()
    return time is not None and (time.cut or monotonic() >= time.over)


def limited(work: Callable[[], T], otherwise: T) -> T:
    """The result of some work; `otherwise` if its time runs out."""
    try:
        with Limits(available(Budget(seconds=MOST))):
            return work()
    except BudgetSpent:
        time = _TIME.get()
        if time is not None:
            time.cut = True
        return otherwise
