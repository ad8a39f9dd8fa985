"""What a model says of one concrete execution: the referee of every witness, whichever engine found it.

In: Model, Execution. Out: Evaluation: axioms that fail, what flags report, the value of every definition.
Settled here: the meaning of cat's operators, written as plainly as possible. A set is a bit mask, a relation a list of
rows (`base.rows`); `let rec` is Kleene iteration from empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import and_, or_

from memmodel.base.kinds import Kind
from memmodel.base.rows import Rows, bits, closure, compose, inverse, pairs_of, range_of, total_order
from memmodel.cat.syntax import Binary, Check, Definition, Expr, Model, Name, Unary
from memmodel.concrete.execution import Execution
from memmodel.errors import InternalError

Value = int | Rows
"""A set as a mask or a relation as rows."""

Ranks = Mapping[int, Sequence[int]]
"""For each definition that is a choice of a total order, by its index: the place of every event in it."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A model's verdict. `failed`: violated axioms."""

    failed: tuple[str, ...]
    model: Model
    execution: Execution
    evaluator: PlainEvaluator

    @property
    def flags(self) -> dict[str, list[tuple[int, int]]]:
        """Each raised flag with the pairs that it reports."""
        judge = self.evaluator
        return {check.name: judge.reported(check) for check in self.model.flags if judge.holds(check)}

    @property
    def consistent(self) -> bool:
        return not self.failed

    @property
    def ranks(self) -> Ranks:
        return self.evaluator.ranks

    def relation(self, name: str) -> Rows:
        """The relation of that name: the model's last definition of it, else a base relation; KeyError if neither."""
        value = self.evaluator.named(name)
        value = self.execution.relation(name) if value is None else value
        if isinstance(value, int):
            raise KeyError(name)
        return value


def evaluate(model: Model, execution: Execution, ranks: Ranks | None = None) -> Evaluation:
    """Judge one execution by a model, with these total orders where the model chooses some."""
    evaluator = PlainEvaluator(model, execution, ranks or {})
    failed = tuple(check.name for check in model.axioms if not evaluator.holds(check))
    return Evaluation(failed, model, execution, evaluator)


_POINTWISE: dict[str, Callable[[int, int], int]] = {"|": or_, "&": and_, "\\": lambda left, right: left & ~right}


