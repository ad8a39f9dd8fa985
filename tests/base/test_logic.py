"""Formulas are simplified as they are built: never their truth, and always the same formula for the same question."""

from __future__ import annotations

from itertools import pairwise, product
from random import Random
from time import monotonic

import pytest
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

from memmodel.answer import Budget
from memmodel.base.logic import FALSE, TRUE, Logic
from memmodel.errors import BudgetSpent
from memmodel.limits import Limits
from memmodel.solve.cadical import CaDiCaL
from memmodel.solve.formulas import Satisfiable
from memmodel.solve.solver import Solver

NAMES = 4

trees = st.recursive(
    st.sampled_from(("true", "false", *range(NAMES))),
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(("both", "either")), inner, inner),
        st.tuples(st.just("choose"), inner, inner, inner),
        st.lists(inner, max_size=4).map(lambda items: ("conj", *items)),
        st.lists(inner, max_size=4).map(lambda items: ("disj", *items)),
    ),
    max_leaves=12,
)


def solver_of(logic: Logic) -> Solver:
    """A solver with the whole of the usual budget."""
    return Solver(logic, Budget(), monotonic())


SOLVERS = pytest.mark.parametrize("solver_of", [solver_of, CaDiCaL], ids=["Z3", "CaDiCaL"])


def build(logic: Logic, variables: list[int], tree) -> int:
    if not isinstance(tree, tuple):
        return {"true": TRUE, "false": FALSE}[tree] if isinstance(tree, str) else variables[tree]
    word, *rest = tree
    parts = [build(logic, variables, item) for item in rest]
    if word == "not":
        return -parts[0]
    if word in ("conj", "disj"):
        return getattr(logic, word)(parts)
    return getattr(logic, word)(*parts)


def truth(values: tuple[bool, ...], tree) -> bool:
    if not isinstance(tree, tuple):
        return tree == "true" if isinstance(tree, str) else values[tree]
    word, *rest = tree
    parts = [truth(values, item) for item in rest]
    if word == "not":
        return not parts[0]
    if word == "choose":
        return parts[1] if parts[0] else parts[2]
    return all(parts) if word in ("conj", "both") else any(parts)


@examples(300)
@given(tree=trees)
def test_building_keeps_the_truth_table(tree) -> None:
    logic = Logic()
    variables = [logic.var(f"v{i}") for i in range(NAMES)]
    formula = build(logic, variables, tree)
    for values in product((False, True), repeat=NAMES):
        by_variable = dict(zip(variables, values, strict=True))
        assert logic.value(formula, {}, by_variable.__getitem__) == truth(values, tree)


@examples(100)
@given(tree=trees)
def test_equal_formulas_are_equal_integers(tree) -> None:
    logic = Logic()
    variables = [logic.var(f"v{i}") for i in range(NAMES)]
    first = build(logic, variables, tree)
    size = logic.size
    assert build(logic, variables, tree) == first
    assert logic.size == size


@SOLVERS
@examples(60)
@given(tree=trees)
def test_clauses_have_the_models_of_the_formula(solver_of, tree) -> None:
    logic = Logic()
    variables = [logic.var(f"v{i}") for i in range(NAMES)]
    formula = build(logic, variables, tree)
    solver = solver_of(logic)
    for values in product((False, True), repeat=NAMES):
        fixed = [v if value else -v for v, value in zip(variables, values, strict=True)]
        found = solver.check([*fixed, formula])
        assert found is (Satisfiable.SAT if truth(values, tree) else Satisfiable.UNSAT)


@SOLVERS
@examples(60)
@given(tree=trees)
def test_a_formula_that_the_solver_never_saw_has_its_truth(solver_of, tree) -> None:
    logic = Logic()
    variables = [logic.var(f"v{i}") for i in range(NAMES)]
    solver = solver_of(logic)
    assert solver.check([variables[0], -variables[1]]) is Satisfiable.SAT
    formula = build(logic, variables, tree)
    values = tuple(solver.holds(v) for v in variables)
    assert values[:2] == (True, False)
    assert solver.holds(formula) == truth(values, tree)


@SOLVERS
@pytest.mark.parametrize("count", [1, 2, 6, 7, 12])
def test_exactly_one_variable_holds(solver_of, count: int) -> None:
    logic = Logic()
    when = logic.var("when")
    group = [logic.var(f"v{i}") for i in range(count)]
    logic.exactly_one(group, when)
    solver = solver_of(logic)
    assert solver.check([when, *(-v for v in group)]) is Satisfiable.UNSAT
    for chosen in group:
        assert solver.check([when, chosen]) is Satisfiable.SAT
        assert [v for v in group if solver.holds(v)] == [chosen]
        assert solver.check([-when, chosen]) is Satisfiable.UNSAT
    for first, second in pairwise(group):
        assert logic.both(first, second) == FALSE
    assert solver.check([-when]) is Satisfiable.SAT


