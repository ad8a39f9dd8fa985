"""The algebra of one execution: a set is a mask of its events, a relation a list of rows (`memmodel.base.rows`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from operator import and_

from memmodel.base import rows
from memmodel.base.rows import Rows, bits
from memmodel.cat.evaluate.algebra import Algebra
from memmodel.cat.syntax import Check
from memmodel.errors import InternalError

Value = int | Rows
"""A set as a mask, or a relation as rows."""


def as_set(value: Value) -> int:
    """The value of a set, as a mask."""
    if isinstance(value, int):
        return value
    raise InternalError("a relation where a set is needed")


def as_relation(value: Value) -> Rows:
    """The value of a relation, as rows."""
    if isinstance(value, int):
        raise InternalError("a set where a relation is needed")
    return value


def pointwise(operation: Callable[[int, int], int], left: Value, right: Value) -> Value:
    """An operation on two sets, or row by row on two relations."""
    if isinstance(left, int) or isinstance(right, int):
        return operation(as_set(left), as_set(right))
    return list(map(operation, left, right))


def without(left: int, right: int) -> int:
    return left & ~right


def differences(left: Value, right: Value) -> tuple[Value, Value]:
    """What the second of two values has and the first has not, and the other way."""
    return pointwise(without, right, left), pointwise(without, left, right)


class RowAlgebra(Algebra[Value]):
    """Sets and relations of `count` events. `running`: the events of the execution; complements have no others."""

    def __init__(self, count: int, running: int | None = None) -> None:
        self.count = count
        self.running = (1 << count) - 1 if running is None else running

    def empty(self, is_set: bool) -> Value:
        return 0 if is_set else [0] * self.count

    def is_empty(self, value: Value) -> bool:
        return not (value if isinstance(value, int) else any(value))

    def union(self, left: Value, right: Value) -> Value:
        if isinstance(left, int) or isinstance(right, int):
            return as_set(left) | as_set(right)
        return [row | other if row and other else row or other for row, other in zip(left, right, strict=True)]

    def intersection(self, left: Value, right: Value) -> Value:
        if isinstance(left, int) or isinstance(right, int):
            return as_set(left) & as_set(right)
        return [row & other if row and other else 0 for row, other in zip(left, right, strict=True)]

    def difference(self, left: Value, right: Value) -> Value:
        if isinstance(left, int) or isinstance(right, int):
            return without(as_set(left), as_set(right))
        return [
            (row ^ both if (both := row & other) else row) if row and other else row
            for row, other in zip(left, right, strict=True)
        ]

    def complement(self, value: Value, is_set: bool) -> Value:
        running = self.running
        if isinstance(value, int):
            return running & ~value
        return [running & ~row if running >> a & 1 else 0 for a, row in enumerate(value)]

    def compose(self, left: Value, right: Value) -> Rows:
        return rows.compose(as_relation(left), as_relation(right))

    def from_sources(self, sources: Value, relation: Value) -> Rows:
        whole, kept = as_relation(relation), [0] * self.count
        for event in bits(as_set(sources)):
            kept[event] = whole[event]
        return kept

    def to_targets(self, relation: Value, targets: Value) -> Rows:
        return rows.rows_within(as_relation(relation), as_set(targets))

    def product(self, left: Value, right: Value) -> Rows:
        pairs, targets = [0] * self.count, as_set(right)
        for event in bits(as_set(left)):
            pairs[event] = targets
        return pairs

    def identity(self, events: Value) -> Rows:
        pairs, alone = [0] * self.count, self._alone
        for event in bits(as_set(events)):
            pairs[event] = alone[event]
        return pairs

    @cached_property
    def _alone(self) -> Rows:
        """The row of each event that leads to itself: one object for all relations."""
        return [1 << event for event in range(self.count)]

    def inverse(self, relation: Value) -> Rows:
        return rows.inverse(as_relation(relation))

    def optional(self, relation: Value) -> Rows:
        return [row | self.running & 1 << a for a, row in enumerate(as_relation(relation))]

    def closure(self, relation: Value) -> Rows:
        return rows.closure(as_relation(relation))

    def domain(self, relation: Value) -> int:
        return rows.domain(as_relation(relation))

    def range(self, relation: Value) -> int:
        return rows.range_of(as_relation(relation))

    def fails(self, test: str, value: Value) -> bool:
        """True if a value is not empty, not irreflexive, or not acyclic, as the test asks."""
        if isinstance(value, int):
            return bool(value)
        if test == "empty":
            return any(value)
        if any(row >> a & 1 for a, row in enumerate(value)):
            return True
        return test == "acyclic" and any(len(part) > 1 for part in rows.components(value))


def reported(check: Check, value: Value) -> list[tuple[int, int]]:
    """The pairs that a raised flag speaks of. An event of a set counts as a pair with itself."""
    return pairs_in(reporting(check, value))


def reporting(check: Check, value: Value) -> Value:
    """The part of its value that a raised flag speaks of: of a negated check what breaks it, otherwise nothing. Of
    `~acyclic` these are the pairs that lie on a cycle.
    """
    if not check.negated:
        return 0
    if isinstance(value, int) or check.kind == "empty":
        return value
    if check.kind == "irreflexive":
        return [row & 1 << event for event, row in enumerate(value)]
    return list(map(and_, value, rows.inverse(rows.closure(value))))


def pairs_in(value: Value) -> list[tuple[int, int]]:
    """The pairs of a value, in their order."""
    return [(event, event) for event in bits(value)] if isinstance(value, int) else rows.pairs_of(value)
