"""The only place that speaks to Z3: clauses go in, a closed list of answers comes out.

In: Logic (formulas and constraints). Out: SAT with a valuation, UNSAT with the assumptions to blame, or UNKNOWN with a
reason. Unknown is never turned into a boolean. Work is bounded by Z3's resource units, which are the same on every
machine, and by seconds as a last resort.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from enum import Enum

import z3

from memmodel.answer import Budget
from memmodel.base.logic import FALSE, TRUE, Logic
from memmodel.limits import counted, outside

# Python may collect garbage in any thread, the one that watches limits too, while another thread is in Z3.
z3.Z3_enable_concurrent_dec_ref(z3.main_ctx().ref())

FEW = 400
"""So many clauses go to Z3 one by one; its reader of texts begins by making every variable of the text's header."""


Valuation = tuple[z3.ModelRef | None, dict[int, bool]]


class Found(Enum):
    SAT = "sat"
    UNSAT = "unsat"
    UNKNOWN = "unknown"


class Solver:
    """A solver over the formulas of one Logic. Constraints added to the Logic later are passed on before each check."""

    def __init__(self, logic: Logic, budget: Budget, started: float) -> None:
        self.logic = logic
        self.budget = budget
        self.reason = ""
        self.core: tuple[int, ...] = ()
        self.effort = 0
        counted(lambda: self.effort)
        self._started = started
        self._done: set[int] = set()
        self._sent = 0
        self._solver = z3.SolverFor("QF_FD")
        self._solver.set(
            "simplify.delay", 1_000_000
        )  # clauses that come with every candidate would be simplified again
        self._model: z3.ModelRef | None = None
        self._constants: dict[int, z3.BoolRef] = {}
        self._declared: dict[int, z3.FuncDecl] = {}
        self._context = self._solver.ctx.ref()
        self._true = z3.BoolVal(True).as_ast().value  # equal terms are one object
        self._known: dict[int, bool] = {}  # truth of formulas in the valuation of `_model`

    def check(self, assumptions: Sequence[int] = ()) -> Found:
        """Is there a valuation of all constraints in which the assumptions hold?

        No exception may come between the making of a term and the count of who holds it: Z3 would free it too early.
        """
        with outside():
            return self._check(assumptions)

    def _check(self, assumptions: Sequence[int]) -> Found:
        if FALSE in assumptions:
            self.core = (FALSE,)
            return Found.UNSAT
        assumed = [f for f in assumptions if f != TRUE]
        self._send(assumed)
        left = self.budget.effort - self.effort
        seconds = self.budget.seconds - (time.monotonic() - self._started)
        if left <= 0 or seconds <= 0:
            what = f"{self.budget.effort:,} solver steps" if left <= 0 else f"{self.budget.seconds:g} seconds"
            self.reason = f"the budget of {what} ran out"
            return Found.UNKNOWN
        self._solver.set("rlimit", min(left, 2**32 - 1))
        self._solver.set("timeout", max(1, int(seconds * 1000)))
        before = self._used()
        literals = [self._literal(f) for f in assumed]
        found = self._solver.check(*literals)
        self.effort += max(0, self._used() - before)
        if found == z3.sat:
            self._model = self._solver.model()
            self._known = {}
            return Found.SAT
        if found == z3.unsat:
            names = {str(term) for term in self._solver.unsat_core()}
            self.core = tuple(f for f in assumed if str(self._literal(f)) in names)
            return Found.UNSAT
        late = time.monotonic() - self._started >= self.budget.seconds
        what = f"{self.budget.seconds:g} seconds" if late else f"{self.budget.effort:,} solver steps"
        self.reason = f"the budget of {what} ran out"
        return Found.UNKNOWN

    def valuation(self) -> Valuation:
        """That of the last SAT answer, to come back to."""
        return self._model, self._known

    def restore(self, valuation: Valuation) -> None:
        """Let `holds` speak of an earlier answer again."""
        self._model, self._known = valuation

    def holds(self, formula: int) -> bool:
        """Is a formula true in the valuation of the last SAT answer? Unconstrained variables count as false.

        Only variables are looked up: the solver need not have heard of a compound formula.
        """
        return self.logic.value(formula, self._known, self._variable)

    def _variable(self, node: int) -> bool:
        assert self._model is not None
        declared = self._declared.get(node)
        if declared is None:
            declared = self._declared[node] = z3.Z3_get_app_decl(self._context, self._constant(node).as_ast())
        found = z3.Z3_model_get_const_interp(self._context, self._model.model, declared)
        return bool(found.value == self._true)

    def _used(self) -> int:
        for key, value in self._solver.statistics():
            if key == "rlimit count":
                return int(value)
        return 0

    def _send(self, roots: Iterable[int]) -> None:
        """Pass on the constraints and definitions that the solver does not have yet."""
        fresh = self.logic.constraints[self._sent :]
        self._sent = len(self.logic.constraints)
        below = [f for clause in fresh for f in clause] + list(roots)
        clauses = self.logic.clauses(below, self._done) + fresh
        if len(clauses) <= FEW:
            for clause in clauses:
                self._solver.add(z3.Or([self._literal(f) for f in clause]))
        else:
            body = "\n".join(" ".join(map(str, clause)) + " 0" for clause in clauses)
            text = f"p cnf {self.logic.size} {len(clauses)}\n{body}\n"
            with outside():
                self._solver.from_string(text)

    def _constant(self, node: int) -> z3.BoolRef:
        if node not in self._constants:
            self._constants[node] = z3.Bool(node)  # an integer symbol, as the DIMACS reader makes them
        return self._constants[node]

    def _literal(self, formula: int) -> z3.BoolRef:
        constant = self._constant(abs(formula))
        return constant if formula > 0 else z3.Not(constant)
