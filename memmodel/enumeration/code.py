"""The definitions of a model as instructions on slots, for those who evaluate them for many candidates.

In: definitions. Out: ModelCode: for each instruction what it fills, what it needs and in which stage it can run. Equal
subexpressions share one slot. Bodies of checks are added as they are asked for, so that models with the same
definitions share one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from memmodel.base.identity import by_identity
from memmodel.base.kinds import Kind
from memmodel.cat.analysis import CHOICE, group_at
from memmodel.cat.syntax import Binary, Definition, Empty, Expr, Name, Unary
from memmodel.concrete.execution import bits
from memmodel.enumeration.matrix import Shape
from memmodel.errors import InternalError

ORDERS = 4
"""The last stage: the total orders that the model itself chooses."""

CHOSEN = {"rf": 1, "sync_fence": 2, "co": 3, CHOICE: ORDERS}
"""The stage that fixes a base relation; the program, with the barriers' groups, fixes those that are not listed."""

Values = list[int]
Compute = Callable[[Values, Shape], None]


@dataclass(frozen=True, slots=True)
class _Instruction:
    """`run` fills `targets` from `sources`."""

    targets: tuple[int, ...]
    sources: frozenset[int]
    stage: int
    run: Compute


@dataclass(frozen=True, slots=True)
class PlannedOrder:
    """A total order that a model chooses: its definition, and the slots of it, of its set and of what it contains.

    `runs`: what to compute first, with the orders before it chosen.
    """

    definition: int
    slot: int
    over: int
    extends: int
    runs: tuple[Compute, ...] = ()


class ModelCode:
    """`slots` numbers the base names, `stage` says for each slot when it has its value."""

    def __init__(self, definitions: tuple[Definition, ...]) -> None:
        self.slots: dict[str, int] = {}
        self.is_set: dict[str, bool] = {}
        self.stage: list[int] = []
        self.orders: list[PlannedOrder] = []
        self._instructions: list[_Instruction] = []
        self._needs: list[int] = []
        self._producer: dict[int, int] = {}
        self._known: dict[tuple[object, ...], int] = {}
        self._definitions: list[int] = []
        self._compile(definitions)

    def needed(self, slot: int) -> int:
        """The instructions that have to run before a slot has its value, as a mask."""
        producer = self._producer.get(slot)
        return 0 if producer is None else self._needs[producer]

    def by(self, stage: int, mask: int) -> int:
        """Those instructions of a mask that can run by a stage."""
        return sum(1 << one for one in bits(mask) if self._instructions[one].stage <= stage)

    def reads(self, mask: int) -> frozenset[int]:
        """The slots that the instructions of a mask look at."""
        return frozenset().union(*(self._instructions[one].sources for one in bits(mask)))

    def runs(self, mask: int) -> tuple[Compute, ...]:
        """What the instructions of a mask do, in order."""
        return tuple(self._instructions[one].run for one in bits(mask))

    def _compile(self, definitions: tuple[Definition, ...]) -> None:
        start = 0
        while start < len(definitions):
            end = group_at(definitions, start).stop
            order = definitions[start].order
            if order is not None:
                over, extends = self.slot(definitions[start].body), self.slot(order)
                self._definitions.append(self._new(ORDERS))
                self.orders.append(PlannedOrder(start, self._definitions[-1], over, extends))
            elif definitions[start].group is None:
                self._definitions.append(self.slot(definitions[start].body))
            else:
                self._compile_group([definition.body for definition in definitions[start:end]])
            start = end

    def _compile_group(self, bodies: Sequence[Expr]) -> None:
        """`let rec`: one instruction that repeats those of its bodies until nothing changes."""
        names = [self._new(0) for _ in bodies]
        self._definitions.extend(names)
        first = len(self._instructions)
        results = [self.slot(body) for body in bodies]
        inner: list[_Instruction] = []
        outer: list[_Instruction] = []
        recursive = set(names)
        for instruction in self._instructions[first:]:
            if instruction.sources & recursive:
                inner.append(instruction)
                recursive.update(instruction.targets)
            else:
                outer.append(instruction)
        del self._instructions[first:], self._needs[first:]
        for instruction in outer:
            self._emit(instruction)
        sources = frozenset(results).union(*(one.sources for one in inner)) - recursive
        stage = max((self.stage[one] for one in sources), default=0)
        for slot in recursive:
            self.stage[slot] = stage
        run = partial(_fixpoint, tuple(names), tuple(results), tuple(one.run for one in inner))
        self._emit(_Instruction(tuple(recursive), sources, stage, run))

    def _emit(self, instruction: _Instruction) -> None:
        own = 1 << len(self._instructions)
        for source in instruction.sources:
            own |= self.needed(source)
        for target in instruction.targets:
            self._producer[target] = len(self._instructions)
        self._instructions.append(instruction)
        self._needs.append(own)

    def _new(self, stage: int) -> int:
        self.stage.append(stage)
        return len(self.stage) - 1

    def slot(self, expr: Expr) -> int:
        """The slot that holds an expression's value."""
        if isinstance(expr, Name):
            return self._definitions[expr.ref] if expr.ref is not None else self._base(expr)
        if isinstance(expr, Empty):
            return self._computed("0", ())
        if isinstance(expr, Unary):
            operand = self.slot(expr.operand)
            if expr.op in "+*":
                return self._closure(expr, operand)
            op = "complement of a set" if expr.op == "~" and expr.kind is Kind.SET else expr.op
            return self._computed(op, (operand,))
        return self._binary(expr)

    def _closure(self, expr: Unary, operand: int) -> int:
        """`r+` or `r*`. Base co is its own closure."""
        inner = expr.operand
        is_co = isinstance(inner, Name) and inner.ref is None and inner.name == "co"
        plus = operand if is_co else self._computed("+", (operand,))
        return plus if expr.op == "+" else self._computed("?", (plus,))

    def _binary(self, expr: Binary) -> int:
        """`[S] ; r` and `r ; [S]` only select rows or columns of r, which is cheaper than composing."""
        if expr.op == ";" and isinstance(expr.left, Unary) and expr.left.op == "[]":
            rows = self._computed("rows", (self.slot(expr.left.operand),))
            return self._computed("&", (rows, self.slot(expr.right)))
        if expr.op == ";" and isinstance(expr.right, Unary) and expr.right.op == "[]":
            columns = self._computed("columns", (self.slot(expr.right.operand),))
            return self._computed("&", (self.slot(expr.left), columns))
        op = "product" if expr.op == "*" else expr.op
        return self._computed(op, (self.slot(expr.left), self.slot(expr.right)))

    def _base(self, name: Name) -> int:
        if name.name not in self.slots:
            self.slots[name.name] = self._new(CHOSEN.get(name.name, 0))
            self.is_set[name.name] = name.kind is Kind.SET
        return self.slots[name.name]

    def _computed(self, op: str, sources: tuple[int, ...]) -> int:
        key = (op, *(sorted(sources) if op in "|&" else sources))
        if key not in self._known:
            stage = max((self.stage[one] for one in sources), default=0)
            target = self._new(stage)
            self._known[key] = target
            make = _OPERATIONS.get(op)
            if make is None:
                raise InternalError(f"unknown operator {op}")
            self._emit(_Instruction((target,), frozenset(sources), stage, make(target, *sources)))
        return self._known[key]


