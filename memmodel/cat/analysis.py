"""Questions that an engine asks about a model before it starts.

In: Model. Out: which base names a definition or check depends on; whether a base relation may be taken as transitive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memmodel.cat.syntax import Binary, Expr, Model, Name, Unary


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Base names by user: `definitions` runs parallel to Model.definitions, `checks` is by name of the check."""

    definitions: tuple[frozenset[str], ...]
    checks: dict[str, frozenset[str]]


def dependencies(model: Model) -> Dependencies:
    """The base names that each definition and each check depends on, through whatever it refers to."""
    known: list[frozenset[str]] = []
    while len(known) < len(model.definitions):
        group = _group(model, len(known))
        used = frozenset(base for index in group for base in _bases(model.definitions[index].body, known))
        known += [used] * len(group)
    checks = {check.name: frozenset(_bases(check.body, known)) for check in model.checks}
    return Dependencies(tuple(known), checks)


def closed_only(model: Model, name: str) -> bool:
    """Does base relation `name` matter to the checks only through its closures `name+` and `name*`?

    Then an engine may take it as transitive. Let E be an execution and E' the same with `r+` in place of `r`. Since
    (r+)+ = r+ and (r+)* = r*, every check has the same value in both. For `co`, E' is a candidate execution whenever
    E is: if `co` is acyclic, relates writes to one location and has the initial write first, then so does `co+`; and
    both have the same maximal writes, thus the same final values. So nothing is lost by looking at transitive
    relations only, and every one of them is allowed. Note that the `fr` of the prelude is `rf^-1 ; co`: a model that
    uses it, rather than its own over `co+`, uses `co` unclosed. Definitions that no check reaches do not count.
    """
    return not any(_unclosed(expr, name) for expr in _reached(model))


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


def _group(model: Model, first: int) -> range:
    """The definitions that are defined together with the one at `first`, which is the first of them."""
    group, last = model.definitions[first].group, first + 1
    while group is not None and last < len(model.definitions) and model.definitions[last].group == group:
        last += 1
    return range(first, last)


def _bases(expr: Expr, known: list[frozenset[str]]) -> Iterator[str]:
    """Base names of an expression; a reference beyond `known` is to its own group and adds nothing."""
    for name in names_in(expr):
        if name.ref is None:
            yield name.name
        elif name.ref < len(known):
            yield from known[name.ref]


def _reached(model: Model) -> Iterator[Expr]:
    """Bodies of all checks and of the definitions that they reach."""
    todo: list[Expr] = [check.body for check in model.checks]
    seen: set[int] = set()
    while todo:
        expr = todo.pop()
        yield expr
        for name in names_in(expr):
            if name.ref is not None and name.ref not in seen:
                seen.add(name.ref)
                todo.append(model.definitions[name.ref].body)


def _unclosed(expr: Expr, name: str) -> bool:
    match expr:
        case Name():
            return expr.ref is None and expr.name == name
        case Unary(op="+" | "*", operand=Name()):
            return False
        case Unary():
            return _unclosed(expr.operand, name)
        case Binary():
            return _unclosed(expr.left, name) or _unclosed(expr.right, name)
        case _:
            return False
