"""`with name from set`: an execution is allowed if some element of the set makes every check after it hold.

In: the set, as a term. Out: `Chosen`. Settled here: which sets these may be.

- A set that is listed and has one element: the name is that element. With none, no execution is allowed.
- `linearisations(S, r)`, or a set that is made of such orders one by one, as `map (fun o -> o | r) (…)` does.
- All unions of one `linearisations(class, r)` for each class of `partition S`, as `cross(co_locs(r, partition S))`
  builds them: a total order for each location.

How a model builds such a set does not matter. The set is built for a few symbolic locations and orders. What the model
builds from these it builds from all others, since cat can neither compare relations nor look into them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product

from memmodel.base.kinds import Kind
from memmodel.cat.interpret.expand import Expander
from memmodel.cat.interpret.values import Orders, Typed, Value, describe, elements
from memmodel.cat.primitives import Sample, Static
from memmodel.cat.syntax import Binary, Empty, Expr, Name, operands_of, rebuilt
from memmodel.cat.text import tree

_SAMPLES = ((0, 1), (1, 1), (2, 1), (1, 2), (2, 2), (3, 2))
"""Locations, and orders of each, for which a set is built."""

_HINT = "one relation, linearisations(S, r), or the orders of all locations that cross(co_locs(r, partition S)) gives"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The meaning of a name that `with` chooses."""

    value: Typed | None
    """The relation, in terms of the names `order_name`; None if the set is empty."""
    orders: tuple[tuple[Typed, Typed], ...] = ()
    """The total orders that `value` is made of: for each, the set that it orders and the relation that it contains."""
    located: tuple[Typed, Typed] | None = None
    """Set if the choice is one total order for each location: the set whose events are ordered, and the relation that
    the orders contain."""


def order_name(number: int) -> str:
    """The name of an order in `Chosen.value`."""
    return f"set {number}/0"


def choose(expander: Expander, term: tree.Term) -> Chosen:
    """What `with` chooses from a set. Raises InputError for a set that it cannot choose from."""
    try:
        value = expander.value(term, expander.scope)
    except Static as error:
        chosen = _sampled(expander, term)
        if chosen is None:
            raise Static(error.message, error.span, error.hint) from error
        return chosen
    if isinstance(value, Orders):
        return Chosen(Typed(Name(order_name(0), Kind.RELATION)), ((value.over, value.extends),))
    members = elements(value)
    if members is None:
        raise Static(f"`with` chooses from a set of relations; this is {describe(value)}", term.span, _HINT)
    if not members:
        return Chosen(None)
    if len(members) > 1:
        raise Static(f"`with` would have to choose among {len(members)} given relations", term.span, _HINT)
    return Chosen(_relation(expander, term, members[0]))


def _relation(expander: Expander, term: tree.Term, member: Value) -> Typed:
    if not isinstance(member, Typed):
        raise Static(f"`with` chooses a relation; the set has {describe(member)}", term.span, _HINT)
    return expander.want(member, Kind.RELATION, "`with` chooses a relation", term)


# ---- sets that have to be built to be understood ---------------------------------------------------------------------


def _sampled(expander: Expander, term: tree.Term) -> Chosen | None:
    """The choice from a set whose elements are made of total orders; None for any other set."""
    expander.depth = 0
    samples = [Sample(*size) for size in _SAMPLES]
    built: list[list[Expr]] = []
    for sample in samples:
        expander.sample, before = sample, len(expander.definitions)
        try:
            with expander.forgetting():
                members = elements(expander.value(term, expander.scope))
                clean = len(expander.definitions) == before
        except Static:
            return None
        finally:
            expander.sample = None
        if members is None or not clean or not all(isinstance(member, Typed) for member in members):
            return None
        built.append([_relation(expander, term, member).expr for member in members])
    last = samples[-1]
    if last.partitioned is not None and last.extended is not None:
        return _of_locations(samples, built, last.partitioned, last.extended)
    if last.partitioned is None and last.asked:
        return _of_orders(samples, built)
    return None


def _of_locations(samples: list[Sample], built: list[list[Expr]], over: Typed, extends: Typed) -> Chosen | None:
    """The choice of one order for each location, if every sample gave every union of such orders."""
    for sample, members in zip(samples, built, strict=True):
        if sample.asked or sample.partitioned != over:
            return None
        expected = {
            frozenset(f"{location}/{order}" for location, order in enumerate(orders))
            for orders in product(range(sample.orders), repeat=sample.locations)
        }
        if len(members) != len(expected) or {_united(expr) for expr in members} != expected:
            return None
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


def _of_orders(samples: list[Sample], built: list[list[Expr]]) -> Chosen | None:
    """The choice of some orders, if every sample gave one relation for each choice, made of all orders alike."""
    single = next(members for sample, members in zip(samples, built, strict=True) if sample.orders == 1)
    asked = samples[-1].asked
    if len(single) != 1 or any(sample.asked != asked for sample in samples):
        return None
    for sample, members in zip(samples, built, strict=True):
        expected = [
            _with_orders(single[0], dict(enumerate(orders)))
            for orders in product(range(sample.orders), repeat=len(asked))
        ]
        if len(members) != len(expected) or set(members) != set(expected):
            return None
    return Chosen(Typed(single[0], _height(single[0]), _size(single[0])), tuple(asked))


def _with_orders(expr: Expr, orders: Mapping[int, int]) -> Expr:
    """The expression with the first order of each set replaced by the order of that number."""
    names = {order_name(number): f"set {number}/{order}" for number, order in orders.items()}
    return substituted(expr, lambda name: replace(name, name=names.get(name.name, name.name)))


def substituted(expr: Expr, change: Callable[[Name], Expr]) -> Expr:
    """An expression with its names changed."""
    return change(expr) if isinstance(expr, Name) else rebuilt(expr, lambda operand: substituted(operand, change))


def _height(expr: Expr) -> int:
    return 1 + max(map(_height, operands_of(expr)), default=0)


def _size(expr: Expr) -> int:
    return 1 + sum(map(_size, operands_of(expr)))
