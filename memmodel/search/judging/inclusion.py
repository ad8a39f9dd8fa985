"""Which expressions contain others, by the laws of the operators alone.

In: nodes of an expression graph. Out: `Inclusions`: whether all that one node has is in another one, whatever the base
names mean. Settled here: the laws that are used: every operator is monotone; `r*` and `r+` are transitive, as program
order is; `r?` and `r*` contain the identity. What the laws do not show may still be so.
"""

from __future__ import annotations

from collections.abc import Sequence

from memmodel.cat.evaluate.graph import Node, StoredNodes

_TRANSITIVE = frozenset({"id", "po"})
"""Base relations that are."""


class Inclusions:
    """Asked for pairs of nodes; each answer is kept."""

    def __init__(self, nodes: Sequence[Node] | StoredNodes) -> None:
        self._nodes = nodes
        self._known: dict[tuple[int, int], bool] = {}
        self._within_identity: dict[int, bool] = {}
        self._with_identity: dict[int, bool] = {}

    def equal(self, node: int, other: int) -> bool:
        """True if two nodes have the same."""
        return self.within(node, other) and self.within(other, node)

    def within(self, part: int, whole: int) -> bool:
        """True if all that `part` has is in `whole`."""
        pair = (part, whole)
        if part == whole:
            return True
        if pair not in self._known:
            self._known[pair] = self._smaller(part, whole) or self._larger(part, whole) or self._monotone(part, whole)
        return self._known[pair]

    def _smaller(self, part: int, whole: int) -> bool:
        """By what `part` is made of."""
        node = self._nodes[part]
        op, operands = node.op, node.operands
        if op == "empty":
            return True
        if op == "|":
            return all(self.within(each, whole) for each in operands)
        if op == "&":
            return any(self.within(each, whole) for each in operands)
        if op == "\\":
            return self.within(operands[0], whole)
        if self._in_identity(part) and self._has_identity(whole):
            return True
        if op == ";":
            first, second = operands
            if self._in_identity(first) and self.within(second, whole):
                return True
            if self._in_identity(second) and self.within(first, whole):
                return True
            return self._is_transitive(whole) and self.within(first, whole) and self.within(second, whole)
        if op in ("?", "+", "*"):
            reflexive, transitive = op == "+" or self._has_identity(whole), op == "?" or self._is_transitive(whole)
            return reflexive and transitive and self.within(operands[0], whole)
        return False

    def _larger(self, part: int, whole: int) -> bool:
        """By what `whole` is made of."""
        node = self._nodes[whole]
        if node.op == "|":
            return any(self.within(part, each) for each in node.operands)
        if node.op == "&":
            return all(self.within(part, each) for each in node.operands)
        if node.op == ";":
            first, second = node.operands
            if self._has_identity(first) and self.within(part, second):
                return True
            return self._has_identity(second) and self.within(part, first)
        return node.op in ("?", "+", "*") and self.within(part, node.operands[0])

    def _monotone(self, part: int, whole: int) -> bool:
        """By the operands of two nodes with one operator."""
        mine, other = self._nodes[part], self._nodes[whole]
        if mine.op != other.op or not mine.operands or mine.op in ("member", "recursion", "order"):
            return False
        pairs = list(zip(mine.operands, other.operands, strict=True))
        if mine.op == "~":
            return self.within(pairs[0][1], pairs[0][0])
        if mine.op == "\\":
            return self.within(*pairs[0]) and self.within(pairs[1][1], pairs[1][0])
        return all(self.within(*pair) for pair in pairs)

    def _in_identity(self, number: int) -> bool:
        """True if a relation has no pair of two events."""
        known = self._within_identity.get(number)
        if known is None:
            known = self._within_identity[number] = self._is_in_identity(self._nodes[number])
        return known

    def _is_in_identity(self, node: Node) -> bool:
        if node.op == "[]" or (node.op == "base" and node.name == "id"):
            return True
        if node.op in ("|", ";"):
            return all(map(self._in_identity, node.operands))
        if node.op == "&":
            return any(map(self._in_identity, node.operands))
        return node.op in ("\\", "?", "+", "*", "^-1") and self._in_identity(node.operands[0])

    def _has_identity(self, number: int) -> bool:
        """True if a relation relates each event to itself."""
        known = self._with_identity.get(number)
        if known is None:
            known = self._with_identity[number] = self._is_with_identity(self._nodes[number])
        return known

    def _is_with_identity(self, node: Node) -> bool:
        if node.op in ("?", "*") or (node.op == "base" and node.name == "id"):
            return True
        if node.op == "|":
            return any(map(self._has_identity, node.operands))
        if node.op in (";", "&"):
            return all(map(self._has_identity, node.operands))
        return node.op in ("+", "^-1") and self._has_identity(node.operands[0])

    def _is_transitive(self, number: int) -> bool:
        """True if a relation has each two steps as one."""
        node = self._nodes[number]
        if node.op in ("+", "*", "product", "[]"):
            return True
        if node.op == "base":
            return node.name in _TRANSITIVE
        if node.op == "|":
            steps = [each for each in node.operands if not self._in_identity(each)]
            return len(steps) <= 1 and all(map(self._is_transitive, steps))
        if node.op == "&":
            return all(map(self._is_transitive, node.operands))
        return node.op in ("?", "^-1") and self._is_transitive(node.operands[0])
