"""On which labels what one expression has is in another one, by labels and the laws of the operators together.

In: bounds of expressions by the labels of events. Out: `Implied`: the pairs of labels on which a relation is contained
in another one. `r & s` and `r` differ on no others. Settled here: which laws are used. The first one that bounds alone
do not show: two fences of one scope are in each other's scope, or not, both ways.
"""

from __future__ import annotations

from memmodel.base.relations import SYMMETRIC
from memmodel.cat.evaluate.evaluator import Evaluator
from memmodel.cat.evaluate.graph import Node
from memmodel.cat.evaluate.rows import Value

_WIDER = {"scta": ("scluster", "sgpu"), "scluster": ("sgpu",)}
"""Events of one CTA are of one cluster, and those on one GPU."""


class Implied:
    """Asked for pairs of relations; each answer is kept. `bounds`: what nodes may have, whatever the execution."""

    def __init__(self, bounds: Evaluator[Value]) -> None:
        self._bounds, self._nodes, self._algebra = bounds, bounds.nodes, bounds.algebra
        self._known: dict[tuple[int, int], Value] = {}

    def where(self, part: int, whole: int) -> Value:
        """The labels on which all that `part` has is in `whole`, in every execution."""
        if self._nodes[part].open or self._nodes[whole].open:
            return self._algebra.empty(is_set=False)
        pair = (part, whole)
        if pair not in self._known:
            surely = self._algebra.union(self._never(part), self._bounds.opposite.value(whole))
            self._known[pair] = self._algebra.union(surely, self._by_parts(part, whole))
        return self._known[pair]

    def _never(self, number: int) -> Value:
        """The labels that a relation does not relate."""
        return self._algebra.complement(self._bounds.value(number), is_set=False)

    def _by_parts(self, part: int, whole: int) -> Value:
        node, algebra = self._nodes[part], self._algebra
        if part == whole:
            return algebra.complement(algebra.empty(is_set=False), is_set=False)
        if node.op == "|":
            first, second = (self.where(each, whole) for each in node.operands)
            return algebra.intersection(first, second)
        if node.op == "&":
            first, second = (self.where(each, whole) for each in node.operands)
            return algebra.union(first, second)
        found = self._in_whole(part, whole)
        if node.op == "\\":
            return algebra.union(found, self.where(node.operands[0], whole))
        for _, inner in self._filters(node):
            found = algebra.union(found, self.where(inner, whole))
        return found

    def _in_whole(self, part: int, whole: int) -> Value:
        """By what `whole` is made of."""
        mine, node, algebra = self._nodes[part], self._nodes[whole], self._algebra
        found = algebra.empty(is_set=False)
        if node.op in ("|", "&"):
            first, second = (self.where(part, each) for each in node.operands)
            return algebra.union(first, second) if node.op == "|" else algebra.intersection(first, second)
        if node.op == "base" and mine.op == "base" and node.name in _WIDER.get(mine.name, ()):
            return algebra.complement(found, is_set=False)
        if node.op == "^-1" and mine.op in ("^-1", "base"):
            back = mine.operands[0] if mine.op == "^-1" else part
            if mine.op == "^-1" or mine.name in SYMMETRIC:
                found = algebra.inverse(self.where(back, node.operands[0]))
        for kept, inner in self._filters(node):
            surely = self._bounds.opposite.value(self._nodes[kept].operands[0])
            both = self.where(part, inner)
            first = kept == node.operands[0]
            both = algebra.from_sources(surely, both) if first else algebra.to_targets(both, surely)
            found = algebra.union(found, both)
        return found

    def _filters(self, node: Node) -> list[tuple[int, int]]:
        """The set at an end of a relation, and the relation of which it keeps what begins or ends there."""
        if node.op != ";":
            return []
        first, second = node.operands
        return [(a, b) for a, b in ((first, second), (second, first)) if self._nodes[a].op == "[]"]