class PlainEvaluator:
    """The definitions of a model on one execution, each when it is first asked for. `values`: those so far.

    The engines read models with `memmodel.cat.evaluate`. This one shares nothing with it but the operations on rows:
    what engines find is judged here once more, and tests compare each algebra of the engines with it.
    """

    def __init__(self, model: Model, execution: Execution, ranks: Ranks) -> None:
        self.definitions = model.definitions
        self.execution = execution
        self.ranks = ranks
        self.count = len(execution.events)
        self.all = (1 << self.count) - 1
        self.values: dict[int, Value] = {}

    def named(self, name: str) -> Value | None:
        """The value of the model's last definition of that name; None if it has none."""
        for index in range(len(self.definitions) - 1, -1, -1):
            if self.definitions[index].name == name:
                return self.defined(index)
        return None

    def defined(self, index: int) -> Value:
        """The value of a definition; a group of `let rec` is worked out together."""
        known = self.values.get(index)
        if known is None:
            definition = self.definitions[index]
            if definition.order is not None:
                self.values[index] = self._ordered(definition, self.ranks.get(index, [0] * self.count))
            elif definition.group is None:
                self.values[index] = self.value(definition.body)
            else:
                self._fixpoint([i for i, other in enumerate(self.definitions) if other.group == definition.group])
            return self.values[index]
        return known

    def _ordered(self, definition: Definition, ranks: Sequence[int]) -> Rows:
        """A strict total order on a set that contains a relation, if that has no cycle; otherwise lower ranks first."""
        assert definition.order is not None
        before = inverse(self._rows(self.value(definition.order)))
        return total_order(self._mask(self.value(definition.body)), before, ranks)

    def _fixpoint(self, group: Sequence[int]) -> None:
        """`let rec … and …`: from empty values, evaluate all bodies again until nothing changes."""
        for index in group:
            self.values[index] = 0 if self.definitions[index].kind is Kind.SET else [0] * self.count
        limit = len(group) * (self.count * self.count + 1)
        for _ in range(limit + 1):
            new = {index: self.value(self.definitions[index].body) for index in group}
            if all(new[index] == self.values[index] for index in group):
                return
            self.values.update(new)
        name = self.definitions[group[0]].name
        raise InternalError(f"'let rec {name}' has no least fixpoint: its body is not monotone")

    def holds(self, check: Check) -> bool:
        """True if this execution is as the check says."""
        value = self.value(check.body)
        if check.kind == "empty":
            true = not value if isinstance(value, int) else not any(value)
        else:
            rows = closure(self._rows(value)) if check.kind == "acyclic" else self._rows(value)
            true = not any(rows[event] >> event & 1 for event in range(self.count))
        return true is not check.negated

    def reported(self, check: Check) -> list[tuple[int, int]]:
        """The pairs that a raised flag speaks of: of a negated check those that break it, otherwise none.

        An event of a set counts as a pair with itself; `~acyclic` reports the pairs that lie on a cycle.
        """
        if not check.negated:
            return []
        value = self.value(check.body)
        if isinstance(value, int):
            return [(event, event) for event in bits(value)]
        if check.kind == "empty":
            return pairs_of(value)
        if check.kind == "irreflexive":
            return [(a, b) for a, b in pairs_of(value) if a == b]
        reach = closure(value)
        return [(a, b) for a, b in pairs_of(value) if reach[b] >> a & 1]

    # ---- expressions ---------------------------------------------------------------------------------------

    def value(self, expr: Expr) -> Value:
        """The set or relation that an expression denotes. Where the left side leaves nothing, the right is left out."""
        kind = expr.__class__
        if kind is Name:
            return self._name(expr)  # type: ignore[arg-type]
        if kind is Unary:
            return self._unary(expr.op, self.value(expr.operand))  # type: ignore[union-attr]
        if isinstance(expr, Binary):
            return self._two_sided(expr)
        return 0 if expr.kind is Kind.SET else [0] * self.count

    def _two_sided(self, expr: Binary) -> Value:
        op = expr.op
        if op == ";":
            if isinstance(expr.left, Unary) and expr.left.op == "[]":
                kept = self._mask(self.value(expr.left.operand))
                if not kept:
                    return [0] * self.count
                return [row if kept >> event & 1 else 0 for event, row in enumerate(self._rows(self.value(expr.right)))]
            if isinstance(expr.right, Unary) and expr.right.op == "[]":
                kept = self._mask(self.value(expr.right.operand))
                return [row & kept for row in self._rows(self.value(expr.left))] if kept else [0] * self.count
        left = self.value(expr.left)
        if op != "|" and not (left if left.__class__ is int else any(left)):  # type: ignore[arg-type]
            return [0] * self.count if op == "*" else left
        return self._binary(expr, left, self.value(expr.right))

    def _name(self, name: Name) -> Value:
        if name.ref is not None:
            return self.defined(name.ref)
        if name.kind is Kind.SET:
            return self.execution.set(name.name)
        return self.execution.relation(name.name)

    def _unary(self, op: str, value: Value) -> Value:
        if op == "~":
            return self.all & ~value if isinstance(value, int) else [self.all & ~row for row in value]
        if op == "[]":
            mask = self._mask(value)
            return [mask & 1 << event for event in range(self.count)]
        rows = self._rows(value)
        if op == "^-1":
            return inverse(rows)
        if op == "?":
            return [row | 1 << event for event, row in enumerate(rows)]
        if op == "+":
            return closure(rows)
        if op == "*":
            return [row | 1 << event for event, row in enumerate(closure(rows))]
        if op == "domain":
            return sum(1 << event for event, row in enumerate(rows) if row)
        if op == "range":
            return range_of(rows)
        raise InternalError(f"unknown operator {op}")

    def _binary(self, expr: Binary, left: Value, right: Value) -> Value:
        op = expr.op
        pointwise = _POINTWISE.get(op)
        if pointwise is not None:
            if isinstance(left, int) or isinstance(right, int):
                return pointwise(self._mask(left), self._mask(right))
            return list(map(pointwise, left, right))
        if op == ";":
            return compose(self._rows(left), self._rows(right))
        if op == "*":
            first, second = self._mask(left), self._mask(right)
            return [second if first >> event & 1 else 0 for event in range(self.count)]
        raise InternalError(f"unknown operator {op}")

    @staticmethod
    def _mask(value: Value) -> int:
        if isinstance(value, int):
            return value
        raise InternalError("a relation where a set is needed")

    @staticmethod
    def _rows(value: Value) -> Rows:
        if isinstance(value, int):
            raise InternalError("a set where a relation is needed")
        return value
