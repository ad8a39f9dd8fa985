"""Normal forms of expressions: each means what the expression means, and equal ones are a proof."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import product

import pytest

from memmodel.base.kinds import Kind
from memmodel.cat.load import parse_model
from memmodel.cat.syntax import Binary, Empty, Expr, Model, Name, Unary
from memmodel.search.edits.identical import NormalForms, identical
from memmodel.source import Source

EVENTS = range(3)
Pairs = frozenset[tuple[int, int]]
"""A relation; a set is the part of `id` on it."""

EVERY: Pairs = frozenset(product(EVENTS, EVENTS))
SAME: Pairs = frozenset((a, a) for a in EVENTS)


def composed(left: Pairs, right: Pairs) -> Pairs:
    return frozenset((a, d) for a, b in left for c, d in right if b == c)


def closed(relation: Pairs) -> Pairs:
    while (more := relation | composed(relation, relation)) != relation:
        relation = more
    return relation


def inverse(relation: Pairs) -> Pairs:
    return frozenset((b, a) for a, b in relation)


def crossed(left: Pairs, right: Pairs) -> Pairs:
    return frozenset((a, b) for a, _ in left for _, b in right)


def applied(op: str, value: Pairs, kind: Kind) -> Pairs:
    match op:
        case "^-1":
            return inverse(value)
        case "?":
            return value | SAME
        case "+":
            return closed(value)
        case "*":
            return closed(value) | SAME
        case "[]":
            return value
        case "domain":
            return frozenset((a, a) for a, _ in value)
        case "range":
            return frozenset((b, b) for _, b in value)
    return (SAME if kind is Kind.SET else EVERY) - value


def meaning(expr: Expr, bases: dict[str, Pairs]) -> Pairs:
    match expr:
        case Name():
            return bases[expr.name]
        case Unary():
            return applied(expr.op, meaning(expr.operand, bases), expr.operand.kind)
        case Binary():
            left, right = meaning(expr.left, bases), meaning(expr.right, bases)
            combine = {"|": left | right, "&": left & right, "\\": left - right}
            return combine[expr.op] if expr.op in combine else (composed if expr.op == ";" else crossed)(left, right)
    return frozenset()


def of_form(form: Iterable[tuple[tuple[object, ...], ...]], bases: dict[str, Pairs]) -> Pairs:
    """What a normal form means."""
    union: Pairs = frozenset()
    for chain in form:
        value = SAME
        for step in chain:
            value = composed(value, of_step(step, bases))
        union |= value
    return union


def of_step(step: tuple[object, ...], bases: dict[str, Pairs]) -> Pairs:
    match step:
        case ("base", str(name), _):
            return bases[name]
        case ("[]", chain):
            return of_form([chain], bases)  # type: ignore[list-item]
        case ("&", parts):
            return EVERY.intersection(*(of_form(part, bases) for part in parts))  # type: ignore[attr-defined]
        case ("\\", left, right):
            return of_form(left, bases) - of_form(right, bases)  # type: ignore[arg-type]
        case ("product", left, right):
            return crossed(of_form(left, bases), of_form(right, bases))  # type: ignore[arg-type]
        case ("^-1", inner):
            return inverse(of_step(inner, bases))  # type: ignore[arg-type]
        case ("+" | "|" as op, form):
            return closed(of_form(form, bases)) if op == "+" else of_form(form, bases)  # type: ignore[arg-type]
        case (str(op), form, Kind() as kind):
            return applied(op, of_form(form, bases), kind)  # type: ignore[arg-type]
    raise AssertionError(step)


def expression(choose: random.Random, depth: int, kind: Kind) -> Expr:
    """Any expression of a kind. `si` is symmetric."""
    other = lambda: expression(choose, depth - 1, kind)  # noqa: E731
    is_set = kind is Kind.SET
    if depth == 0 or choose.random() < 0.1:
        name = choose.choice(("W", "R") if is_set else ("rf", "co", "si", "id"))
        return Empty(kind) if choose.random() < 0.05 else Name(name, kind)
    ops = (
        ("|", "&", "\\", "~", "domain", "range")
        if is_set
        else ("|", "&", "\\", ";", "~", "*", "^-1", "?", "+", "r*", "[]")
    )
    op = choose.choice(ops)
    if op in ("domain", "range"):
        return Unary(op, expression(choose, depth - 1, Kind.RELATION), kind)
    if op == "[]" or op == "*":
        sets = [expression(choose, depth - 1, Kind.SET) for _ in range(2)]
        return Unary(op, sets[0], kind) if op == "[]" else Binary(op, sets[0], sets[1], kind)
    if op in ("~", "^-1", "?", "+", "r*"):
        return Unary(op.removeprefix("r"), other(), kind)
    return Binary(op, other(), other(), kind)


def test_a_normal_form_means_the_same() -> None:
    choose = random.Random(24)
    for _ in range(400):
        expr = expression(choose, 4, Kind.RELATION)
        relation = lambda: frozenset(choose.sample(sorted(EVERY), 3))  # noqa: E731
        bases: dict[str, Pairs] = {name: relation() for name in ("rf", "co")}
        bases |= {"id": SAME, "W": frozenset({(0, 0), (1, 1)}), "R": frozenset({(1, 1), (2, 2)})}
        bases["si"] = SAME | {(0, 2), (2, 0)}
        form = NormalForms(()).form(expr)
        if "'large'" not in repr(form):
            assert of_form(form, bases) == meaning(expr, bases), expr


def model(text: str) -> Model:
    return parse_model(Source("m", f'"M"\n{text}\n'))


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("acyclic po | rf as a", "acyclic rf | po as a", True),
        ("acyclic po | rf as a", "let b = rf acyclic b | po as a", True),
        ("let b = rf ; co let c = b | po acyclic c as a", "let c = po | rf ; co acyclic c as a", True),
        ("let c = rf ; (co ; rf)* acyclic c as a", "let rec c = rf | c ; co ; rf acyclic c as a", True),
        ("let c = (rf ; co)* ; rf acyclic c as a", "let rec c = rf | rf ; co ; c acyclic c as a", True),
        ("acyclic po | rf as a", "acyclic po as a", False),
        ("acyclic po as a", "irreflexive po as a", False),
        ("acyclic po as a", "acyclic po as a empty rf as b", False),
        ("let c = rf ; (co ; rf)* acyclic c as a", "let rec c = rf | c ; c acyclic c as a", False),
        ("let rec c = rf | c & po ; c acyclic c as a", "let rec c = rf | po & c ; c acyclic c as a", True),
        ("let b = rf let c = co acyclic b ; c as a", "let b = co let c = rf acyclic b ; c as a", False),
    ],
)
def test_what_is_proved(first: str, second: str, same: bool) -> None:
    assert identical((model(first), model(second)), ()) is same
    assert identical((model(second), model(first)), ()) is same
