"""Whether more of a base relation can only hurt: then its smallest choices decide everything.

In: Model, name of a base relation. Out: yes or no. An occurrence is positive if a larger relation makes the whole
larger, negative if it makes it smaller (below `~`, or right of `\\`).
"""

from __future__ import annotations

from memmodel.cat.syntax import Binary, Expr, Model, Name, Unary

_Signs = frozenset[int]
_NONE: _Signs = frozenset()


def least_suffices(model: Model, name: str, flags: bool) -> bool:
    """If a candidate is consistent, so is it with less of `name`, and raises no fewer flags (if these matter).

    A smaller body can only help a check to hold, a larger one a negated check; and raised flags are checks that hold.
    """
    signs = definition_signs(model, name)
    for check in model.checks:
        if check.flag and not flags:
            continue
        if not _expr_signs(check.body, name, signs) <= {-1 if check.negated else 1}:
            return False
    return True


def definition_signs(model: Model, name: str) -> list[_Signs]:
    """For each definition the signs with which it depends on `name`; recursive groups are iterated until stable."""
    signs = [_NONE] * len(model.definitions)
    while True:
        new = list(signs)
        for index, definition in enumerate(model.definitions):
            new[index] = _expr_signs(definition.body, name, new)
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
