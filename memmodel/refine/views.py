"""The value of every node of a model under some reading of the base names: of one candidate, or of all at once.

In: ExpressionGraph, an algebra of rows. Out: `View`, and the algebra of what is sure. Two views that are each other's
`opposite` give the pairs that are in every execution and those that may be in one: where a pair is taken away, what the
other view has is what counts.
"""

from __future__ import annotations

from operator import or_

from memmodel.base import rows
from memmodel.base.rows import Rows
from memmodel.cat.evaluate.evaluator import Evaluator, Known, nothing_known
from memmodel.cat.evaluate.graph import ExpressionGraph, Node
from memmodel.cat.evaluate.rows import RowAlgebra, Value, as_relation, as_set


class View(Evaluator[Value]):
    """Values of nodes as rows. What explanations look at is kept: inverses, and the rounds of each `let rec`."""

    algebra: RowAlgebra

    def __init__(self, graph: ExpressionGraph, algebra: RowAlgebra, known: Known[Value] = nothing_known) -> None:
        super().__init__(graph, algebra, known)
        self._inverses: dict[int, Rows] = {}
        self._rounds: dict[int, list[tuple[Value, ...]]] = {}

    def rows(self, number: int) -> Rows:
        return as_relation(self.value(number))

    def mask(self, number: int) -> int:
        return as_set(self.value(number))

    def has(self, number: int, a: int, b: int) -> bool:
        """True if the pair is in the relation, or (a twice) the event in the set."""
        value = self.value(number)
        return bool(value >> a & 1 if isinstance(value, int) else value[a] >> b & 1)

    def inverse(self, number: int) -> Rows:
        """The inverse of the relation of a node."""
        inverse = self._inverses.get(number)
        if inverse is None:
            inverse = self._inverses[number] = rows.inverse(self.rows(number))
        return inverse

    def rounds(self, number: int) -> list[tuple[Value, ...]]:
        """The members of a `let rec`, from nothing to its least fixpoint."""
        if number not in self._rounds:
            self.least(number)
        return self._rounds[number]

    def within(self, members: tuple[Value, ...]) -> View:
        inside = super().within(members)
        assert isinstance(inside, View)
        return inside

    def one_sided(self, node: Node, operand: int) -> Value:
        return self.inverse(operand) if node.op == "^-1" else super().one_sided(node, operand)

    def bodies(self, number: int, members: tuple[Value, ...]) -> tuple[Value, ...]:
        self._rounds.setdefault(number, []).append(members)
        return super().bodies(number, members)


class SureRows(RowAlgebra):
    """What holds in every execution in which the events that are related run.

    `follow[a]`: the events that run wherever a does. What is in between has to run too: by either end.
    """

    def __init__(self, follow: Rows) -> None:
        super().__init__(len(follow))
        self._follow, self._lead = follow, rows.inverse(follow)

    def compose(self, left: Value, right: Value) -> Rows:
        first, second = as_relation(left), as_relation(right)
        by_first = rows.compose([row & also for row, also in zip(first, self._follow, strict=True)], second)
        by_second = rows.compose(first, [row & also for row, also in zip(second, self._lead, strict=True)])
        return list(map(or_, by_first, by_second))

    def closure(self, relation: Value) -> Rows:
        closed = as_relation(relation)
        while (longer := list(map(or_, closed, self.compose(closed, closed)))) != closed:
            closed = longer
        return closed

    def domain(self, relation: Value) -> int:
        return rows.domain([row & also for row, also in zip(as_relation(relation), self._follow, strict=True)])

    def range(self, relation: Value) -> int:
        return self.domain(self.inverse(relation))