@SOLVERS
def test_a_clause_without_literals_has_no_model(solver_of) -> None:
    logic = Logic()
    logic.require()
    assert solver_of(logic).check() is Satisfiable.UNSAT


def test_a_formula_shows_the_names_of_its_variables() -> None:
    logic = Logic()
    a, b, c = (logic.var(name) for name in "abc")
    assert [logic.show(f) for f in (TRUE, FALSE, a, -a)] == ["true", "false", "a", "~a"]
    assert logic.show(logic.conj((a, -b))) == "(~b & a)"
    nested = logic.disj((logic.conj((a, b)), c))
    assert logic.show(nested) == "~(~(a & b) & ~c)"
    assert logic.show(nested, depth=1) == "~(~… & ~c)"


def test_an_interrupt_where_nothing_is_at_work_spoils_no_later_answer() -> None:
    """The thread that watches the limits may interrupt while clauses are made, and not only while Z3 searches."""
    for _ in range(2):
        logic = Logic()
        chain = [logic.var(f"v{i}") for i in range(600)]  # so many clauses go to Z3 as text
        for first, second in pairwise(chain):
            logic.require(-first, second)
        solver = solver_of(logic)
        with Limits(Budget()) as limits, limits.outside(solver._solver.interrupt):
            assert limits._interrupt is not None
            limits._interrupt()
        assert solver.check([chain[0], -chain[-1]]) is Satisfiable.UNSAT


@pytest.mark.parametrize("many", [3, 10**6])
def test_clauses_go_to_the_solver_in_texts(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six pigeons in five holes, and in six: the clauses mean the same in one text, in many, and one by one."""
    monkeypatch.setattr("memmodel.solve.solver.FEW", 0)
    monkeypatch.setattr("memmodel.solve.solver.MANY", many)
    _pigeons(solver_of)


def _pigeons(solver_of) -> None:
    for holes, found in ((5, Satisfiable.UNSAT), (6, Satisfiable.SAT)):
        logic, sits = pigeons(6, holes)
        solver = solver_of(logic)
        assert solver.check([]) is found
        logic.require(-sits[0][0])
        assert solver.check([sits[0][0]]) is Satisfiable.UNSAT


def pigeons(count: int, holes: int) -> tuple[Logic, list[list[int]]]:
    """Pigeons that sit in a hole each, and no two in one: formulas, and for each pigeon that it sits in a hole."""
    logic = Logic()
    sits = [[logic.var(f"sits{one}{hole}") for hole in range(holes)] for one in range(count)]
    for row in sits:
        logic.exactly_one(row)
    for hole in range(holes):
        logic.at_most_one([row[hole] for row in sits])
    return logic, sits


def test_cadical_goes_on_after_each_bound_of_conflicts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memmodel.solve.cadical.CONFLICTS", 1)
    _pigeons(CaDiCaL)


@examples(200)
@given(some=st.lists(trees, min_size=1, max_size=4))
def test_one_of_some_formulas_is_true_by_its_literal(some) -> None:
    logic = Logic()
    variables = [logic.var(f"v{i}") for i in range(NAMES)]
    formulas = [build(logic, variables, tree) for tree in some]
    solver = CaDiCaL(logic)
    if solver.check([logic.disj(formulas)]) is Satisfiable.SAT:
        assert solver.holds(formulas[solver.true_one(formulas)])


def test_memory_that_runs_out_in_cadical_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("memmodel.solve.cadical.Cadical195.solve_limited", no_memory)
    with pytest.raises(MemoryError):
        CaDiCaL(Logic()).check([])


def test_limits_hold_while_cadical_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """700 variables in random clauses of three, at the ratio where it is open whether they hold: beyond any solver. The
    time may be over while a thread starts, which a thread that starts often shows.
    """
    monkeypatch.setattr("memmodel.solve.cadical.CONFLICTS", 5)
    logic, chance = Logic(), Random(1)
    variables = [logic.var(f"v{i}") for i in range(700)]
    for _ in range(2982):
        logic.require(*(variable if chance.random() < 0.5 else -variable for variable in chance.sample(variables, 3)))
    for _ in range(8):
        with pytest.raises(BudgetSpent), Limits(Budget(seconds=0.2)):
            CaDiCaL(logic).check([])
