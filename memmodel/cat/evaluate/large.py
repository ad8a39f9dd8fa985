"""The evaluator of one large execution, which saves time and memory.

In: ExpressionGraph, rows of the base names. Out: `LargeEvaluator`. A relation is cut by `[S]`, by a difference or by an
intersection before it is composed or inverted. Values are kept only for the nodes of `kept`, and in a very large
execution only as long as something may ask for them.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from memmodel.base.graphs import reached
from memmodel.base.rows import Rows, bits, range_of, rows_without
from memmodel.cat.evaluate.evaluator import Evaluator, Known, nothing_known
from memmodel.cat.evaluate.graph import ExpressionGraph
from memmodel.cat.evaluate.rows import RowAlgebra, Value, as_relation, as_set

POINTWISE = ("base", "empty", "|", "&", "\\", "~", "[]", "^-1", "?", "product")
"""Operators whose value for a pair follows from the values of their operands for the pair, turned round or not."""

LARGE = 6_000
"""Events of an execution of which not all values are kept: each may take as many bits as there are pairs."""


class LargeEvaluator(Evaluator[Value]):
    """Values of nodes. `kept`: the nodes whose values are kept; `left`: those that will be asked for."""

    def __init__(self, graph: ExpressionGraph, algebra: RowAlgebra, known: Known[Value] = nothing_known) -> None:
        super().__init__(graph, algebra, known)
        self.rows: RowAlgebra = algebra
        self.kept: frozenset[int] = frozenset()
        self.left: list[int] = []
        self._doing: list[int] = []
        self._pointwise: dict[int, bool] = {}

    def within(self, members: tuple[Value, ...]) -> Evaluator[Value]:
        inside = super().within(members)
        assert isinstance(inside, LargeEvaluator)
        inside.kept = self.kept
        return inside

    def value(self, number: int) -> Value:
        value: Value | None = self._values.get(number)
        if value is None:
            value = self._known(number)
            if value is not None:
                self._values[number] = value
        if value is None and (number in self.kept or self.nodes[number].op == "recursion"):
            self._doing.append(number)
            value = self._values[number] = self.evaluate(number)
            self._doing.pop()
            self.forget()
        return self.evaluate(number) if value is None else value

    def known(self, number: int) -> Value | None:
        """The value of a node, if it was evaluated and kept."""
        return self._values.get(number)

    def equal(self, first: int, second: int) -> bool:
        """True if two nodes have the same value."""
        return self.value(first) == self.value(second)

    def drop(self, first: int) -> None:
        """Drop the values of this node and of all that were made later."""
        self._values = {number: value for number, value in self._values.items() if number < first}

    def take_over(self, other: LargeEvaluator, changed: AbstractSet[str], gone: int = 0) -> None:
        """Take the values of another execution. `changed`: the base names that differ there; `gone`: the events that it
        has and this one has not. To leave out events then leaves them out of a value that is made from base names pair
        by pair, and may do more to others.
        """
        nodes, values = self.nodes, other._values
        if not gone:
            self._values = {
                number: value for number, value in values.items() if nodes[number].bases.isdisjoint(changed)
            }
            return

        def known(number: int) -> Value | None:
            value = values.get(number)
            if value is None or not other.is_pointwise(number) or not nodes[number].bases.isdisjoint(changed):
                return None
            return value & ~gone if isinstance(value, int) else rows_without(value, gone)

        self._known = known

    def is_pointwise(self, number: int) -> bool:
        """True if what a node says of an event or a pair follows from what base names say of the same one."""
        known = self._pointwise.get(number)
        if known is None:
            node = self.nodes[number]
            selects = node.op == ";" and any(self.nodes[operand].op == "[]" for operand in node.operands)
            known = (selects or node.op in POINTWISE) and all(map(self.is_pointwise, node.operands))
            self._pointwise[number] = known
        return known

    def forget(self) -> None:
        """Of a large execution, drop the values that no present or later expression needs: the values of all
        definitions may not fit into memory. A value that is asked for later is evaluated again.
        """
        if self.rows.count <= LARGE:
            return
        known, nodes = self._values, self.nodes
        needed = reached((*self.left, *self._doing), lambda node: () if node in known else nodes[node].operands)
        self._values = {number: value for number, value in self._values.items() if number in needed}

    # ---- what is left of relations ---------------------------------------------------------------------------------

    def two_sided(self, op: str, left: int, right: int) -> Value:
        algebra = self.rows
        if op == ";":
            sources, targets = self._selected(left), self._selected(right)
            if sources is not None:
                kept = as_set(self.value(sources))
                return self._from(kept, right) if kept else algebra.empty(is_set=False)
            if targets is not None:
                return self._into(left, as_set(self.value(targets)))
            if self._is_inverse(left):
                second = self.value(right)
                return algebra.compose(self._into(left, algebra.domain(second)), second)
        first = self.value(left)
        if op != "|" and algebra.is_empty(first):
            return algebra.empty(is_set=False) if op == "product" else first
        if op == "\\":
            return self._without(first, right)
        if op == "&" and self._is_inverse(right) and not isinstance(first, int):
            return algebra.intersection(first, self._meeting(first, right))
        return algebra.apply(op, first, self.value(right))

    def _is(self, op: str, number: int) -> bool:
        """True if a node is such an expression, and nothing whose value is kept as a whole."""
        return self.nodes[number].op == op and number not in self.kept

    def _is_inverse(self, number: int) -> bool:
        return self._is("^-1", number)

    def _selected(self, number: int) -> int | None:
        """The set S of a node [S]."""
        node = self.nodes[number]
        return node.operands[0] if node.op == "[]" else None

    def _is_chain(self, number: int) -> bool:
        """True for a composition of two relations, neither of which is a set."""
        return self._is(";", number) and all(self._selected(part) is None for part in self.nodes[number].operands)

    def _from(self, mask: int, number: int) -> Rows:
        """A relation whose left ends are members of a set: of a chain or a union, the first steps are cut first."""
        algebra, operands = self.rows, self.nodes[number].operands
        if self._is(";", number) and self._selected(operands[0]) is None:
            first, targets = self._from(mask, operands[0]), self._selected(operands[1])
            if targets is not None:
                return as_relation(algebra.to_targets(first, self.value(targets)))
            return algebra.compose(first, self.value(operands[1]))
        if self._is("|", number):
            return as_relation(algebra.union(self._from(mask, operands[0]), self._from(mask, operands[1])))
        if self._is_inverse(number):
            return algebra.inverse(algebra.to_targets(self.value(operands[0]), mask))
        return algebra.from_sources(mask, self.value(number))

    def _into(self, number: int, mask: int) -> Rows:
        """A relation whose right ends are members of a set: of a chain, the last step is cut first."""
        algebra, operands = self.rows, self.nodes[number].operands
        if self._is_chain(number):
            return self._chain(operands[0], self._into(operands[1], mask))
        if self._is_inverse(number):
            return algebra.inverse(algebra.from_sources(mask, self.value(operands[0])))
        return as_relation(algebra.to_targets(self.value(number), mask))

    def _chain(self, number: int, rows: Rows) -> Rows:
        """A relation followed by these rows, which are few: from the end."""
        if self._is_chain(number):
            first, second = self.nodes[number].operands
            return self._chain(first, self._chain(second, rows))
        return self.rows.compose(self.value(number), rows)

    def _without(self, left: Value, number: int) -> Value:
        """A difference. What is taken away is evaluated part by part, and an inverse not at all if few pairs are
        left."""
        algebra, operands = self.rows, self.nodes[number].operands
        if isinstance(left, int):
            return algebra.difference(left, self.value(number))
        if algebra.is_empty(left):
            return left
        if self._is("|", number) or (number not in self._values and self._is_union(number)):
            return self._without(self._without(left, operands[0]), operands[1])
        if self._is_inverse(number):
            if sum(map(int.bit_count, left)) < self.rows.count:
                back = as_relation(self.value(operands[0]))
                return [
                    row & ~sum([1 << other for other in bits(row) if back[other] >> event & 1])
                    for event, row in enumerate(left)
                ]
            return algebra.difference(left, self._meeting(left, number))
        return algebra.difference(left, self.value(number))

    def _is_union(self, number: int) -> bool:
        """True for a union of kept nodes, base names and inverses of these: its parts are at hand."""
        return self.nodes[number].op == "|" and all(self._is_part(part) for part in self.nodes[number].operands)

    def _is_part(self, number: int) -> bool:
        if self._is("|", number):
            return self._is_union(number)
        whole = self.nodes[number].operands[0] if self._is_inverse(number) else number
        return whole in self.kept or self.nodes[whole].op == "base"

    def _meeting(self, left: Rows, number: int) -> Rows:
        """The part of an inverse that may be in another relation."""
        algebra, back = self.rows, self.value(self.nodes[number].operands[0])
        return algebra.inverse(algebra.to_targets(algebra.from_sources(range_of(left), back), algebra.domain(left)))
