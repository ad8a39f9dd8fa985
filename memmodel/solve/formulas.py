"""What a solver over the formulas of one Logic is: which of them it has, and what is true in its last SAT answer.

In: Logic. Out: `FormulaSolver`, which `Solver` (Z3) and `CaDiCaL` are; the closed list of answers, `Satisfiable`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from typing import Generic, TypeVar

from memmodel.base.logic import Logic

Model = TypeVar("Model")
"""A valuation as the library has it."""


class Satisfiable(Enum):
    """Whether constraints can hold together, as far as a solver knows."""

    SAT = "sat"
    UNSAT = "unsat"
    UNKNOWN = "unknown"


class FormulaSolver(ABC, Generic[Model]):
    """A solver over the formulas of one Logic. Constraints added to the Logic later are passed on before each check."""

    def __init__(self, logic: Logic) -> None:
        self.logic = logic
        self._defined: set[int] = set()
        self._sent = 0
        self._model: Model | None = None
        self._known: dict[int, bool] = {}  # truth of formulas in the valuation of `_model`

    @abstractmethod
    def check(self, assumptions: Sequence[int] = ()) -> Satisfiable:
        """Ask for a valuation of all constraints in which the assumptions hold."""

    @abstractmethod
    def _variable(self, node: int) -> bool:
        """True if a variable is true in the valuation of the last SAT answer."""

    def holds(self, formula: int) -> bool:
        """True if a formula is true in the valuation of the last SAT answer. Unconstrained variables count as false.

        Only variables are looked up: the solver need not have heard of a compound formula.
        """
        return self.logic.value(formula, self._known, self._variable)

    def valuation(self) -> tuple[Model | None, dict[int, bool]]:
        """The valuation of the last SAT answer, to come back to."""
        return self._model, self._known

    def restore(self, valuation: tuple[Model | None, dict[int, bool]]) -> None:
        """Let `holds` speak of an earlier answer again."""
        self._model, self._known = valuation

    def _unsent(self, roots: Sequence[int]) -> list[Sequence[int]]:
        """The clauses of constraints and of definitions below the roots that were not passed on yet."""
        fresh = self.logic.constraints[self._sent :]
        self._sent = len(self.logic.constraints)
        below = [formula for clause in fresh for formula in clause] + list(roots)
        return [*self.logic.clauses(below, self._defined), *fresh]
