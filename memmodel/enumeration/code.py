"""The definitions of a model as instructions on slots, for those who evaluate them for many candidates.

In: definitions. Out: ModelCode: for each instruction what it fills, what it needs and in which stage it can run. It is
an algebra whose values are slots: to evaluate an expression once is to compile it. Bodies of checks are added as they
are asked for, so that models with the same definitions share one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from memmodel.base.identity import by_identity
from memmodel.base.rows import bits
from memmodel.cat.analysis import CHOICE
from memmodel.cat.evaluate.algebra import Algebra
from memmodel.cat.evaluate.evaluator import Evaluator
from memmodel.cat.evaluate.graph import Node, graph_of
from memmodel.cat.syntax import Definition, Expr
from memmodel.enumeration.matrix import Shape
from memmodel.errors import InternalError

ORDERS = 4
"""The last stage: the total orders that the model itself chooses."""

CHOSEN = {"rf": 1, "sync_fence": 2, "co": 3, CHOICE: ORDERS}
"""The stage that fixes a base relation; the program, with the barriers' groups, fixes those that are not listed."""

Values = list[int]
Compute = Callable[[Values, Shape], None]
Maker = Callable[..., Compute]
"""Makes the instruction that fills a slot from others."""


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


def _fixpoint(
    names: tuple[int, ...], results: tuple[int, ...], runs: tuple[Compute, ...], values: Values, shape: Shape
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


def _unary(operation: Callable[[Shape, int], int]) -> Maker:
    """An instruction maker for an operation on one value."""

    def make(target: int, source: int) -> Compute:
        def run(values: Values, shape: Shape) -> None:
            values[target] = operation(shape, values[source])

        return run

    return make


def _dyadic(operation: Callable[[Shape, int, int], int]) -> Maker:
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


def _difference(target: int, left: int, right: int) -> Compute:
    def run(values: Values, shape: Shape) -> None:
        values[target] = values[left] & ~values[right]

    return run


def _nothing(target: int) -> Compute:
    def run(values: Values, shape: Shape) -> None:
        values[target] = 0

    return run


def _compiled(make: Maker) -> Callable[..., int]:
    """An operator of the algebra: the slot that an instruction of this kind fills from others."""

    def operator(code: ModelCode, *sources: int) -> int:
        return code.slot_of(make, *sources)

    return operator


class ModelCode(Algebra[int]):
    """`slots` numbers the base names, `stage` says for each slot when it has its value."""

    def __init__(self, definitions: tuple[Definition, ...]) -> None:
        self.slots: dict[str, int] = {}
        self.is_set: dict[str, bool] = {}
        self.stage: list[int] = []
        self.orders: list[PlannedOrder] = []
        self._instructions: list[_Instruction] = []
        self._needs: list[int] = []
        self._producer: dict[int, int] = {}
        self._computed: dict[tuple[object, ...], int] = {}
        self._graph = graph_of(definitions)
        self._compiler = Evaluator(self._graph.graph, self)
        for number, definition in zip(self._graph.defined, definitions, strict=True):
            if definition.order is not None:
                self._compiler.value(number)

    def slot(self, expr: Expr) -> int:
        """The slot that holds an expression's value."""
        return self._compiler.value(self._graph.node(expr))

    def needed(self, slot: int) -> int:
        """The instructions that have to run before a slot has its value, as a mask."""
        producer = self._producer.get(slot)
        return 0 if producer is None else self._needs[producer]

    def runnable_by(self, stage: int, mask: int) -> int:
        """The instructions of a mask that can run at a stage or before it."""
        return sum(1 << number for number in bits(mask) if self._instructions[number].stage <= stage)

    def runs(self, mask: int) -> tuple[Compute, ...]:
        """What the instructions of a mask do, in order."""
        return tuple(self._instructions[number].run for number in bits(mask))

    # ---- instructions ------------------------------------------------------------------------------------------

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

    def slot_of(self, make: Maker, *sources: int) -> int:
        """The slot that an instruction fills from others; the same one each time."""
        key = (make, *sources)
        target = self._computed.get(key)
        if target is None:
            stage = max([self.stage[source] for source in sources]) if sources else 0
            target = self._computed[key] = self._new(stage)
            self._emit(_Instruction((target,), frozenset(sources), stage, make(target, *sources)))
        return target

    # ---- operators ---------------------------------------------------------------------------------------------

    def base(self, node: Node) -> int:
        self.is_set[node.name] = node.is_set
        slot = self.slots[node.name] = self._new(CHOSEN.get(node.name, 0))
        return slot

    def order(self, node: Node, over: int, extends: int) -> int:
        slot = self._new(ORDERS)
        self.orders.append(PlannedOrder(node.place, slot, over, extends))
        return slot

    def empty(self, is_set: bool) -> int:
        return self.slot_of(_nothing)

    def is_empty(self, value: int) -> bool:
        return False

    union, intersection, difference = _compiled(_union), _compiled(_intersection), _compiled(_difference)
    compose, product = _compiled(_dyadic(Shape.compose)), _compiled(_dyadic(Shape.product))
    identity, inverse = _compiled(_unary(Shape.diagonal_of)), _compiled(_unary(Shape.inverse))
    optional = _compiled(_unary(lambda shape, relation: relation | shape.diagonal))
    domain, range = _compiled(_unary(Shape.domain)), _compiled(_unary(Shape.range))
    _close = _compiled(_unary(Shape.closure))
    _rows = _compiled(_unary(lambda shape, sources: shape.product(sources, shape.row)))
    _columns = _compiled(_unary(lambda shape, targets: targets * shape.first_column))
    _other_events = _compiled(_unary(lambda shape, events: shape.row & ~events))
    _other_pairs = _compiled(_unary(lambda shape, relation: shape.full & ~relation))

    def complement(self, value: int, is_set: bool) -> int:
        return self._other_events(value) if is_set else self._other_pairs(value)

    def from_sources(self, sources: int, relation: int) -> int:
        """Only selects rows of the relation, which is cheaper than composing."""
        return self.intersection(self._rows(sources), relation)

    def to_targets(self, relation: int, targets: int) -> int:
        return self.intersection(relation, self._columns(targets))

    def closure(self, relation: int) -> int:
        """Base co is its own closure."""
        return relation if relation == self.slots.get("co") else self._close(relation)

    def least(self, start: tuple[int, ...], step: Callable[[tuple[int, ...]], tuple[int, ...]]) -> tuple[int, ...]:
        """`let rec`: one instruction that repeats those of its bodies until nothing changes."""
        names = tuple(self._new(0) for _ in start)
        first = len(self._instructions)
        results = step(names)
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
        sources = frozenset(results).union(*(instruction.sources for instruction in inner)) - recursive
        stage = max((self.stage[source] for source in sources), default=0)
        for slot in recursive:
            self.stage[slot] = stage
        run = partial(_fixpoint, names, results, tuple(instruction.run for instruction in inner))
        self._emit(_Instruction(tuple(recursive), sources, stage, run))
        return names


code_of = by_identity(16)(ModelCode)
