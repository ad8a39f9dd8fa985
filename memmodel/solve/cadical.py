"""CaDiCaL, for large questions whose answer is mostly no: clauses go in, SAT with a valuation or UNSAT comes out.

In: Logic (formulas and constraints). It has no bound of its own: who asks runs it in a process that can be ended, as
`search.work` does. There it takes half of Z3's time, and less for the largest (docs/search.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Thread

from pysat.solvers import Cadical195

from memmodel.base.logic import FALSE, TRUE, Logic
from memmodel.limits import outside
from memmodel.solve.formulas import FormulaSolver, Satisfiable

CONFLICTS = 2_000
"""After this many conflicts CaDiCaL comes back, so that signals are handled and limits looked at; then it goes on."""

OPTIONS = {"stabilizeonly": 1, "probe": 0, "lucky": 0}
"""Few restarts, and no probing of single literals: 50 to 80 % of the propagations for the questions of a search. No
look at simple valuations, which would read all clauses whenever a small question is asked."""


class CaDiCaL(FormulaSolver[list[int]]):
    """CaDiCaL over the formulas of one Logic."""

    def __init__(self, logic: Logic) -> None:
        super().__init__(logic)
        self._solver = Cadical195()
        self._solver.configure(OPTIONS)

    def check(self, assumptions: Sequence[int] = ()) -> Satisfiable:
        """Ask for a valuation of all constraints in which the assumptions hold. Raises BudgetSpent, MemoryError."""
        if FALSE in assumptions:
            return Satisfiable.UNSAT
        assumed = [formula for formula in assumptions if formula != TRUE]
        self._solver.append_formula(self._unsent(assumed))
        satisfiable = None
        while satisfiable is None:
            satisfiable = self._some_conflicts(assumed)
        if not satisfiable:
            return Satisfiable.UNSAT
        self._model, self._known = self._solver.get_model(), {}
        return Satisfiable.SAT

    def true_one(self, formulas: Sequence[int]) -> int:
        """The number of one of some formulas that is true in the valuation of the last SAT answer, which was to be one
        in which some of them is. To evaluate a large formula takes as long as to find the valuation: the literal of one
        that CaDiCaL knows implies it.
        """
        for number, formula in enumerate(formulas):
            if formula in self._defined and self._variable(abs(formula)) is (formula > 0):
                return number
        return next(number for number, formula in enumerate(formulas) if self.holds(formula))

    def _variable(self, node: int) -> bool:
        assert self._model is not None
        return node <= len(self._model) and self._model[node - 1] > 0

    def _some_conflicts(self, assumed: Sequence[int]) -> bool | None:
        """True if the assumed literals can hold together; None if some conflicts were not enough to know. Raises
        BudgetSpent, MemoryError.
        """
        answers: list[bool | None] = []
        errors: list[MemoryError] = []

        def solve() -> None:
            try:
                self._solver.conf_budget(CONFLICTS)
                answers.append(self._solver.solve_limited(assumptions=assumed))
            except MemoryError as error:
                errors.append(error)

        # In the main thread PySAT would handle SIGINT itself, and leave CaDiCaL by a jump. An exception for this thread
        # must not come while another one starts: it would have that, too, and end before it says that it has started.
        with outside(lambda: None):
            thread = Thread(target=solve, name="memmodel-cadical")
            thread.start()
            thread.join()
        if errors:
            raise errors[0]
        return answers[0]
