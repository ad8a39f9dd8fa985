"""Functions that are not written in cat: herd's primitives.

In: the name of a primitive and its arguments. Out: `Value`. What would look at single events, which are not known when
a model loads, is empty where its argument is and refused otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memmodel.base.kinds import Kind
from memmodel.cat.interpret.values import Opaque, Orders, TagValue, Typed, Value, describe, elements, set_of, unary
from memmodel.cat.syntax import Binary, Empty, Name
from memmodel.cat.text import tree
from memmodel.errors import InputError
from memmodel.source import Span

if TYPE_CHECKING:
    from memmodel.cat.interpret.expand import Expander

PRIMITIVES = {
    "domain": 1,
    "range": 1,
    "linearisations": 2,
    "partition": 1,
    "classes-loc": 1,
    "tag2events": 1,
    "tag2instrs": 1,
    "tag2fenced": 1,
    "tag2scope": 1,
    "tag2level": 1,
    "as_transitive": 1,
    "classes": 1,
    "lift": 2,
    "delift": 1,
    "fulldelift": 1,
    "deliftinter": 2,
    "bisimulation": 2,
    "different-values": 1,
    "same-oa": 1,
    "oa-changes": 2,
    "at-least-one-writable": 2,
    "loc2events": 1,
    "fail": 1,
    "new": 0,
    "newSet": 0,
    "newRelation": 0,
}
"""How many arguments each primitive takes."""

_BOUNDED = {"lift": 1, "bisimulation": 1}
"""The argument that the result is not larger than; of the others it is the first."""

_OPAQUE = {"classes": "a set of sets of events", "lift": "a relation between sets of events"}

_SCOPES = {
    "scta": ("cta", "wg", "block", "work-group", "workgroup"),
    "scluster": ("cluster",),
    "sgpu": ("gpu", "gl", "dev", "device", "agent", "qf"),
    "sys": ("sys", "system", "all", "all-devices", "all_svm_devices", "top"),
}
"""Scopes by what other models call them."""


class Static(InputError):
    """Something would have to be known of an execution when the model is loaded."""


class Sample:
    """What `partition` and `linearisations` stand for while a set of relations is looked at.

    There are `locations` locations, and `orders` orders wherever orders are asked for: names without meaning, so that
    what a model makes of them shows what it makes of any. `partitioned`: the set whose events were parted by location.
    `asked`: what orders were asked for: on a class of that set (a number), or on a set.
    """

    def __init__(self, locations: int, orders: int) -> None:
        self.locations = locations
        self.orders = orders
        self.partitioned: Typed | None = None
        self.extended: Typed | None = None
        self.asked: list[tuple[Typed, Typed]] = []

    def classes(self, over: Typed, span: Span) -> Value:
        if self.partitioned not in (None, over):
            raise Static("two sets are parted by location", span)
        self.partitioned = over
        return set_of((Typed(Name(f"class {n}", Kind.SET)) for n in range(self.locations)), span)

    def linearisations(self, over: Typed, extends: Typed, span: Span) -> Value:
        name = over.expr.name if isinstance(over.expr, Name) else ""
        if name.startswith("class "):
            if self.extended not in (None, extends):
                raise Static("the orders of different locations extend different relations", span)
            self.extended = extends
            number = name.removeprefix("class ")
        else:
            if (over, extends) not in self.asked:
                self.asked.append((over, extends))
            number = f"set {self.asked.index((over, extends))}"
        return set_of((Typed(Name(f"{number}/{n}", Kind.RELATION)) for n in range(self.orders)), span)


def primitive(expander: Expander, name: str, call: tree.Application, arguments: tuple[Value, ...]) -> Value:
    """The value of a call of a primitive."""
    arity, span = PRIMITIVES[name], call.span
    if len(arguments) != arity:
        wanted = f"{name}({', '.join('rs'[:arity])})"
        count = f"{arity} argument{'s' * (arity != 1)}"
        raise InputError(f"`{name}` takes {count}, not {len(arguments)}", span, wanted)
    if name in ("domain", "range"):
        return unary(name, _of_kind(expander, name, arguments, call, Kind.RELATION), span)
    if name == "as_transitive":
        return arguments[0]
    if expander.trial_depth:
        return Typed(Empty(Kind.EITHER, span))
    if name == "linearisations":
        return _linearisations(expander, arguments, call)
    if name in ("partition", "classes-loc"):
        over = _of_kind(expander, name, arguments, call, Kind.SET)
        if expander.void(over):
            return Typed(Empty(Kind.EITHER, span))
        return expander.sample.classes(over, span) if expander.sample else Opaque(_OPAQUE["classes"])
    if name.startswith("tag2"):
        return _of_tags(expander, name, arguments[0], span)
    if name == "fail":
        raise InputError("the model gives up here", span)
    if arity and expander.void(arguments[_BOUNDED.get(name, 0)]):
        return Typed(Empty(Kind.EITHER, span))
    if name in _OPAQUE and expander.sample is None:
        return Opaque(_OPAQUE[name])
    reason = "it looks at single events, which are not known when a model loads"
    if not arity:
        reason = "a relation that a model leaves open is a base relation, `memmodel names` lists them"
    raise Static(f"`{name}` is not supported", call.head.span, reason)


def _of_kind(
    expander: Expander, name: str, arguments: tuple[Value, ...], call: tree.Application, kind: Kind, at: int = 0
) -> Typed:
    """An argument that has to be a set or a relation."""
    argument, term = arguments[at], call.arguments[min(at, len(call.arguments) - 1)]
    if not isinstance(argument, Typed):
        raise Static(f"`{name}` takes a {kind.value}; this is {describe(argument)}", term.span)
    return expander.want(argument, kind, f"`{name}` takes a {kind.value}", term)


def _linearisations(expander: Expander, arguments: tuple[Value, ...], call: tree.Application) -> Value:
    over = _of_kind(expander, "linearisations", arguments, call, Kind.SET)
    extends = _of_kind(expander, "linearisations", arguments, call, Kind.RELATION, 1)
    while isinstance(union := over.expr, Binary) and union.op == "|":
        sides = [side for side in (union.left, union.right) if not expander.void(over._replace(expr=side))]
        if len(sides) != 1:
            break
        over = over._replace(expr=sides[0])
    if expander.void(over):
        return set_of((Typed(Empty(Kind.RELATION, call.span)),), call.span)
    return expander.sample.linearisations(over, extends, call.span) if expander.sample else Orders(over, extends)


def _of_tags(expander: Expander, name: str, argument: Value, span: Span) -> Value:
    """`tag2events` and its like: the base name that a tag stands for."""
    tags = elements(argument)
    if tags is None or not all(isinstance(tag, TagValue) for tag in tags):
        raise Static(f"`{name}` takes a tag; this is {describe(argument)}", span)
    union: Value | None = None
    for tag in tags:
        assert isinstance(tag, TagValue)
        value = _of_tag(expander, name, tag.name, span)
        mark = tree.Nothing(span)
        union = value if union is None else expander.infix(tree.Infix("|", mark, mark, span, span), union, value)
    return union or Typed(Empty(Kind.EITHER, span))


def _of_tag(expander: Expander, name: str, tag: str, span: Span) -> Typed:
    if name in ("tag2scope", "tag2level"):
        every = Binary("*", Name("_", Kind.SET), Name("_", Kind.SET), Kind.RELATION, span)
        for relation, spellings in _SCOPES.items():
            if tag.lower() in spellings:
                return Typed(every if relation == "sys" else Name(relation, Kind.RELATION, None, span), 2, 3)
        expander.absent.setdefault(f"'{tag}", span)
        return Typed(Empty(Kind.RELATION, span))
    events = expander.term(tree.Ref(tag[:1].upper() + tag[1:], span), expander.scope)
    if name != "tag2fenced":
        return events
    po = tree.Ref("po", span)
    among = tree.Affix("[]", tree.Ref(tag[:1].upper() + tag[1:], span), span)
    rest = tree.Infix(";", among, po, span, span)
    return expander.term(tree.Infix(";", po, rest, span, span), expander.scope)
