"""The operations of cat on sets of events and relations between events, for any representation of these.

In: nothing. Out: `Algebra`, which the evaluator works with. Operations get values of the kinds that cat allows: sets
for `identity` and `product`, two values of one kind for `union`, and so on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from memmodel.cat.evaluate.graph import Node

V = TypeVar("V")

OPERATIONS = {
    "|": "union",
    "&": "intersection",
    "\\": "difference",
    ";": "compose",
    "product": "product",
    "[]": "identity",
    "^-1": "inverse",
    "?": "optional",
    "+": "closure",
    "*": "reflexive_closure",
    "domain": "domain",
    "range": "range",
}
"""The operators of cat but for `~`: a complement needs to know whether its value is a set."""


class Algebra(ABC, Generic[V]):
    """Operations on values, which are sets and relations. No operation changes a value that it is given."""

    @abstractmethod
    def base(self, node: Node) -> V:
        """A base set or relation."""

    @abstractmethod
    def order(self, node: Node, over: V, extends: V) -> V:
        """The total order on a set that is chosen for a definition."""

    @abstractmethod
    def empty(self, is_set: bool) -> V: ...

    @abstractmethod
    def is_empty(self, value: V) -> bool:
        """True if a value is certainly empty."""

    @abstractmethod
    def union(self, left: V, right: V) -> V: ...

    @abstractmethod
    def intersection(self, left: V, right: V) -> V: ...

    @abstractmethod
    def difference(self, left: V, right: V) -> V: ...

    @abstractmethod
    def complement(self, value: V, is_set: bool) -> V: ...

    @abstractmethod
    def compose(self, left: V, right: V) -> V:
        """left ; right"""

    @abstractmethod
    def from_sources(self, sources: V, relation: V) -> V:
        """[sources] ; relation"""

    @abstractmethod
    def to_targets(self, relation: V, targets: V) -> V:
        """relation ; [targets]"""

    @abstractmethod
    def product(self, left: V, right: V) -> V:
        """left * right, of two sets"""

    @abstractmethod
    def identity(self, events: V) -> V:
        """[events]"""

    @abstractmethod
    def inverse(self, relation: V) -> V: ...

    @abstractmethod
    def optional(self, relation: V) -> V:
        """relation?"""

    @abstractmethod
    def closure(self, relation: V) -> V:
        """relation+"""

    def reflexive_closure(self, relation: V) -> V:
        """relation*"""
        return self.optional(self.closure(relation))

    @abstractmethod
    def domain(self, relation: V) -> V: ...

    @abstractmethod
    def range(self, relation: V) -> V: ...

    def apply(self, op: str, *values: V) -> V:
        """What an operator makes of values."""
        operation: Callable[..., V] = getattr(self, OPERATIONS[op])
        return operation(*values)

    def least(self, start: tuple[V, ...], step: Callable[[tuple[V, ...]], tuple[V, ...]]) -> tuple[V, ...]:
        """The least fixpoint of a monotone step. `start`: the empty values."""
        values = start
        while (after := step(values)) != values:
            values = after
        return values
