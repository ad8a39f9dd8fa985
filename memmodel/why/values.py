"""What the names and expressions of a model are on one execution, worked out as they are asked for.

In: a model, an execution. Out: `Values`, the referee's algebra with a memory, so that one pair of events can be traced.
"""

from __future__ import annotations

from memmodel.base.rows import Rows
from memmodel.cat.syntax import Check, Expr, Model, Name
from memmodel.concrete.execution import Execution
from memmodel.referee.evaluate import PlainEvaluator, Ranks, Value


class Values(PlainEvaluator):
    """Definitions and expressions on demand."""

    def __init__(self, model: Model, execution: Execution, ranks: Ranks) -> None:
        super().__init__(model, execution, ranks)
        self.model = model
        self._known: dict[int, tuple[Expr, Value]] = {}  # the expression stays, so that no other one gets its identity
        self._index: dict[str, int] = {}
        self._first = list(range(len(model.definitions)))
        for number, definition in enumerate(model.definitions):
            self._index[definition.name] = number
            if number and definition.group is not None and definition.group == model.definitions[number - 1].group:
                self._first[number] = self._first[number - 1]

    def value(self, expr: Expr) -> Value:
        """As the referee, but only once; while a `let rec` is worked out, its parts are not kept."""
        if isinstance(expr, Name):
            known = None if expr.ref is None else self.values.get(expr.ref)
            return self._name(expr) if known is None else known
        key = id(expr)
        if key in self._known:
            return self._known[key][1]
        value = super().value(expr)
        if not self._working:
            self._known[key] = expr, value
        return value

    def _compose(self, left: Rows, right: Rows) -> Rows:
        composed = []
        for row in left:
            reached = 0
            while row:
                low = row & -row
                reached |= right[low.bit_length() - 1]
                row ^= low
            composed.append(reached)
        return composed

    _working = 0

    def _name(self, name: Name) -> Value:
        if name.ref is not None and name.ref not in self.values:
            first = self._first[name.ref]
            recursive = self.definitions[first].group is not None
            self._working += recursive
            self.defined(first)
            self._working -= recursive
        return super()._name(name)

    def rows(self, expr: Expr) -> Rows:
        """A relation."""
        return self._rows(self.value(expr))

    def named(self, name: str) -> Value:
        """The model's last definition of a name, else a base name. KeyError if there is none."""
        if name in self._index:
            number = self._index[name]
            definition = self.definitions[number]
            return self.value(Name(name, definition.kind, number))
        try:
            return self.execution.relation(name)
        except KeyError:
            return self.execution.set(name)

    def relation(self, name: str) -> Rows | None:
        """A relation by its name; None if there is none."""
        try:
            value = self.named(name)
        except KeyError:
            return None
        return None if isinstance(value, int) else value

    def index(self, name: str) -> int | None:
        """The number of the model's last definition of a name."""
        return self._index.get(name)

    def violated(self) -> Check | None:
        """The first axiom that the execution breaks."""
        return next((check for check in self.model.axioms if not self.holds(check)), None)

    def approximants(self, ref: int) -> list[dict[int, Value]]:
        """The values of a `let rec` from empty ones to the fixpoint."""
        first = self._first[ref]
        members = [number for number in range(first, len(self.definitions)) if self._first[number] == first]
        final = {number: self.values[number] for number in members}
        none: Value = 0
        stage: dict[int, Value] = {
            number: (none if isinstance(self.values[number], int) else [0] * self.count) for number in members
        }
        stages = [stage]
        self._working += 1
        while stage != final:
            self.values |= stage
            stage = {number: super(Values, self).value(self.definitions[number].body) for number in members}
            stages.append(stage)
        self._working -= 1
        self.values |= final
        return stages

    def with_values(self, values: dict[int, Value]) -> Values:
        """The same execution, with other values for some definitions."""
        other = Values(self.model, self.execution, self.ranks)
        other.values = {**self.values, **values}
        return other
