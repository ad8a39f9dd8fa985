"""The only place that speaks to Z3: clauses go in, one of a closed list of answers comes out.

In: Logic (formulas and constraints). Out: SAT with a valuation, UNSAT with the assumptions to blame, or UNKNOWN with a
reason. Unknown is never turned into a boolean. Work is bounded by Z3's resource units, which are the same on every
machine, and by seconds as a last resort.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence

import z3

from memmodel.answer import Budget
from memmodel.base.logic import FALSE, TRUE, Logic
from memmodel.limits import counted, outside, settle
from memmodel.solve.formulas import FormulaSolver, Satisfiable

FEW = 400
"""Up to this many clauses go to Z3 one by one: from a text it makes every variable that the header counts first."""

MANY = 100_000
"""Clauses in one text: Z3 reads all of it, and takes 400 bytes for each clause, before it looks at any limit."""


class _Names(dict[int, str]):
    """The literals of one Logic as the DIMACS format writes them: numbered in the order in which they are sent."""

    def __init__(self) -> None:
        self.count = 0

    def __missing__(self, literal: int) -> str:
        self.count += 1
        self[abs(literal)], self[-abs(literal)] = str(self.count), f"-{self.count}"
        return self[literal]


def context() -> z3.Context:
    """A new context. Call it under `outside`: a context that is only half made raises an error when it is freed."""
    made = z3.Context()
    # Python may collect garbage in any thread, the one that watches limits too, while another thread is in Z3.
    z3.Z3_enable_concurrent_dec_ref(made.ref())
    return made


class Solver(FormulaSolver[z3.ModelRef]):
    """Z3 over the formulas of one Logic."""

    def __init__(self, logic: Logic, budget: Budget, started: float) -> None:
        super().__init__(logic)
        self.budget = budget
        self.reason = ""
        self.core: tuple[int, ...] = ()
        self.effort = 0
        counted(lambda: self.effort)
        self._started = started
        self._terms: dict[int, z3.Ast] = {}  # of literals
        self._kept: dict[int, z3.BoolRef] = {}  # so that Z3 does not free these terms
        self._declared: dict[int, z3.FuncDecl] = {}
        with outside(lambda: None):
            # What Z3 answers depends on the terms that its context has had before: each question has one of its own.
            own = context()
            self._solver = z3.SolverFor("QF_FD", ctx=own)
            # Clauses that come with every candidate would be simplified again. Signals are Python's to handle.
            self._solver.set("simplify.delay", 1_000_000, "ctrl_c", False)
            self._bool = z3.BoolSort(own).ast
            self._context = own.ref()
            self._true = z3.BoolVal(True, own).as_ast().value  # equal terms are one object
        self._names = _Names()

    def check(self, assumptions: Sequence[int] = ()) -> Satisfiable:
        """Ask for a valuation of all constraints in which the assumptions hold. Raises MemoryError.

        No exception may come between the making of a term and the increase of its reference count: Z3 would free it too
        early.
        """
        while True:
            try:
                with outside(self._solver.interrupt):  # interrupting a solver that is not at work does nothing
                    result = self._check(assumptions)
            except z3.Z3Exception as error:
                if "out of memory" in str(error):  # Z3 has no class of its own for it
                    raise MemoryError from error
                raise
            if result is not Satisfiable.UNKNOWN or self.reason:
                return result
            # A signal stopped Z3, and its handler lets the work go on.

    def _check(self, assumptions: Sequence[int]) -> Satisfiable:
        """UNKNOWN without a reason: Z3 was interrupted."""
        if FALSE in assumptions:
            self.core = (FALSE,)
            return Satisfiable.UNSAT
        assumed = [f for f in assumptions if f != TRUE]
        self._send(assumed)
        effort = self.budget.effort - self.effort
        seconds = self._seconds_left()
        if effort <= 0 or seconds <= 0:
            self.reason = self.budget.out_of_effort if effort <= 0 else self.budget.out_of_seconds
            return Satisfiable.UNKNOWN
        self._solver.set("rlimit", min(effort, 2**32 - 1))
        self._solver.set("timeout", max(1, int(seconds * 1000)))
        before = self._effort_counter()
        status = z3.Z3_solver_check_assumptions(self._context, self._solver.solver, len(assumed), self._array(assumed))
        self.effort += max(0, self._effort_counter() - before)
        if status == z3.Z3_L_TRUE:
            self._model = self._solver.model()
            self._known = {}
            return Satisfiable.SAT
        if status == z3.Z3_L_FALSE:
            blamed = {term.as_ast().value for term in self._solver.unsat_core()}
            self.core = tuple(f for f in assumed if self._term(f).value in blamed)
            return Satisfiable.UNSAT
        self.reason = self._why_unknown(self._solver.reason_unknown())
        return Satisfiable.UNKNOWN

    def _seconds_left(self) -> float:
        return self.budget.seconds - (time.monotonic() - self._started)

    def _why_unknown(self, z3_reason: str) -> str:
        """Why Z3 does not know; "" if it was interrupted. It also says `canceled` when its steps ran out."""
        if z3_reason == "timeout" or self._seconds_left() <= 0:
            return self.budget.out_of_seconds
        if "resource limit" in z3_reason or self.effort >= self.budget.effort:
            return self.budget.out_of_effort
        return "" if "cancel" in z3_reason or "interrupt" in z3_reason else f"the solver gave up: {z3_reason}"

    def _variable(self, node: int) -> bool:
        assert self._model is not None
        declared = self._declared.get(node)
        if declared is None:
            declared = self._declared[node] = z3.Z3_get_app_decl(self._context, self._term(node))
        value = z3.Z3_model_get_const_interp(self._context, self._model.model, declared)
        return bool(value.value == self._true)

    def _effort_counter(self) -> int:
        for key, value in self._solver.statistics():
            if key == "rlimit count":
                return int(value)
        return 0

    def _send(self, roots: Sequence[int]) -> None:
        """Pass on the constraints and definitions that the solver does not have yet."""
        clauses = self._unsent(roots)
        if len(clauses) <= FEW:
            for clause in clauses:
                self._add(clause)
        else:
            for start in range(0, len(clauses), MANY):
                settle()
                self._read(clauses[start : start + MANY])

    def _read(self, clauses: Sequence[Sequence[int]]) -> None:
        """Clauses as a text."""
        name = self._names.__getitem__
        body = "\n".join(" ".join(map(name, clause)) + " 0" for clause in clauses)
        self._solver.from_string(f"p cnf {self._names.count} {len(clauses)}\n{body}\n")

    def _add(self, clause: Sequence[int]) -> None:
        """One clause, without the checks of sorts that z3.py makes of every operand: they took half of all time."""
        context = self._context
        term = z3.Z3_mk_or(context, len(clause), self._array(clause))
        z3.Z3_inc_ref(context, term)
        z3.Z3_solver_assert(context, self._solver.solver, term)
        z3.Z3_dec_ref(context, term)

    def _array(self, literals: Sequence[int]) -> ctypes.Array[z3.Ast]:
        """Their terms."""
        terms = self._terms
        for literal in literals:
            if literal not in terms:
                self._term(literal)
        array: ctypes.Array[z3.Ast] = (z3.Ast * len(literals))(*[terms[literal] for literal in literals])
        return array

    def _term(self, literal: int) -> z3.Ast:
        """Z3's term of a literal; it lives as long as this solver."""
        term = self._terms.get(literal)
        if term is None:
            context = self._context
            if literal > 0:  # an integer symbol, as the DIMACS reader makes them
                fresh = z3.Z3_mk_const(context, z3.Z3_mk_int_symbol(context, int(self._names[literal])), self._bool)
            else:
                fresh = z3.Z3_mk_not(context, self._term(-literal))
            kept = self._kept[literal] = z3.BoolRef(fresh, self._solver.ctx)
            term = self._terms[literal] = kept.ast
        return term
