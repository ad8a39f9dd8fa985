"""Questions that an engine asks about a model before it starts.

In: Model. Out: which base names a definition or check depends on; whether a value may support itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memmodel.base.identity import by_identity
from memmodel.cat.syntax import Binary, Definition, Expr, Model, Name, Unary

CHOICE = "with"
"""Stands for the choice of a total order among the base names that a definition depends on."""


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Base names by user: `definitions` runs parallel to Model.definitions, `checks` is by name of the check."""

    definitions: tuple[frozenset[str], ...]
    checks: dict[str, frozenset[str]]


@by_identity(16)
def base_names(model: Model) -> frozenset[str]:
    """The base names that a model refers to."""
    bodies = (*(definition.body for definition in model.definitions), *(check.body for check in model.checks))
    return frozenset(name.name for body in bodies for name in names_in(body) if name.ref is None)


def dependencies(model: Model) -> Dependencies:
    """The base names that each definition and each check depends on, through whatever it refers to."""
    known = bases_of(model.definitions)
    checks = {check.name: frozenset(_bases(check.body, known)) for check in model.checks}
    return Dependencies(known, checks)


@by_identity(16)
def bases_of(definitions: tuple[Definition, ...]) -> tuple[frozenset[str], ...]:
    """The base names that each definition depends on, through whatever it refers to."""
    known: list[frozenset[str]] = []
    while len(known) < len(definitions):
        group = group_at(definitions, len(known))
        used = frozenset(base for index in group for base in _used(definitions[index], known))
        known += [used] * len(group)
    return tuple(known)


@by_identity(16)
def grounds_values(model: Model) -> bool:
    """Does some axiom keep values from supporting themselves, by a chain of reads-from and dependencies that closes?

    Only the plain form is recognised: `acyclic` over a union that has rf, addr, data and ctrl among its parts.
    """
    return any(
        check.test == "acyclic"
        and not check.negated
        and {"rf", "addr", "data", "ctrl"} <= set(_united(model, check.body))
        for check in model.axioms
    )


def definition_of(model: Model, name: str) -> int | None:
    """The index of the definition that a name in `Model.shown` stands for; None when it is a base name."""
    found = [index for index, definition in enumerate(model.definitions) if definition.name == name]
    return found[-1] if found else None


def names_in(expr: Expr) -> Iterator[Name]:
    """Every name in an expression, from left to right."""
    match expr:
        case Name():
            yield expr
        case Unary():
            yield from names_in(expr.operand)
        case Binary():
            yield from names_in(expr.left)
            yield from names_in(expr.right)


def group_at(definitions: Sequence[Definition], first: int) -> range:
    """The definitions that are defined together with the one at `first`, which is the first of them."""
    group, last = definitions[first].group, first + 1
    while group is not None and last < len(definitions) and definitions[last].group == group:
        last += 1
    return range(first, last)


def _used(definition: Definition, known: Sequence[frozenset[str]]) -> Iterator[str]:
    yield from _bases(definition.body, known)
    if definition.order is not None:
        yield CHOICE
        yield from _bases(definition.order, known)


def _bases(expr: Expr, known: Sequence[frozenset[str]]) -> Iterator[str]:
    """Base names of an expression; a reference beyond `known` is to its own group and adds nothing."""
    for name in names_in(expr):
        if name.ref is None:
            yield name.name
        elif name.ref < len(known):
            yield from known[name.ref]


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
