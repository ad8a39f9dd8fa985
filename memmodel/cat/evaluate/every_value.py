"""All values of one execution, for those of executions that differ little from it.

In: ExpressionGraph, rows of the base names, what was evaluated already. Out: `EveryValue`.
"""

from __future__ import annotations

from memmodel.base.rows import Rows, inverse
from memmodel.cat.evaluate.evaluator import Evaluator, Known
from memmodel.cat.evaluate.graph import ExpressionGraph
from memmodel.cat.evaluate.large import LARGE, LargeEvaluator
from memmodel.cat.evaluate.rows import RowAlgebra, Value, mask_of, rows_of


class EveryValue(Evaluator[Value]):
    """The values of nodes in one execution, each kept from when it is asked for. `known`: an evaluator that has some of
    them."""

    def __init__(self, graph: ExpressionGraph, algebra: RowAlgebra, known: LargeEvaluator) -> None:
        super().__init__(graph, algebra, known.known)
        self.rows = algebra
        self._inverses: dict[int, Rows] = {}
        self._domains: dict[int, int] = {}
        self._empty: dict[int, bool] = {}
        self._equal: dict[tuple[int, int], bool] = {}
        self._one: dict[int, int] = {}
        """One object of each row: the relations of a model have most of their rows in common."""
        self._ones: set[int] = set()
        """The identities of these objects: to compare two rows takes longer than to know one again."""

    def value(self, number: int) -> Value:
        if number in self._values:
            return super().value(number)
        value = super().value(number)
        if self.nodes[number].op != "recursion" and not isinstance(value, int):
            value = self._values[number] = self._with_one_of_each(value)
        return value

    def _with_one_of_each(self, rows: Rows) -> Rows:
        if self.rows.count <= LARGE:
            return rows
        new = set(map(id, rows)) - self._ones
        if not new:
            return rows
        kept: dict[int, int] = {}
        for row in rows:
            if id(row) in new and id(row) not in kept:
                kept[id(row)] = self._one.setdefault(row, row)
        self._ones.update(map(id, kept.values()))
        return [kept.get(id(row), row) for row in rows]

    def inner(self, known: Known[Value]) -> Evaluator[Value]:
        return Evaluator(self.graph, self.algebra, known)

    def equal(self, first: int, second: int) -> bool:
        """True if two nodes have the same value."""
        pair = first, second
        if pair not in self._equal:
            self._equal[pair] = self.value(first) == self.value(second)
        return self._equal[pair]

    def inverse(self, number: int) -> Rows:
        """The inverse of a relation; of a union that of its parts, which other unions have, too."""
        rows = self._inverses.get(number)
        if rows is None:
            node = self.nodes[number]
            if node.op == "|":
                rows = rows_of(self.rows.union(*map(self.inverse, node.operands)))
            else:
                rows = inverse(rows_of(self.value(number)))
            rows = self._inverses[number] = self._with_one_of_each(rows)
        return rows

    def domain(self, number: int) -> int:
        """The events that a relation relates to something."""
        mask = self._domains.get(number)
        if mask is None:
            mask = self._domains[number] = mask_of(self.rows.domain(self.value(number)))
        return mask

    def is_empty(self, number: int) -> bool:
        known = self._empty.get(number)
        if known is None:
            known = self._empty[number] = self.rows.is_empty(self.value(number))
        return known
