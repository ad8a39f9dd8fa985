"""Executions under parts of a model's axioms: one encoding and one solver answer for every part.

In: LoweredTest, Model, Budget. Out: `AxiomParts`. What the solver learns for one part holds for the others.
"""

from __future__ import annotations

import time

from memmodel.answer import Budget, Witness
from memmodel.cat.flags import MIXED_SIZES
from memmodel.cat.syntax import Model
from memmodel.errors import InternalError, TooLarge
from memmodel.litmus.syntax import terms_of
from memmodel.program.lowered import LoweredTest
from memmodel.refine.query import encode
from memmodel.solve.answers import Questions
from memmodel.solve.formulas import Satisfiable
from memmodel.solve.solver import Solver


class AxiomParts:
    """Questions about the condition of a test under some of the axioms of a model."""

    def __init__(self, lowered: LoweredTest, model: Model, *, budget: Budget, bound: int) -> None:
        started = time.monotonic()
        flags = [check.name for check in model.flags if check.name == MIXED_SIZES]
        self._query = encode(lowered, model, bound, tuple(terms_of(lowered.test.condition)), flags)
        self._lowered, self._bound = lowered, bound
        self._solver = Solver(self._query.graph.logic, budget, started)
        self._begun = False

    def forbids(self, part: Model) -> bool:
        """True if no execution that the part allows satisfies the condition, and all were followed to their ends."""
        questions = self._questions(part)
        if self._asked(questions) is not Satisfiable.UNSAT:
            return False
        return not (questions.mixed_sizes() or questions.why_not_followed())

    def witness(self, part: Model) -> Witness | None:
        """An execution that satisfies the condition and that the part allows; None if none was found, or if the values
        in it come out of thin air, and no numbers fit."""
        questions = self._questions(part)
        try:
            return questions.witness(True) if self._asked(questions) is Satisfiable.SAT else None
        except (InternalError, TooLarge):
            return None

    def _questions(self, part: Model) -> Questions:
        questions = Questions(self._lowered, part, self._query, self._solver, self._bound)
        questions.asker.axioms = [check.name for check in part.axioms]
        return questions

    def _asked(self, questions: Questions) -> Satisfiable:
        if not self._begun:
            questions.begin()
            self._begun = True
        return questions.asker.check([self._query.ends, self._query.condition])
