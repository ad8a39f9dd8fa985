"""Questions that an engine asks about a model before it starts.

In: Model. Out: the base names that it refers to; whether a value may support itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memmodel.base.identity import by_identity
from memmodel.cat.syntax import Binary, Definition, Expr, Model, Name, Unary, operands_of

CHOICE = "with"
"""Stands for the choice of a total order among the base names that a definition depends on."""


@by_identity(16)
def base_names(model: Model) -> frozenset[str]:
    """The base names that a model refers to."""
    bodies = (*(definition.body for definition in model.definitions), *(check.body for check in model.checks))
    return frozenset(name.name for body in bodies for name in names_in(body) if name.ref is None)


@by_identity(16)
def grounds_values(model: Model) -> bool:
    """True if an axiom keeps values from supporting themselves, by a closed chain of reads-from and dependencies.

    Only the plain form is recognised: `acyclic` over a union that has rf, addr, data and ctrl among its parts.
    """
    return any(
        check.kind == "acyclic"
        and not check.negated
        and {"rf", "addr", "data", "ctrl"} <= set(_united(model, check.body))
        for check in model.axioms
    )


def names_in(expr: Expr) -> Iterator[Name]:
    """Every name in an expression, from left to right."""
    waiting = [expr]
    while waiting:
        expr = waiting.pop()
        if isinstance(expr, Name):
            yield expr
        waiting += reversed(operands_of(expr))


def is_taken_away(expr: Expr, number: int) -> bool:
    """True if the operand of that number stands under `~` or to the right of `\\`: a larger one makes less of it."""
    return isinstance(expr, Unary | Binary) and (expr.op == "~" or (expr.op == "\\" and number == 1))


def group_at(definitions: Sequence[Definition], first: int) -> range:
    """The definitions that are defined together with the one at `first`, which is the first of them."""
    group, last = definitions[first].group, first + 1
    while group is not None and last < len(definitions) and definitions[last].group == group:
        last += 1
    return range(first, last)


def _united(model: Model, expr: Expr) -> Iterator[str]:
    """The base names among the parts of a union, through definitions."""
    match expr:
        case Binary(op="|"):
            yield from _united(model, expr.left)
            yield from _united(model, expr.right)
        case Name(ref=None):
            yield expr.name
        case Name(ref=int(ref)) if model.definitions[ref].group is None and model.definitions[ref].order is None:
            yield from _united(model, model.definitions[ref].body)
        case _:
            return
