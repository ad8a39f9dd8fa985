"""A model arranged for trying many candidates: what can be computed, and refused, before which choice is made.

In: Model. Out: Plan: for each stage (program, then rf, sync_fence, co) the instructions that become computable and the
axioms that they settle. An axiom that fails in an early stage rules out everything that could be chosen after it.
Equal subexpressions share one slot. Nothing here approximates: every stage computes final values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from memmodel.base.classes import dataclass, field, replace
from memmodel.base.kinds import Kind
from memmodel.cat.analysis import CHOICE, dependencies
from memmodel.cat.monotonicity import MORE, effect_of_more, least_suffices
from memmodel.cat.syntax import Binary, Check, Empty, Expr, Model, Name, Unary
from memmodel.enumeration.matrix import Shape
from memmodel.enumeration.orders import linear_extensions
from memmodel.errors import InternalError

STAGES = ("program", "rf", "sync_fence", "co", "orders")
"""What is fixed stage by stage; the last are the total orders that the model itself chooses."""

ORDERS = 4

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
class PlannedCheck:
    """A check at the stage that settles it.

    `runs`: what to compute first. `slot`: the slot of its body. `broken_by`: whether more or less of `co` can break it.
    `grows`: neither less of `rf` nor less of `sync_fence` can break it.
    """

    check: Check
    slot: int
    runs: tuple[Compute, ...]
    broken_by: frozenset[int]
    grows: bool

    def holds(self, values: Values, shape: Shape) -> bool:
        """Compute what the check needs, and decide it."""
        for run in self.runs:
            run(values, shape)
        body = values[self.slot]
        if self.check.test == "empty":
            true = not body
        elif self.check.test == "irreflexive":
            true = not body & shape.diagonal
        else:
            true = not shape.closure(body) & shape.diagonal
        return true is not self.check.negated


@dataclass(slots=True)
class PlanStage:
    """Axioms and flags settled here, and what else to compute here because later stages need it."""

    axioms: list[PlannedCheck] = field(default_factory=list)
    flags: list[PlannedCheck] = field(default_factory=list)
    prepare: tuple[Compute, ...] = ()

    def broken(self, values: Values, shape: Shape, asked: Callable[[PlannedCheck], bool]) -> frozenset[str]:
        """The axioms among those asked for that do not hold. What the others need is computed too: checks share it."""
        failed = []
        for test in self.axioms:
            if not asked(test):
                for run in test.runs:
                    run(values, shape)
            elif not test.holds(values, shape):
                failed.append(test.check.name)
        return frozenset(failed)

    def leave(self, values: Values, shape: Shape) -> None:
        """Compute what later stages need, once the axioms are decided."""
        for run in (*(run for test in self.flags for run in test.runs), *self.prepare):
            run(values, shape)


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


class Plan:
    """A compiled model, with these of its flags. `slots` numbers the base names that it uses.

    `least_fences`: only least sync_fence have to be tried. `orders`: the total orders that the model chooses.
    """

    def __init__(self, model: Model, flags: Sequence[str]) -> None:
        self.model = model
        self.slots: dict[str, int] = {}
        self.is_set: dict[str, bool] = {}
        self.stages = tuple(PlanStage() for _ in STAGES)
        self.least_fences = least_suffices(model, "sync_fence", flags)
        self._instructions: list[_Instruction] = []
        self._producer: dict[int, int] = {}
        self._stage: list[int] = []
        self._known: dict[tuple[object, ...], int] = {}
        self._definitions: list[int] = []
        self.orders: list[PlannedOrder] = []
        self._compile_definitions()
        checks = [*model.axioms, *(check for check in model.flags if check.name in flags)]
        self._arrange([(check, self._slot(check.body)) for check in checks])
        self.size = len(self._stage)

    def choices(self, values: Values, shape: Shape, at: int = 0) -> Iterator[tuple[int, ...]]:
        """Every choice of the total orders, in their slots; once, without any, if the model chooses none."""
        if at == len(self.orders):
            yield ()
            return
        one = self.orders[at]
        for run in one.runs:
            run(values, shape)
        for matrix in linear_extensions(values[one.over], values[one.extends], shape.count):
            values[one.slot] = matrix
            for later in self.choices(values, shape, at + 1):
                yield (matrix, *later)

    # ---- stages --------------------------------------------------------------------------------------------

    def _arrange(self, bodies: Sequence[tuple[Check, int]]) -> None:
        """Put each check into its stage, cheapest first, with the instructions that nothing before it has run."""
        done: set[int] = set()
        hurt, by_rf, by_fences = (effect_of_more(self.model, name) for name in ("co", "rf", "sync_fence"))
        inputs = [slot for one in self.orders for slot in (one.over, one.extends)]
        for number, stage in enumerate(self.stages):
            if number == ORDERS:
                for at, one in enumerate(self.orders):
                    needed = self._missing(one.over, done) | self._missing(one.extends, done)
                    self.orders[at] = replace(one, runs=self._take(needed, done))
            for flags in (False, True):
                waiting = [(c, slot) for c, slot in bodies if self._stage[slot] == number and c.flag is flags]
                while waiting:
                    _, at = min((len(self._missing(slot, done)), at) for at, (_, slot) in enumerate(waiting))
                    check, slot = waiting.pop(at)
                    runs = self._take(self._missing(slot, done), done)
                    grows = by_rf[check.name] | by_fences[check.name] <= MORE
                    test = PlannedCheck(check, slot, runs, hurt[check.name], grows)
                    (stage.flags if flags else stage.axioms).append(test)
            ahead = [*(slot for _, slot in bodies if self._stage[slot] > number), *(inputs if number < ORDERS else ())]
            later = {one for slot in ahead for one in self._missing(slot, done)}
            now = {one for one in later if self._instructions[one].stage <= number}
            stage.prepare = self._take(now, done)

    def _missing(self, slot: int, done: set[int]) -> set[int]:
        """The instructions that have to run, and have not, before a slot has its value."""
        found: set[int] = set()
        todo = [slot]
        while todo:
            producer = self._producer.get(todo.pop())
            if producer is not None and producer not in done and producer not in found:
                found.add(producer)
                todo.extend(self._instructions[producer].sources)
        return found

    def _take(self, wanted: set[int], done: set[int]) -> tuple[Compute, ...]:
        done |= wanted
        return tuple(self._instructions[one].run for one in sorted(wanted))

    # ---- compilation ---------------------------------------------------------------------------------------

    def _compile_definitions(self) -> None:
        definitions = self.model.definitions
        bases = dependencies(self.model).definitions
        start = 0
        while start < len(definitions):
            end = start + 1
            order = definitions[start].order
            if order is not None:
                over, extends = self._slot(definitions[start].body), self._slot(order)
                self._definitions.append(self._new(ORDERS))
                self.orders.append(PlannedOrder(start, self._definitions[-1], over, extends))
            elif definitions[start].group is None:
                self._definitions.append(self._slot(definitions[start].body))
            else:
                while end < len(definitions) and definitions[end].group == definitions[start].group:
                    end += 1
                stage = max((CHOSEN.get(name, 0) for name in bases[start]), default=0)
                self._compile_group([definition.body for definition in definitions[start:end]], stage)
            start = end

    def _compile_group(self, bodies: Sequence[Expr], stage: int) -> None:
        """`let rec`: one instruction that repeats those of its bodies until nothing changes."""
        names = [self._new(stage) for _ in bodies]
        self._definitions.extend(names)
        first = len(self._instructions)
        results = [self._slot(body) for body in bodies]
        inner: list[_Instruction] = []
        outer: list[_Instruction] = []
        recursive = set(names)
        for instruction in self._instructions[first:]:
            if instruction.sources & recursive:
                inner.append(instruction)
                recursive.update(instruction.targets)
            else:
                outer.append(instruction)
        del self._instructions[first:]
        for instruction in outer:
            self._emit(instruction)
        sources = frozenset(results).union(*(one.sources for one in inner)) - recursive
        run = partial(_fixpoint, tuple(names), tuple(results), tuple(one.run for one in inner))
        self._emit(_Instruction(tuple(recursive), sources, stage, run))

    def _emit(self, instruction: _Instruction) -> None:
        for target in instruction.targets:
            self._producer[target] = len(self._instructions)
        self._instructions.append(instruction)

    def _new(self, stage: int) -> int:
        self._stage.append(stage)
        return len(self._stage) - 1

    def _slot(self, expr: Expr) -> int:
        """The slot that holds an expression's value."""
        if isinstance(expr, Name):
            return self._definitions[expr.ref] if expr.ref is not None else self._base(expr)
        if isinstance(expr, Empty):
            return self._computed("0", ())
        if isinstance(expr, Unary):
            operand = self._slot(expr.operand)
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
            rows = self._computed("rows", (self._slot(expr.left.operand),))
            return self._computed("&", (rows, self._slot(expr.right)))
        if expr.op == ";" and isinstance(expr.right, Unary) and expr.right.op == "[]":
            columns = self._computed("columns", (self._slot(expr.right.operand),))
            return self._computed("&", (self._slot(expr.left), columns))
        op = "product" if expr.op == "*" else expr.op
        return self._computed(op, (self._slot(expr.left), self._slot(expr.right)))

    def _base(self, name: Name) -> int:
        if name.name not in self.slots:
            self.slots[name.name] = self._new(CHOSEN.get(name.name, 0))
            self.is_set[name.name] = name.kind is Kind.SET
        return self.slots[name.name]

    def _computed(self, op: str, sources: tuple[int, ...]) -> int:
        key = (op, *(sorted(sources) if op in "|&" else sources))
        if key not in self._known:
            stage = max((self._stage[one] for one in sources), default=0)
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
