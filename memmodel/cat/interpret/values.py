"""What a term of a cat text can stand for while a model is being loaded.

In: nothing. Out: values. A set or relation over the events of an execution is `Typed`; everything else (functions,
tuples, tags, sets of these) is known and used up when a model loads, so that no engine ever meets it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from memmodel.base.kinds import Kind
from memmodel.cat.syntax import Binary, Definition, Empty, Expr, Name, Unary, rebuilt
from memmodel.cat.text import tree
from memmodel.source import Span


class Typed(NamedTuple):
    """A resolved expression and its measures."""

    expr: Expr
    height: int = 1
    size: int = 1


@dataclass(frozen=True, slots=True)
class NamedValue:
    """What a name stands for: a base name (`ref` None) or a definition."""

    kind: Kind
    ref: int | None = None
    height: int = 1
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Macro:
    """A name that is replaced by an expression: a parameter, a local `let`, or a definition that is just `0`."""

    typed: Typed
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FunctionValue:
    """A `let` with parameters or a `fun`, and the names that were known there.

    `steps`: it works on values that are known when a model loads, so that it cannot be tried on unknown ones.
    """

    name: str
    parameters: tuple[str, ...]
    body: tree.Term
    scope: Scope
    span: Span
    steps: bool = False


@dataclass(frozen=True, slots=True)
class Primitive:
    """A function that is not written in cat."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Routine:
    """A `procedure`, and the names that were known there."""

    procedure: tree.Procedure
    scope: Scope


@dataclass(frozen=True, slots=True)
class TagValue:
    """`'name` of an `enum`."""

    name: str
    enum: str


