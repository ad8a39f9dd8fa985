"""`with name from set`: an execution is allowed if some element of the set makes every check after it hold.

In: the set, as a term. Out: `Chosen`. Settled here: which sets these may be.

- A set that is listed and has one element: the name is that element. With none, no execution is allowed.
- `linearisations(S, r)`, or a set that is made of such orders one by one, as `map (fun o -> o | r) (…)` does.
- All unions of one `linearisations(class, r)` for each class of `partition S`, as `cross(co_locs(r, partition S))`
  builds them: a total order for each location.

How a model builds such a set is not looked at. It is built for a few locations and orders that have names but no
meaning; what it makes of these it makes of all, since cat can neither compare nor look into relations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product

from memmodel.base.kinds import Kind
from memmodel.cat.interpret.expand import Expander
from memmodel.cat.interpret.values import Orders, Typed, Value, describe, elements
from memmodel.cat.primitives import Sample, Static
from memmodel.cat.syntax import Binary, Empty, Expr, Name, Unary
from memmodel.cat.text import tree

_SAMPLES = ((0, 1), (1, 1), (2, 1), (1, 2), (2, 2), (3, 2))
"""Locations, and orders of each, for which a set is built."""

_HINT = "one relation, linearisations(S, r), or the orders of all locations that cross(co_locs(r, partition S)) gives"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a name is chosen to be.

    `value`: None if there is nothing to choose from. `orders`: the total orders that it is made of, each with its set
    and the relation that it contains; in `value` they have the names `order_name`. `located`: it is a total order on
    the events of this set that access one location, for each location, and contains this relation.
    """

    value: Typed | None
    orders: tuple[tuple[Typed, Typed], ...] = ()
    located: tuple[Typed, Typed] | None = None


def order_name(number: int) -> str:
    """The name of an order in `Chosen.value`."""
    return f"set {number}/0"


def choose(expander: Expander, given: tree.With) -> Chosen:
    """What `with` chooses. Raises InputError for a set that it cannot choose from."""
    try:
        found = expander.value(given.body, expander.scope)
    except Static as error:
        chosen = _sampled(expander, given)
        if chosen is None:
            raise Static(error.message, error.span, error.hint) from error
        return chosen
    if isinstance(found, Orders):
        return Chosen(Typed(Name(order_name(0), Kind.RELATION)), ((found.over, found.extends),))
    items = elements(found)
    if items is None:
        raise Static(f"`with` chooses from a set of relations; this is {describe(found)}", given.body.span, _HINT)
    if not items:
        return Chosen(None)
    if len(items) > 1:
        raise Static(f"`with` would have to choose among {len(items)} given relations", given.body.span, _HINT)
    return Chosen(_relation(expander, given, items[0]))


def _relation(expander: Expander, given: tree.With, item: Value) -> Typed:
    if not isinstance(item, Typed):
        raise Static(f"`with` chooses a relation; the set has {describe(item)}", given.body.span, _HINT)
    return expander.want(item, Kind.RELATION, "`with` chooses a relation", given.body)


# ---- sets that have to be built to be understood ---------------------------------------------------------------------


def _sampled(expander: Expander, given: tree.With) -> Chosen | None:
    """What a set chooses that is made of orders; None if it is no such set."""
    depth = expander.depth = 0
    built = [(Sample(*size), _SAMPLES[n]) for n, size in enumerate(_SAMPLES)]
    values = []
    for sample, _ in built:
        expander.sample, before = sample, len(expander.definitions)
        try:
            items = elements(expander.value(given.body, expander.scope))
        except Static:
            return None
        finally:
            expander.sample, expander.depth = None, depth
            clean = len(expander.definitions) == before
            del expander.definitions[before:]
        if items is None or not clean or not all(isinstance(item, Typed) for item in items):
            return None
        values.append([_relation(expander, given, item).expr for item in items])
    last = built[-1][0]
    if last.partitioned is not None and last.extended is not None:
        return _of_locations(built, values)
    if last.partitioned is None and last.asked:
        return _of_orders(built, values)
    return None


def _of_locations(built: list[tuple[Sample, tuple[int, int]]], values: list[list[Expr]]) -> Chosen | None:
    """Every union of one order for each location?"""
    for (sample, (locations, orders)), found in zip(built, values, strict=True):
        if sample.asked or sample.partitioned != built[-1][0].partitioned:
            return None
        expected = {
            frozenset(f"{n}/{chosen}" for n, chosen in enumerate(one))
            for one in product(range(orders), repeat=locations)
        }
        if len(found) != len(expected) or {_united(expr) for expr in found} != expected:
            return None
    over, extends = built[-1][0].partitioned, built[-1][0].extended
    assert over is not None and extends is not None
    return Chosen(Typed(Empty(Kind.RELATION)), located=(over, extends))


def _united(expr: Expr) -> frozenset[str] | None:
    """The names that a union is made of."""
    match expr:
        case Empty():
            return frozenset()
        case Name(name):
            return frozenset((name,))
        case Binary("|", left, right):
            first, second = _united(left), _united(right)
            return None if first is None or second is None else first | second
    return None


def _of_orders(built: list[tuple[Sample, tuple[int, int]]], values: list[list[Expr]]) -> Chosen | None:
    """One relation for each choice of orders, made of all of them alike?"""
    single = next(found for (_, (_, orders)), found in zip(built, values, strict=True) if orders == 1)
    asked = built[-1][0].asked
    if len(single) != 1 or any(sample.asked != asked for sample, _ in built):
        return None
    for (_, (_, orders)), found in zip(built, values, strict=True):
        expected = [
            substituted(single[0], lambda name, one=one: _renamed(name, one))  # type: ignore[misc]
            for one in product(range(orders), repeat=len(asked))
        ]
        if len(found) != len(expected) or set(found) != set(expected):
            return None
    return Chosen(Typed(single[0], _height(single[0]), _size(single[0])), tuple(asked))


def _renamed(name: Name, chosen: Iterable[int]) -> Expr:
    for number, one in enumerate(chosen):
        if name.name == order_name(number):
            return Name(f"set {number}/{one}", name.kind, None, name.span)
    return name


def substituted(expr: Expr, change: Callable[[Name], Expr]) -> Expr:
    """An expression with its names changed."""
    match expr:
        case Name():
            return change(expr)
        case Unary():
            return Unary(expr.op, substituted(expr.operand, change), expr.kind, expr.span)
        case Binary():
            left, right = substituted(expr.left, change), substituted(expr.right, change)
            return Binary(expr.op, left, right, expr.kind, expr.span)
        case _:
            return expr


def _height(expr: Expr) -> int:
    match expr:
        case Unary():
            return 1 + _height(expr.operand)
        case Binary():
            return 1 + max(_height(expr.left), _height(expr.right))
        case _:
            return 1


def _size(expr: Expr) -> int:
    match expr:
        case Unary():
            return 1 + _size(expr.operand)
        case Binary():
            return 1 + _size(expr.left) + _size(expr.right)
        case _:
            return 1
