"""The algebra of relations over formulas, against two that know no formulas: networkx, and integers as matrices.

A relation is drawn cell by cell: absent, certain, or a formula over a few variables. Under every valuation of the
variables, what the algebra built must be what the oracle says of the relation under that valuation.
"""

from __future__ import annotations

from itertools import product

import networkx as nx
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

from memmodel.base.logic import FALSE, TRUE, Logic
from memmodel.encode.algebra import FormulaAlgebra
from memmodel.encode.relations import Rel, Row, closure, cyclic, no_pairs
from memmodel.enumeration.matrix import Shape

SIZE = 5
VARIABLES = 4

cells = st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1))
recipes = st.lists(
    st.tuples(cells, st.lists(st.integers(-VARIABLES, VARIABLES), max_size=3)), max_size=SIZE * SIZE // 2 + 2
)
"""A formula is a conjunction of literals: [] is TRUE, 0 stands for "true" too, so that certain cells are common."""


class Sample:
    """A store with a few variables, and every valuation of them."""

    def __init__(self) -> None:
        self.logic = Logic()
        self.algebra = FormulaAlgebra(self.logic, [TRUE] * SIZE, lambda node: {})
        self.shape = Shape(SIZE)
        self.variables = [self.logic.var(f"v{i}") for i in range(VARIABLES)]

    def formula(self, literals: list[int]) -> int:
        return self.logic.conj(TRUE if i == 0 else self.variables[abs(i) - 1] * (1 if i > 0 else -1) for i in literals)

    def relation(self, recipe: list[tuple[tuple[int, int], list[int]]]) -> Rel:
        rel = no_pairs(SIZE)
        for (a, b), literals in recipe:
            if (cell := self.formula(literals)) != FALSE:
                rel[a][b] = cell
        return rel

    def row(self, rel: Rel) -> Row:
        return self.algebra.domain(rel)

    def valuations(self):
        for bits in product((False, True), repeat=VARIABLES):
            values = dict(zip(self.variables, bits, strict=True))
            known: dict[int, bool] = {}
            yield lambda formula, known=known, values=values: self.logic.value(formula, known, values.__getitem__)

    def pairs(self, rel: Rel, holds) -> set[tuple[int, int]]:
        return {(a, b) for a, row in enumerate(rel) for b, formula in row.items() if holds(formula)}

    def matrix(self, rel: Rel, holds) -> int:
        return sum(1 << a * SIZE + b for a, b in self.pairs(rel, holds))


@examples(150)
@given(recipe=recipes)
def test_closure_is_reachability(recipe) -> None:
    sample = Sample()
    rel = sample.relation(recipe)
    closed = closure(sample.logic, rel)
    for holds in sample.valuations():
        graph = nx.DiGraph(sample.pairs(rel, holds))
        assert sample.pairs(closed, holds) == set(nx.transitive_closure(graph).edges)


@examples(150)
@given(recipe=recipes)
def test_cyclic_says_whether_it_is_no_dag(recipe) -> None:
    sample = Sample()
    rel = sample.relation(recipe)
    circle = cyclic(sample.logic, rel)
    for holds in sample.valuations():
        graph = nx.DiGraph(sample.pairs(rel, holds))
        assert holds(circle) == (not nx.is_directed_acyclic_graph(graph))


@examples(150)
@given(first=recipes, second=recipes)
def test_every_operation_is_that_of_whole_matrices(first, second) -> None:
    sample = Sample()
    algebra, shape = sample.algebra, sample.shape
    left, right = sample.relation(first), sample.relation(second)
    one, two = sample.row(left), sample.row(right)
    built = {
        "union": algebra.union(left, right),
        "intersection": algebra.intersection(left, right),
        "difference": algebra.difference(left, right),
        "compose": algebra.compose(left, right),
        "inverse": algebra.inverse(left),
        "closure": algebra.closure(left),
        "product": algebra.product(one, two),
        "identity": algebra.identity(one),
    }
    rows = {
        "domain": one,
        "range": algebra.range(left),
        "or": algebra.union(one, two),
        "and": algebra.intersection(one, two),
        "minus": algebra.difference(one, two),
    }
    for holds in sample.valuations():
        a, b = sample.matrix(left, holds), sample.matrix(right, holds)
        s, t = shape.domain(a), shape.domain(b)
        expected = {
            "union": a | b,
            "intersection": a & b,
            "difference": a & ~b,
            "compose": shape.compose(a, b),
            "inverse": shape.inverse(a),
            "closure": shape.closure(a),
            "product": shape.product(s, t),
            "identity": shape.diagonal_of(s),
        }
        assert {name: sample.matrix(rel, holds) for name, rel in built.items()} == expected
        sets = {"domain": s, "range": shape.range(a), "or": s | t, "and": s & t, "minus": s & ~t}
        assert {name: sum(1 << e for e, f in row.items() if holds(f)) for name, row in rows.items()} == sets


@examples(60)
@given(first=recipes, second=recipes)
def test_arguments_are_never_changed(first, second) -> None:
    sample = Sample()
    algebra = sample.algebra
    left, right = sample.relation(first), sample.relation(second)
    before = [dict(row) for row in left], [dict(row) for row in right]
    for result in (
        algebra.union(left, right),
        algebra.union(left, no_pairs(SIZE)),
        algebra.difference(left, no_pairs(SIZE)),
        algebra.closure(left),
        algebra.inverse(left),
    ):
        for row in result:
            assert all(formula != FALSE for formula in row.values())
    cyclic(sample.logic, left)
    assert (left, right) == before
