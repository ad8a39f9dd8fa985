"""The evaluator of cat expressions, over any algebra.

In: ExpressionGraph, Algebra. Out: the value of each node that is asked for, and of no other. Settled here: in which
order operands are evaluated, and that the right side of a difference, and what a complement takes away, may be looked
up elsewhere: two evaluators that are each other's `opposite` give an upper and a lower bound.

The referee does not use it: `memmodel.referee.evaluate` reads the same expressions by itself. Tests compare the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from memmodel.cat.evaluate.algebra import Algebra
from memmodel.cat.evaluate.graph import ExpressionGraph, Node, StoredGraph, StoredNodes
from memmodel.errors import InternalError

V = TypeVar("V")

Known = Callable[[int], V | None]
"""The value that a node is known to have, or None if it has to be evaluated."""


def nothing_known(number: int) -> None:
    """What is known of a node at first."""


class Evaluator(Generic[V]):
    """Values of nodes, each evaluated once."""

    def __init__(
        self, graph: ExpressionGraph | StoredGraph, algebra: Algebra[V], known: Known[V] = nothing_known
    ) -> None:
        self.graph = graph
        self.nodes: list[Node] | StoredNodes = graph.nodes
        self.algebra = algebra
        self._other: Evaluator[V] | None = None  # not itself: values are freed with the last name of an evaluator
        self._known = known
        self._values: dict[int, Any] = {}

    @property
    def opposite(self) -> Evaluator[V]:
        """The evaluator for operands that are taken away: the right side of a difference, and the operand of a
        complement.
        """
        return self if self._other is None else self._other

    @opposite.setter
    def opposite(self, other: Evaluator[V]) -> None:
        self._other = None if other is self else other

    def members(self, number: int) -> tuple[V, ...]:
        """The members of a `recursion`."""
        return self.value(number)  # type: ignore[return-value]

    def value(self, number: int) -> V:
        """The value of a node; of a `recursion` the values of its members."""
        value = self._values.get(number)
        if value is None:
            value = self._known(number)
            if value is None:
                value = self.evaluate(number)
            self._values[number] = value
        return value

    def evaluate(self, number: int) -> Any:
        """The value of a node from those of its operands."""
        node = self.nodes[number]
        op, operands, algebra = node.op, node.operands, self.algebra
        if op == "recursion":
            return self.least(number)
        if op == "member":
            return self.members(operands[0])[node.place]
        if op == "order":
            return algebra.order(node, self.value(operands[0]), self.value(operands[1]))
        if len(operands) == 2:
            return self.two_sided(op, *operands)
        if operands:
            return self.one_sided(node, operands[0])
        if op == "base":
            return algebra.base(node)
        if op == "empty":
            return algebra.empty(node.is_set)
        raise InternalError(f"a `{op}` of a model has no value by itself")

    def one_sided(self, node: Node, operand: int) -> V:
        op, algebra = node.op, self.algebra
        if op == "~":
            return algebra.complement(self.opposite.value(operand), node.is_set)
        value = self.value(operand)
        if op not in "?*" and algebra.is_empty(value):
            return algebra.empty(node.is_set)
        return algebra.apply(op, value)

    def two_sided(self, op: str, left: int, right: int) -> V:
        """The smaller side is evaluated first where either may show that nothing is left."""
        algebra, nodes = self.algebra, self.nodes
        if op == "|":
            first, second = self.value(left), self.value(right)
            if algebra.is_empty(first):
                return second
            return first if algebra.is_empty(second) else algebra.union(first, second)
        if op == "\\":
            first = self.value(left)
            return first if algebra.is_empty(first) else algebra.difference(first, self.opposite.value(right))
        selects = op == ";" and nodes[left].op == "[]", op == ";" and nodes[right].op == "[]"
        if selects[0]:
            left = nodes[left].operands[0]
        elif selects[1]:
            right = nodes[right].operands[0]
        for operand in (left, right) if nodes[left].size <= nodes[right].size else (right, left):
            if algebra.is_empty(self.value(operand)):
                return algebra.empty(op == "&" and nodes[left].is_set)
        first, second = self.value(left), self.value(right)
        if selects[0]:
            return algebra.from_sources(first, second)
        return algebra.to_targets(first, second) if selects[1] else algebra.apply(op, first, second)

    def least(self, number: int) -> tuple[V, ...]:
        """The members of a `let rec`."""
        bodies = self.nodes[number].operands
        start = tuple(self.algebra.empty(self.nodes[body].is_set) for body in bodies)
        return self.algebra.least(start, lambda members: self.bodies(number, members))

    def bodies(self, number: int, members: tuple[V, ...]) -> tuple[V, ...]:
        """The bodies of a `let rec`, where its members have these values."""
        inside = self.within(members)
        return tuple(inside.value(body) for body in self.nodes[number].operands)

    def within(self, members: tuple[V, ...]) -> Evaluator[V]:
        """An evaluator for the bodies of a `let rec` whose members have these values.

        No member is taken away from anything, so that an opposite is asked for closed nodes only.
        """
        nodes = self.nodes

        def known(number: int) -> V | None:
            node = nodes[number]
            if not node.open:
                return self.value(number)
            return members[node.place] if node.op == "self" else None

        inside = self.inner(known)
        inside.opposite = self.opposite
        return inside

    def inner(self, known: Known[V]) -> Evaluator[V]:
        """An evaluator for the bodies of a `let rec`."""
        return type(self)(self.graph, self.algebra, known)