def _fixpoint(
    names: Sequence[int], results: Sequence[int], runs: Sequence[Compute], values: Values, shape: Shape
) -> None:
    for name in names:
        values[name] = 0
    for _ in range(len(names) * (shape.count * shape.count + 1) + 1):
        for run in runs:
            run(values, shape)
        changed = False
        for name, result in zip(names, results, strict=True):
            if values[name] != values[result]:
                values[name] = values[result]
                changed = True
        if not changed:
            return
    raise InternalError("a 'let rec' has no least fixpoint: its body is not monotone")


def _unary(operation: Callable[[Shape, int], int]) -> Callable[..., Compute]:
    """An instruction maker for an operation on one value."""

    def make(target: int, source: int) -> Compute:
        def run(values: Values, shape: Shape) -> None:
            values[target] = operation(shape, values[source])

        return run

    return make


def _dyadic(operation: Callable[[Shape, int, int], int]) -> Callable[..., Compute]:
    """An instruction maker for an operation on two values."""

    def make(target: int, left: int, right: int) -> Compute:
        def run(values: Values, shape: Shape) -> None:
            values[target] = operation(shape, values[left], values[right])

        return run

    return make


def _union(target: int, left: int, right: int) -> Compute:
    def run(values: Values, shape: Shape) -> None:
        values[target] = values[left] | values[right]

    return run


def _intersection(target: int, left: int, right: int) -> Compute:
    def run(values: Values, shape: Shape) -> None:
        values[target] = values[left] & values[right]

    return run


def _nothing(target: int) -> Compute:
    def run(values: Values, shape: Shape) -> None:
        values[target] = 0

    return run


_OPERATIONS: dict[str, Callable[..., Compute]] = {
    "0": _nothing,
    "|": _union,
    "&": _intersection,
    "\\": _dyadic(lambda shape, left, right: left & ~right),
    ";": _dyadic(Shape.compose),
    "product": _dyadic(Shape.product),
    "rows": _unary(lambda shape, members: shape.product(members, shape.row)),
    "columns": _unary(lambda shape, members: members * shape.first_column),
    "[]": _unary(Shape.diagonal_of),
    "~": _unary(lambda shape, matrix: shape.full & ~matrix),
    "complement of a set": _unary(lambda shape, members: shape.row & ~members),
    "^-1": _unary(Shape.inverse),
    "?": _unary(lambda shape, matrix: matrix | shape.diagonal),
    "+": _unary(Shape.closure),
    "domain": _unary(Shape.domain),
    "range": _unary(Shape.range),
}


code_of = by_identity(16)(ModelCode)
