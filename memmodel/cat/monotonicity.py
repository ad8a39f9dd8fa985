"""Whether adding pairs to a base relation, or removing pairs, can make a check fail. If not, some choices are skipped.

In: Model, name of a base relation. Out: for each check, which of the two can make it fail. An occurrence is positive if
a larger relation makes the whole larger, negative if it makes the whole smaller (below `~`, or to the right of `\\`).
"""

from __future__ import annotations

from collections.abc import Sequence

from memmodel.cat.syntax import Binary, Check, Expr, Model, Name, Unary

_Signs = frozenset[int]
_NONE: _Signs = frozenset()

MORE: _Signs = frozenset((1,))
LESS: _Signs = frozenset((-1,))


def effect_of_more(model: Model, name: str) -> dict[str, _Signs]:
    """For each check by name: can it stop holding when `name` grows (1), when it shrinks (-1), or either, or neither?

    A larger body can only hurt a check, and only help a negated one.
    """
    signs = definition_signs(model, name)
    return {check.name: _effect(check, name, signs) for check in model.checks}


def _effect(check: Check, name: str, signs: list[_Signs]) -> _Signs:
    body = _expr_signs(check.body, name, signs)
    return _flip(body) if check.negated else body


def asks_for(model: Model, name: str) -> bool | None:
    """Is there an axiom that only more of `name` can satisfy? None if no axiom depends on it."""
    effect = effect_of_more(model, name)
    found = [effect[check.name] for check in model.axioms if effect[check.name]]
    return LESS in found if found else None


def least_suffices(model: Model, name: str, flags: Sequence[str]) -> bool:
    """If a candidate is consistent, so is it with less of `name`, and raises no fewer of these flags.

    A flag is raised when its check holds.
    """
    effect = effect_of_more(model, name)
    return all(effect[check.name] <= MORE for check in model.checks if not check.flag or check.name in flags)


def definition_signs(model: Model, name: str) -> list[_Signs]:
    """For each definition the signs with which it depends on `name`; recursive groups are iterated until stable."""
    signs = [_NONE] * len(model.definitions)
    while True:
        new = list(signs)
        for index, definition in enumerate(model.definitions):
            new[index] = _expr_signs(definition.body, name, new)
            if definition.order is not None and (new[index] or _expr_signs(definition.order, name, new)):
                new[index] = MORE | LESS  # another choice altogether
        if new == signs:
            return signs
        signs = new


def _expr_signs(expr: Expr, name: str, signs: list[_Signs]) -> _Signs:
    if isinstance(expr, Name):
        if expr.ref is not None:
            return signs[expr.ref]
        return frozenset((1,)) if expr.name == name else _NONE
    if isinstance(expr, Unary):
        inner = _expr_signs(expr.operand, name, signs)
        return _flip(inner) if expr.op == "~" else inner
    if isinstance(expr, Binary):
        right = _expr_signs(expr.right, name, signs)
        return _expr_signs(expr.left, name, signs) | (_flip(right) if expr.op == "\\" else right)
    return _NONE


def _flip(signs: _Signs) -> _Signs:
    return frozenset(-one for one in signs)