@dataclass(frozen=True, slots=True)
class TupleValue:
    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class SetValue:
    """A set of sets, relations, tags or tuples, none of them twice; never empty (see `set_of`)."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Orders:
    """`linearisations(over, extends)`: the strict total orders on a set of events that contain a relation."""

    over: Typed
    extends: Typed


@dataclass(frozen=True, slots=True)
class Opaque:
    """What no one can look into before there is an execution, such as the classes of an equivalence on events."""

    what: str


NO_SPAN: Span = None  # type: ignore[assignment]
"""The span of an expression that no text has."""

SHOWN = 40
"""At most this many characters of a term are repeated in a message."""

Value = Typed | FunctionValue | Primitive | Routine | TagValue | TupleValue | SetValue | Orders | Opaque
Entry = NamedValue | Macro | FunctionValue | Primitive | Routine | TagValue | TupleValue | SetValue | Orders | Opaque
Scope = Mapping[str, Entry]


def entry(value: Value, span: Span | None = None) -> Entry:
    """A value as what a name stands for."""
    return Macro(value, span) if isinstance(value, Typed) else value


def set_of(values: Iterable[Value], span: Span) -> Value:
    """The set of some values; the empty one is `{}`, of any kind."""
    members: list[Value] = []
    for value in values:
        if value not in members:
            members.append(value)
    return SetValue(tuple(members)) if members else Typed(Empty(Kind.EITHER, span))


def elements(value: Value) -> tuple[Value, ...] | None:
    """The elements of a set that is known when a model loads; None if it is no such set."""
    match value:
        case SetValue(items):
            return items
        case Typed(Empty(Kind.EITHER)):
            return ()
        case TagValue():
            return (value,)
        case _:
            return None


def describe(value: Value | Entry) -> str:
    """What a value is, in the words of a message."""
    match value:
        case Typed(expr) | Macro(Typed(expr)):
            return f"a {expr.kind.value}"
        case NamedValue(kind):
            return f"a {kind.value}"
        case FunctionValue() | Primitive():
            return "a function"
        case Routine():
            return "a procedure"
        case TagValue():
            return "a tag"
        case TupleValue(items):
            return f"a tuple of {len(items)}"
        case SetValue():
            return "a set of " + ("tags" if isinstance(value.items[0], TagValue) else "sets or relations")
        case Orders():
            return "a set of orders"
        case Opaque(what):
            return what


def is_void(expr: Expr, definitions: list[Definition]) -> bool:
    """True if a set or relation is empty in every execution, as far as its definition tells."""
    known: dict[int, bool] = {}

    def follow(ref: int) -> bool:
        if ref not in known:
            group = definitions[ref].group
            members = [ref]
            if group is not None:
                members = [number for number, definition in enumerate(definitions) if definition.group == group]
            known.update(dict.fromkeys(members, True))  # a least fixpoint begins empty
            while group is not None and not all(void(definitions[n].body) or not known[n] for n in members):
                known.update({n: known[n] and void(definitions[n].body) for n in members})
            known[ref] = known[ref] and void(definitions[ref].body)
        return known[ref]

    def void(expr: Expr) -> bool:
        match expr:
            case Empty():
                return True
            case Name(name, ref=None):
                return name == "emptyset"
            case Name(ref=int(ref)):
                return follow(ref)
            case Unary(op="~" | "?" | "*"):
                return False
            case Unary():
                return void(expr.operand)
            case Binary(op="|"):
                return void(expr.left) and void(expr.right)
            case Binary(op="\\"):
                return void(expr.left) or expr.left == expr.right
            case Binary():
                return void(expr.left) or void(expr.right)
        return False

    return void(expr)


def steps(term: object, parameters: Iterable[str]) -> bool:
    """True if a term works on more than sets and relations, or calls a parameter."""
    match term:
        case tree.Lambda() | tree.Try() | tree.Conditional() | tree.MatchTag() | tree.MatchSet():
            return True
        case tree.Tag() | tree.Tuple() | tree.Collection() | tree.Infix(op="++") | tree.Local(recursive=True):
            return True
        case tree.Application(head=tree.Ref(name)):
            return name in parameters or any(steps(argument, parameters) for argument in term.arguments)
        case tree.Application():
            return True
    return any(steps(part, parameters) for part in parts(term))


def parts(term: object) -> Iterable[object]:
    """The terms and bindings directly inside a term or binding."""
    for field in getattr(term, "__dataclass_fields__", ()):
        part = getattr(term, field)
        if isinstance(part, tuple):
            yield from (element for element in part if hasattr(element, "__dataclass_fields__"))
        elif hasattr(part, "__dataclass_fields__") and not isinstance(part, Span):
            yield part


def mentioned(term: object) -> tuple[list[tree.Ref], set[str]]:
    """The names that a term uses (none of those that it tries), and those that it binds somewhere."""
    used: list[tree.Ref] = []
    bound: set[str] = set()
    todo: list[object] = [term]
    while todo:
        inner = todo.pop()
        match inner:
            case tree.Ref():
                used.append(inner)
            case tree.Try(second=second):
                todo.append(second)
                continue
            case tree.Binding(name, parameters, pattern=pattern):
                bound.update((name, *(parameters or ()), *(pattern or ())))
            case tree.Lambda(parameters):
                bound.update(parameters)
            case tree.MatchSet(element=element, rest=rest, before=before):
                bound.update((element, rest, *([before] if before else [])))
        todo.extend(parts(inner))
    return used, bound


def binary(op: str, left: Typed, right: Typed, span: Span = NO_SPAN) -> Typed:
    """Two expressions with an operator between them."""
    kind = Kind.RELATION if op in ("*", ";") else left.expr.kind
    expr = Binary(op, left.expr, right.expr, kind, span)
    return Typed(expr, max(left.height, right.height) + 1, left.size + right.size + 1)


def unary(op: str, inner: Typed, span: Span = NO_SPAN) -> Typed:
    """An expression with an operator before or after it, or around it as `[]`, `domain` and `range`."""
    kind = Kind.SET if op in ("domain", "range") else inner.expr.kind if op == "~" else Kind.RELATION
    return Typed(Unary(op, inner.expr, kind, span), inner.height + 1, inner.size + 1)


def as_kind(expr: Expr, kind: Kind) -> Expr:
    """An expression of either kind, all of it, as one of that kind."""
    return replace(rebuilt(expr, lambda operand: as_kind(operand, kind)), kind=kind)


def shortened(span: Span) -> str:
    text = " ".join(span.text.split())
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
