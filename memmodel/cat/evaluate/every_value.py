"""All values of one execution, for those of executions that differ little from it.

In: ExpressionGraph, rows of the base names, what was evaluated already. Out: `EveryValue`.
"""

from __future__ import annotations

from memmodel.base.rows import Rows, inverse
from memmodel.cat.evaluate.evaluator import Evaluator, Known
from memmodel.cat.evaluate.graph import ExpressionGraph, StoredGraph
from memmodel.cat.evaluate.large import LARGE
from memmodel.cat.evaluate.rows import RowAlgebra, Value, as_relation, as_set


class EveryValue(Evaluator[Value]):
    """The values of nodes in one execution, each kept from when it is asked for. `known`: some of them."""

    def __init__(self, graph: ExpressionGraph | StoredGraph, algebra: RowAlgebra, known: Known[Value]) -> None:
        super().__init__(graph, algebra, known)
        self.rows = algebra
        self._inverses: dict[int, Rows] = {}
        self._domains: dict[int, int] = {}
        self._empty: dict[int, bool] = {}
        self._equal: dict[tuple[int, int], bool] = {}
        self._rounds: dict[int, list[EveryValue]] = {}
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
                rows = as_relation(self.rows.union(*map(self.inverse, node.operands)))
            else:
                rows = inverse(as_relation(self.value(number)))
            rows = self._inverses[number] = self._with_one_of_each(rows)
        return rows

    def domain(self, number: int) -> int:
        """The events that a relation relates to something."""
        mask = self._domains.get(number)
        if mask is None:
            mask = self._domains[number] = as_set(self.rows.domain(self.value(number)))
        return mask

    def is_empty(self, number: int) -> bool:
        known = self._empty.get(number)
        if known is None:
            known = self._empty[number] = self.rows.is_empty(self.value(number))
        return known

    def rounds(self, number: int) -> list[EveryValue]:
        """The rounds in which the members of a recursion are found, the first one with members that are empty, the last
        one with those that stay."""
        if number not in self._rounds:
            bodies = self.nodes[number].operands
            members: tuple[Value, ...] = tuple(self.rows.empty(self.nodes[body].is_set) for body in bodies)
            rounds = self._rounds[number] = [_Round(self, members)]
            while (after := tuple(map(rounds[-1].value, bodies))) != members:
                members = after
                rounds.append(_Round(self, members))
        return self._rounds[number]


class _Round(EveryValue):
    """The values of the bodies of a recursion where its members have these values. `outside`: all other values."""

    def __init__(self, outside: EveryValue, members: tuple[Value, ...]) -> None:
        nodes = outside.nodes

        def known(number: int) -> Value | None:
            node = nodes[number]
            if not node.open:
                return outside.value(number)
            return members[node.place] if node.op == "self" else None

        super().__init__(outside.graph, outside.rows, known)
        self._outside = outside

    def inverse(self, number: int) -> Rows:
        return super().inverse(number) if self.nodes[number].open else self._outside.inverse(number)

    def domain(self, number: int) -> int:
        return super().domain(number) if self.nodes[number].open else self._outside.domain(number)

    def is_empty(self, number: int) -> bool:
        return super().is_empty(number) if self.nodes[number].open else self._outside.is_empty(number)
