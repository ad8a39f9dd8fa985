"""A model as a list of operations without names: equal expressions are one node, arguments come before their use.

In: Model. Out: `Operations`, made once for each model. The nodes of a `let rec` are leaves for the bodies of its
group, and a `fix` node for everybody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from memmodel.base.kinds import Kind
from memmodel.base.relations import DECIDED as DECIDED_RELATIONS
from memmodel.base.sets import DECIDED as DECIDED_SETS
from memmodel.cat.syntax import Definition, Empty, Expr, Model, Name, Unary

_DECIDED = {*DECIDED_RELATIONS, *DECIDED_SETS}


@dataclass(frozen=True, slots=True)
class Node:
    """`op`: of cat (`product` for `*` between sets), or `base`, `empty`, `leaf`, `fix`, `order`.

    `name`: of a base set or relation. `group`: of a leaf, a fix, and what is computed from a leaf of an open group.
    `static`: it follows from which events run. `flat`: it has no closure and no fixpoint below it.
    """

    op: str
    args: tuple[int, ...] = ()
    name: str = ""
    is_set: bool = False
    group: int | None = None
    static: bool = True
    flat: bool = True


@dataclass(slots=True)
class Operations:
    """`nodes`; for each check its root; for each group of a `let rec` its leaves and the roots of their bodies.

    `named`: the roots of definitions. `orders`: index of a definition that chooses a total order -> its node.
    """

    nodes: list[Node] = field(default_factory=list)
    checks: dict[str, int] = field(default_factory=dict)
    groups: dict[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    named: set[int] = field(default_factory=set)
    orders: dict[int, int] = field(default_factory=dict)
    _below: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def below(self, root: int) -> tuple[int, ...]:
        """All nodes that a node is computed from, in order, and the node itself."""
        if root not in self._below:
            found = {root}
            stack = [root]
            while stack:
                node = self.nodes[stack.pop()]
                more = node.args
                if node.op == "fix" and node.group is not None:
                    more = (*more, *(body for _, body in self.groups[node.group]))
                for arg in more:
                    if arg not in found:
                        found.add(arg)
                        stack.append(arg)
            self._below[root] = tuple(sorted(found))
        return self._below[root]


class _Identity:
    """A model that equals itself only: comparing models by content would cost more than a plan."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def __hash__(self) -> int:
        return id(self.model)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.model is other.model


@lru_cache(maxsize=64)
def _made(model: _Identity) -> Operations:
    return _Maker(model.model).plan


def plan_of(model: Model) -> Operations:
    """The plan of a model."""
    return _made(_Identity(model))


class _Maker:
    def __init__(self, model: Model) -> None:
        self.plan = Operations()
        self._model = model
        self._numbers: dict[tuple[object, ...], int] = {}
        self._definitions: dict[int, int] = {}
        self._start()
        for check in model.checks:
            self.plan.checks[check.name] = self._expr(check.body)

    def _start(self) -> None:
        definitions = self._model.definitions
        done: set[int] = set()
        for index, definition in enumerate(definitions):
            if definition.group is None:
                self._definitions[index] = root = self._definition(index, definition)
                self.plan.named.add(root)
            elif definition.group not in done:
                done.add(definition.group)
                self._group([i for i, one in enumerate(definitions) if one.group == definition.group])

    def _definition(self, index: int, definition: Definition) -> int:
        body = self._expr(definition.body)
        if definition.order is None:
            return body
        order = self._node("order", (body,), str(index))
        self.plan.orders[index] = order
        return order

    def _group(self, group: Sequence[int]) -> None:
        definitions = self._model.definitions
        number = definitions[group[0]].group
        assert number is not None
        for index in group:
            is_set = definitions[index].kind is Kind.SET
            self._definitions[index] = self._node("leaf", (), str(index), is_set=is_set, group=number)
        leaves = [self._definitions[index] for index in group]
        bodies = [self._expr(definitions[index].body) for index in group]
        self.plan.groups[number] = tuple(zip(leaves, bodies, strict=True))
        for index, leaf in zip(group, leaves, strict=True):
            is_set = self.plan.nodes[leaf].is_set
            self._definitions[index] = root = self._node("fix", (), str(leaf), is_set=is_set, group=number)
            self.plan.named.add(root)

    def _expr(self, expr: Expr) -> int:
        if isinstance(expr, Name):
            if expr.ref is not None:
                return self._definitions[expr.ref]
            return self._node("base", (), expr.name, is_set=expr.kind is Kind.SET)
        is_set = expr.kind is Kind.SET
        if isinstance(expr, Empty):
            return self._node("empty", (), is_set=is_set)
        if isinstance(expr, Unary):
            return self._node(expr.op, (self._expr(expr.operand),), is_set=is_set)
        op = "product" if expr.op == "*" else expr.op
        return self._node(op, (self._expr(expr.left), self._expr(expr.right)), is_set=is_set)

    def _node(
        self, op: str, args: tuple[int, ...], name: str = "", *, is_set: bool = False, group: int | None = None
    ) -> int:
        key = (op, args, name, is_set)
        if key in self._numbers:
            return self._numbers[key]
        below = [self.plan.nodes[arg] for arg in args]
        static = op not in ("leaf", "order") and not (op == "base" and name in _DECIDED)
        if op == "fix":
            assert group is not None
            within = {one for _, body in self.plan.groups[group] for one in self.plan.below(body)}
            static = all(self._is_given(self.plan.nodes[one]) for one in within)
        else:
            static = static and all(one.static for one in below)
            group = next((one.group for one in below if one.group is not None and one.op != "fix"), group)
        flat = op not in ("+", "*", "fix", "leaf", "order") and all(one.flat for one in below)
        self.plan.nodes.append(Node(op, args, name, is_set, group, static, flat))
        self._numbers[key] = number = len(self.plan.nodes) - 1
        return number

    @staticmethod
    def _is_given(node: Node) -> bool:
        return node.op != "order" and not (node.op == "base" and node.name in _DECIDED)
