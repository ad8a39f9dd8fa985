"""Every cell of every relation of a model as a formula: what `memmodel.refine` is compared with.

In: Model, BaseFormulas. Out: `ModelFormulas`: the shared evaluator over formulas. A set is a row, event -> formula, a
relation a list of rows; a missing cell is FALSE. The formulas of a `let rec` are exactly its least fixpoint: cells are
unfolded as often as the group has cells that may hold, because no shortest derivation is deeper.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from memmodel.base.logic import FALSE, TRUE, Logic
from memmodel.base.relations import DECIDED, RELATION_ROWS
from memmodel.base.rows import bits
from memmodel.base.sets import SET_ROWS
from memmodel.cat.evaluate.algebra import Algebra
from memmodel.cat.evaluate.evaluator import Evaluator
from memmodel.cat.evaluate.graph import Node, graph_of
from memmodel.cat.syntax import Check, Model
from memmodel.encode.base import BaseFormulas
from memmodel.encode.relations import Rel, Row, closure, cyclic, no_pairs
from memmodel.errors import InternalError

Value = Row | Rel


class FormulaAlgebra(Algebra[Value]):
    """Operations on rows and relations. `runs`: when each event is there; `read`: what a base name means."""

    def __init__(self, logic: Logic, runs: list[int], read: Callable[[Node], Value]) -> None:
        self.logic = logic
        self.count = len(runs)
        self.everybody = {event: formula for event, formula in enumerate(runs) if formula != FALSE}
        self._read = read

    def base(self, node: Node) -> Value:
        return self._read(node)

    def order(self, node: Node, over: Value, extends: Value) -> Rel:
        """Some strict total order on a set: a variable for each two of its events, and no three in a circle."""
        members = _row(over)
        both, require, rows = self.logic.both, self.logic.require, no_pairs(self.count)
        events = sorted(members)
        for at, a in enumerate(events):
            for b in events[at + 1 :]:
                first = self.logic.var(f"order{node.place}(e{a},e{b})")
                rows[a][b] = both(both(members[a], members[b]), first)
                rows[b][a] = both(both(members[a], members[b]), -first)
        for a, b, c in combinations(events, 3):
            require(-rows[a][b], -rows[b][c], -rows[c][a])
            require(-rows[a][c], -rows[c][b], -rows[b][a])
        return [_kept(row) for row in rows]

    def empty(self, is_set: bool) -> Value:
        return {} if is_set else no_pairs(self.count)

    def is_empty(self, value: Value) -> bool:
        return not value if isinstance(value, dict) else not any(value)

    def _pointwise(self, operation: Callable[[Row, Row], Row], left: Value, right: Value) -> Value:
        if isinstance(left, dict):
            return operation(left, _row(right))
        return [operation(a, b) for a, b in zip(left, _rel(right), strict=True)]

    def union(self, left: Value, right: Value) -> Value:
        either = self.logic.either
        return self._pointwise(
            lambda a, b: {key: either(a.get(key, FALSE), b.get(key, FALSE)) for key in {**a, **b}}, left, right
        )

    def intersection(self, left: Value, right: Value) -> Value:
        both = self.logic.both
        return self._pointwise(lambda a, b: _kept({key: both(a[key], b[key]) for key in a if key in b}), left, right)

    def difference(self, left: Value, right: Value) -> Value:
        both = self.logic.both
        return self._pointwise(lambda a, b: _kept({key: both(a[key], -b.get(key, FALSE)) for key in a}), left, right)

    def complement(self, value: Value, is_set: bool) -> Value:
        every = self.everybody
        return self.difference(every if is_set else self.product(every, every), value)

    def compose(self, left: Value, right: Value) -> Rel:
        both, composed = self.logic.both, no_pairs(self.count)
        for a, row in enumerate(_rel(left)):
            parts: dict[int, list[int]] = {}
            for middle, first in row.items():
                for b, second in _rel(right)[middle].items():
                    parts.setdefault(b, []).append(both(first, second))
            composed[a] = _kept({b: self._any(cells) for b, cells in parts.items()})
        return composed

    def from_sources(self, sources: Value, relation: Value) -> Rel:
        return self.compose(self.identity(sources), relation)

    def to_targets(self, relation: Value, targets: Value) -> Rel:
        return self.compose(relation, self.identity(targets))

    def _any(self, cells: list[int]) -> int:
        return TRUE if TRUE in cells else self.logic.disj(cells)

    def inverse(self, relation: Value) -> Rel:
        turned = no_pairs(self.count)
        for a, row in enumerate(_rel(relation)):
            for b, formula in row.items():
                turned[b][a] = formula
        return turned

    def product(self, left: Value, right: Value) -> Rel:
        both, rows, targets = self.logic.both, no_pairs(self.count), _row(right)
        for a, first in _row(left).items():
            rows[a] = _kept({b: both(first, second) for b, second in targets.items()})
        return rows

    def identity(self, events: Value) -> Rel:
        return [{a: _row(events)[a]} if a in events else {} for a in range(self.count)]

    def optional(self, relation: Value) -> Value:
        return self.union(relation, self.identity(self.everybody))

    def closure(self, relation: Value) -> Rel:
        return closure(self.logic, _rel(relation))

    def domain(self, relation: Value) -> Row:
        return {a: self._any(list(row.values())) for a, row in enumerate(_rel(relation)) if row}

    def range(self, relation: Value) -> Row:
        return self.domain(self.inverse(relation))

    def least(
        self, start: tuple[Value, ...], step: Callable[[tuple[Value, ...]], tuple[Value, ...]]
    ) -> tuple[Value, ...]:
        values = start
        while (after := step(values)) != values:
            known = [_cells(one) for one in after] == [_cells(one) for one in values]
            values = after
            if known:  # which cells may hold; their formulas have still to be unfolded
                break
        for _ in range(sum(len(_cells(one)) for one in values)):
            values, before = step(values), values
            if values == before:
                break
        return values

    def fails(self, test: str, value: Value) -> int:
        """The formula that says that a value is not empty, not irreflexive, or not acyclic, as the test asks."""
        if test == "acyclic":
            return cyclic(self.logic, _rel(value))
        if isinstance(value, dict):
            return self.logic.disj(value.values())
        if test == "irreflexive":
            return self.logic.disj(row[a] for a, row in enumerate(value) if a in row)
        return self.logic.disj(formula for row in value for formula in row.values())


class ModelFormulas:
    """A model over one event graph."""

    def __init__(self, model: Model, base: BaseFormulas) -> None:
        events, runs, both = base.graph.events, base.runs, base.graph.logic.both

        def read(node: Node) -> Value:
            if node.is_set:
                row = SET_ROWS[node.name]
                if row.holds is None:
                    return base.set(node.name)
                return {e.uid: runs[e.uid] for e in events if row.holds(e.label) and row.has(e.point.cell)}
            if node.name in DECIDED:
                return base.relation(node.name)
            rows = RELATION_ROWS[node.name].rows([event.point for event in events])
            return [_kept({b: both(runs[a], runs[b]) for b in bits(row)}) for a, row in enumerate(rows)]

        self.algebra = FormulaAlgebra(base.graph.logic, base.runs, read)
        self._graph = graph_of(model.definitions)
        self._evaluator = Evaluator(self._graph.graph, self.algebra)

    def holds(self, check: Check) -> int:
        """The formula that says a check is satisfied."""
        broken = self.algebra.fails(check.test, self._evaluator.value(self._graph.node(check.body)))
        return broken if check.negated else -broken


def _kept(row: Row) -> Row:
    return {key: formula for key, formula in row.items() if formula != FALSE}


def _cells(value: Value) -> set[tuple[int, int]]:
    if isinstance(value, dict):
        return {(a, a) for a in value}
    return {(a, b) for a, row in enumerate(value) for b in row}


def _rel(value: Value) -> Rel:
    if isinstance(value, dict):
        raise InternalError("a set stands where a relation is needed")
    return value


def _row(value: Value) -> Row:
    if isinstance(value, dict):
        return value
    raise InternalError("a relation stands where a set is needed")
