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
from memmodel.solve.solver import Satisfiable

CONFLICTS = 2_000
"""After this many conflicts CaDiCaL comes back, so that signals are handled and limits looked at; then it goes on."""

OPTIONS = {"stabilizeonly": 1, "probe": 0}
"""Few restarts, and no probing of single literals: 50 to 80 % of the propagations for the questions of a search."""

Valuation = tuple[list[int], dict[int, bool]]


class CaDiCaL:
    """A solver over the formulas of one Logic. Constraints added to the Logic later are passed on before each check."""

    def __init__(self, logic: Logic) -> None:
        self.logic = logic
        self._solver = Cadical195()
        self._solver.configure(OPTIONS)
        self._defined: set[int] = set()
        self._sent = 0
        self._model: list[int] = []
        self._known: dict[int, bool] = {}  # truth of formulas in the valuation of `_model`

    def check(self, assumptions: Sequence[int] = ()) -> Satisfiable:
        """Ask for a valuation of all constraints in which the assumptions hold."""
        if FALSE in assumptions:
            return Satisfiable.UNSAT
        assumed = [formula for formula in assumptions if formula != TRUE]
        self._send(assumed)
        satisfiable = None
        while satisfiable is None:
            satisfiable = self._some_conflicts(assumed)
        if not satisfiable:
            return Satisfiable.UNSAT
        self._model, self._known = self._solver.get_model(), {}
        return Satisfiable.SAT

    def holds(self, formula: int) -> bool:
        """True if a formula is true in the valuation of the last SAT answer. Unconstrained variables count as false."""
        return self.logic.value(formula, self._known, self._variable)

    def valuation(self) -> Valuation:
        """That of the last SAT answer, to come back to."""
        return self._model, self._known

    def restore(self, valuation: Valuation) -> None:
        """Let `holds` speak of an earlier answer again."""
        self._model, self._known = valuation

    def _variable(self, node: int) -> bool:
        return node <= len(self._model) and self._model[node - 1] > 0

    def _send(self, roots: Sequence[int]) -> None:
        """Pass on the constraints and definitions that the solver does not have yet."""
        fresh = self.logic.constraints[self._sent :]
        self._sent = len(self.logic.constraints)
        below = [formula for clause in fresh for formula in clause] + list(roots)
        self._solver.append_formula(self.logic.clauses(below, self._defined) + fresh)

    def _some_conflicts(self, assumed: Sequence[int]) -> bool | None:
        """Whether they can hold together; None: not known yet. Raises BudgetSpent."""
        answers: list[bool | None] = []

        def solve() -> None:
            self._solver.conf_budget(CONFLICTS)
            answers.append(self._solver.solve_limited(assumptions=assumed))

        # In the main thread PySAT would handle SIGINT itself, and leave CaDiCaL by a jump. An exception for this thread
        # must not come while another one starts: it would have that, too, and end before it says that it has started.
        with outside(lambda: None):
            thread = Thread(target=solve, name="memmodel-cadical")
            thread.start()
            thread.join()
        return answers[0]
