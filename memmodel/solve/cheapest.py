"""The cheapest choice that meets clauses, exactly: MaxSAT by Z3.

In: prices, clauses, each when it is learnt. Out: a choice and its price, or that there is none. Settled here: the
cheapest is proved to be so; where time runs out, there is no answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import z3

from memmodel.errors import BudgetSpent
from memmodel.limits import outside
from memmodel.solve.solver import context


class Cheapest:
    """Things with prices, of which some are chosen. `prices`: of each, not negative.

    As in `Solver`, no exception may come between the making of a term and the increase of its reference count.
    """

    def __init__(self, prices: Sequence[float]) -> None:
        with outside(lambda: None):
            self._context = context()
            self._chosen = [z3.Bool(f"x{number}", self._context) for number in range(len(prices))]
            self._optimizer = z3.Optimize(ctx=self._context)
            for variable, price in zip(self._chosen, prices, strict=True):
                weight = Fraction(price).limit_denominator(10**6)
                if weight:
                    self._optimizer.add_soft(z3.Not(variable), f"{weight.numerator}/{weight.denominator}")

    def forbid_pairs(self, things: Iterable[int]) -> None:
        """At most one of these is chosen."""
        variables = [self._chosen[number] for number in things]
        if len(variables) > 1:
            with outside(lambda: None):
                self._optimizer.add(z3.AtMost(*variables, 1))

    def require(self, among: Iterable[int], unless: Iterable[int] = ()) -> None:
        """One of `among` is chosen, or one of `unless` is not."""
        chosen, left = ([self._chosen[number] for number in numbers] for numbers in (among, unless))
        with outside(lambda: None):
            literals = [*chosen, *map(z3.Not, left)]
            self._optimizer.add(z3.Or(*literals) if literals else z3.BoolVal(False, self._context))

    def choice(self, seconds: float) -> frozenset[int] | None:
        """The cheapest choice; None if there is none. Raises BudgetSpent when time is up before it is known."""
        with outside(self._context.interrupt):
            self._optimizer.set("timeout", max(1, min(int(1000 * seconds), 2**31 - 1)))
            answer = self._optimizer.check()
            if answer == z3.unsat:
                return None
            if answer != z3.sat:
                raise BudgetSpent("the cheapest choice was not known in time")
            model = self._optimizer.model()
            return frozenset(
                number
                for number, variable in enumerate(self._chosen)
                if z3.is_true(model.eval(variable, model_completion=True))
            )
