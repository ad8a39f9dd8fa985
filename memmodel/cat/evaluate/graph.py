"""Expressions of cat as a graph: equal expressions are one node, operands come before what is made of them.

In: definitions of one model, or of several. Out: `ExpressionGraph`, and the node of each definition and expression.
Settled here: which expressions are equal. In the bodies of a `let rec` the names that it defines are `self` nodes, by
their place in the group, so that equal groups are one node as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memmodel.base.identity import by_identity
from memmodel.base.kinds import Kind
from memmodel.cat.analysis import CHOICE, group_at
from memmodel.cat.syntax import Definition, Empty, Expr, Name, Unary

COMMUTING = ("|", "&")


@dataclass(frozen=True, slots=True)
class Node:
    """A set or relation. `op`: an operator of cat (`product` for `*` between two sets), or one of these:

    - `base`: the base set or relation `name`; `empty`: neither events nor pairs;
    - `order`: a total order that the definition at `place` chooses; operands: its set, and what it contains;
    - `recursion`: a group of `let rec`, operands: its bodies; `member`: the one at `place` of such a group;
    - `self`: in a body of a group, the member of the group at `place`.

    `bases`: the base names that it depends on, CHOICE for a chosen order. `open`: it depends on a `self`, so that it
    has a value only while its group is evaluated. `flat`: it has no closure, recursion or choice in it. `size`: how
    many nodes it has, those that occur twice counted twice.
    """

    op: str
    operands: tuple[int, ...]
    name: str
    place: int
    is_set: bool
    bases: frozenset[str]
    open: bool
    flat: bool
    size: int


class ExpressionGraph:
    """The nodes of some definitions, and of expressions over them as they are asked for."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._numbers: dict[tuple[object, ...], int] = {}
        self._models: dict[int, tuple[Sequence[Definition], list[int]]] = {}

    def define(self, definitions: Sequence[Definition]) -> list[int]:
        """The node of each definition."""
        if id(definitions) not in self._models:
            self._models[id(definitions)] = definitions, self._define(definitions)
        return self._models[id(definitions)][1]

    def _define(self, definitions: Sequence[Definition]) -> list[int]:
        defined: list[int] = []
        while len(defined) < len(definitions):
            members = group_at(definitions, len(defined))
            definition = definitions[members.start]
            if definition.group is not None:
                defined += self.recursion([definitions[at] for at in members], defined)
            elif definition.order is not None:
                operands = self.node(definition.body, defined), self.node(definition.order, defined)
                defined.append(self._add("order", operands, place=len(defined)))
            else:
                defined.append(self.node(definition.body, defined))
        return defined

    def node(self, expr: Expr, defined: Sequence[int]) -> int:
        """The node of an expression, where definitions have these nodes."""
        is_set = expr.kind is Kind.SET
        if isinstance(expr, Name):
            return self._add("base", name=expr.name, is_set=is_set) if expr.ref is None else defined[expr.ref]
        if isinstance(expr, Empty):
            return self._add("empty", is_set=is_set)
        if isinstance(expr, Unary):
            return self._add(expr.op, (self.node(expr.operand, defined),), is_set=is_set)
        op = "product" if expr.op == "*" else expr.op
        return self._add(op, (self.node(expr.left, defined), self.node(expr.right, defined)), is_set=is_set)

    def recursion(self, group: Sequence[Definition], defined: Sequence[int]) -> list[int]:
        """The members of a `let rec`."""
        kinds = [definition.kind is Kind.SET for definition in group]
        inside = [*defined, *(self._add("self", place=place, is_set=kind) for place, kind in enumerate(kinds))]
        recursion = self._add("recursion", tuple(self.node(definition.body, inside) for definition in group))
        return [self._add("member", (recursion,), place=place, is_set=kind) for place, kind in enumerate(kinds)]

    def add(self, like: Node, operands: tuple[int, ...]) -> int:
        """The expression with these operands and all else of another one."""
        return self._add(like.op, operands, like.name, like.place, is_set=like.is_set)

    def _add(
        self, op: str, operands: tuple[int, ...] = (), name: str = "", place: int = 0, *, is_set: bool = False
    ) -> int:
        key = (op, operands[::-1] if op in COMMUTING and operands[0] > operands[1] else operands, name, place, is_set)
        number = self._numbers.get(key)
        if number is None:
            node, number = self._node(op, operands, name, place, is_set=is_set), len(self.nodes)
            self.nodes.append(node)  # before its number is known: a budget may end between any two steps
            self._numbers[key] = number
        return number

    def _node(self, op: str, operands: tuple[int, ...], name: str, place: int, *, is_set: bool) -> Node:
        bases = frozenset((name,) if op == "base" else (CHOICE,) if op == "order" else ())
        is_open, flat, size = op == "self", op not in ("+", "*", "order", "recursion", "self"), 1
        for operand in operands:
            below = self.nodes[operand]
            bases = below.bases | bases if bases else below.bases
            is_open = is_open or below.open
            flat = flat and below.flat
            size += below.size
        return Node(op, operands, name, place, is_set, bases, is_open and op != "recursion", flat, size)


Part = tuple[str, list[int], str, int, bool, bool, bool, int]
"""A node as JSON holds it: the fields of `Node` without `bases`."""


class StoredNodes(dict[int, Node]):
    """Nodes that were written down, each made when it is asked for. Their `bases` are not known."""

    def __init__(self, parts: Sequence[Part]) -> None:
        super().__init__()
        self._parts = parts

    def __missing__(self, number: int) -> Node:
        op, operands, name, place, is_set, is_open, flat, size = self._parts[number]
        node = self[number] = Node(op, tuple(operands), name, place, is_set, frozenset(), is_open, flat, size)
        return node


@dataclass(frozen=True, slots=True)
class StoredGraph:
    """A graph that can be evaluated, and no more."""

    nodes: StoredNodes


def parts_of(graph: ExpressionGraph) -> list[Part]:
    """The nodes of a graph, to be written down."""
    return [
        (node.op, list(node.operands), node.name, node.place, node.is_set, node.open, node.flat, node.size)
        for node in graph.nodes
    ]


@dataclass(frozen=True, slots=True)
class DefinitionGraph:
    """The graph of the definitions of one model. `defined`: the node of each."""

    graph: ExpressionGraph
    defined: tuple[int, ...]

    def node(self, expr: Expr) -> int:
        """The node of an expression over these definitions."""
        return self.graph.node(expr, self.defined)


@by_identity(16)
def graph_of(definitions: tuple[Definition, ...]) -> DefinitionGraph:
    """The graph of some definitions, the same one each time."""
    graph = ExpressionGraph()
    return DefinitionGraph(graph, tuple(graph.define(definitions)))
