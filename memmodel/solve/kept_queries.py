"""Queries kept for the next question about the same test, so that its formulas are made once.

In: LoweredTest, Model, loop bound, Query. Out: the Query again. What candidates taught stays true: it is among the
constraints of the formulas, and says nothing of the question for which it was learnt.
"""

from __future__ import annotations

from memmodel.cat.syntax import Model
from memmodel.program.lowered import LoweredTest
from memmodel.refine.query import Query

KEPT = 4
"""How many queries are kept: those of the last test, for each of its questions and models."""


class KeptQueries:
    """The last queries, each until it is asked for."""

    def __init__(self) -> None:
        self._kept: list[tuple[LoweredTest, Model, int, Query]] = []

    def keep(self, lowered: LoweredTest, model: Model, bound: int, query: Query) -> None:
        """`query`: with the terms of the condition, and any flags."""
        self._kept = [(lowered, model, bound, query), *self._kept][:KEPT]

    def take(self, lowered: LoweredTest, model: Model, bound: int) -> Query | None:
        """Take out the query of this very test and model; None if it is not kept any more."""
        for number, (test, known, its, query) in enumerate(self._kept):
            if test is lowered and known is model and its == bound:
                del self._kept[number]
                return query
        return None
