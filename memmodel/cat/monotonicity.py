"""Whether adding pairs to a base relation, or removing pairs, can make a check fail. If not, some choices are skipped.

In: Model, name of a base relation. Out: for each check, which of the two can make it fail. An occurrence is positive if
a larger relation makes the whole larger, negative if it makes the whole smaller.
"""

from __future__ import annotations

from collections.abc import Sequence

from memmodel.base.identity import by_identity
from memmodel.cat.analysis import group_at, is_taken_away
from memmodel.cat.syntax import Check, Definition, Expr, Model, Name, operands_of

_Signs = tuple[int, int]
"""Masks of base names: those that occur positively, and those that occur negatively."""

MORE = frozenset((1,))
LESS = frozenset((-1,))


def effect_of_more(model: Model, name: str) -> dict[str, frozenset[int]]:
    """For each check by name: whether it can stop holding when `name` grows (1), when it shrinks (-1), or both.

    A larger body can only hurt a check, and only help a negated one.
    """
    occurrences = _occurrences(model.definitions)
    return {check.name: occurrences.effect(check, name) for check in model.checks}


def asks_for(model: Model, name: str) -> bool | None:
    """True if there is an axiom that only more of `name` can satisfy; None if no axiom depends on it."""
    effect = effect_of_more(model, name)
    effects = [effect[check.name] for check in model.axioms if effect[check.name]]
    return LESS in effects if effects else None


def least_suffices(model: Model, name: str, flags: Sequence[str]) -> bool:
    """If a candidate is consistent, so is it with less of `name`, and raises no fewer of these flags.

    A flag is raised when its check holds.
    """
    effect = effect_of_more(model, name)
    return all(effect[check.name] <= MORE for check in model.checks if not check.flag or check.name in flags)


class _Occurrences:
    """With which signs the definitions of a model depend on base names. A `let rec` is iterated until stable."""

    def __init__(self, definitions: Sequence[Definition]) -> None:
        self.bit: dict[str, int] = {}
        self.signs: list[_Signs] = [(0, 0)] * len(definitions)
        at = 0
        while at < len(definitions):
            group = group_at(definitions, at)
            before: list[_Signs] = []
            while before != self.signs[group.start : group.stop]:
                before = self.signs[group.start : group.stop]
                for number in group:
                    self.signs[number] = self._of(definitions[number])
            at = group.stop

    def effect(self, check: Check, name: str) -> frozenset[int]:
        """1 if more of a base name can break a check, -1 if less of it can."""
        more, less = self._expr(check.body)
        if check.negated:
            more, less = less, more
        bit = self.bit.get(name, 0)
        return frozenset([1] * bool(more & bit) + [-1] * bool(less & bit))

    def _of(self, definition: Definition) -> _Signs:
        more, less = self._expr(definition.body)
        if definition.order is None:
            return more, less
        first, second = self._expr(definition.order)
        either = more | less | first | second
        return either, either  # another choice altogether

    def _expr(self, expr: Expr) -> _Signs:
        if isinstance(expr, Name):
            if expr.ref is None:
                return self.bit.setdefault(expr.name, 1 << len(self.bit)), 0
            return self.signs[expr.ref]
        more = less = 0
        for number, operand in enumerate(operands_of(expr)):
            grows, shrinks = self._expr(operand)
            if is_taken_away(expr, number):
                grows, shrinks = shrinks, grows
            more, less = more | grows, less | shrinks
        return more, less


_occurrences = by_identity(16)(_Occurrences)
