"""A cat model as read: expressions with their kind, definitions in order, checks with their names.

In: nothing. Out: frozen nodes. After `cat.load`, every name is resolved: `Name.ref` tells what it refers to, so that
an engine never looks names up by spelling. `as`-names of checks are the axiom names that reports use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from memmodel.base.kinds import Kind
from memmodel.base.oneline import count, shown
from memmodel.source import Source, Span, no_span


@dataclass(frozen=True, slots=True)
class Name:
    """A resolved name. `ref` is the index of a definition in `Model.definitions`, or None for a base name."""

    name: str
    kind: Kind
    ref: int | None = None
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Empty:
    """`0`."""

    kind: Kind
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Binary:
    """op is one of | & \\ ; * (`*` between two sets is the cartesian product)."""

    op: str
    left: Expr
    right: Expr
    kind: Kind
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Unary:
    """op is one of ~ (complement) ^-1 ? + * (closures) [] (identity on a set) domain range."""

    op: str
    operand: Expr
    kind: Kind
    span: Span = no_span()


Expr = Name | Empty | Binary | Unary


def operands_of(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside an expression, from left to right."""
    match expr:
        case Unary():
            return (expr.operand,)
        case Binary():
            return expr.left, expr.right
    return ()


def rebuilt(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """An expression with each of its operands changed."""
    match expr:
        case Unary():
            return replace(expr, operand=change(expr.operand))
        case Binary():
            return replace(expr, left=change(expr.left), right=change(expr.right))
    return expr


@dataclass(frozen=True, slots=True)
class Definition:
    """One name of a `let`. Functions are expanded at their calls and leave no definition.

    `group`: definitions of one `let rec … and …` share a number and are a simultaneous least fixpoint; None otherwise.
    `order`: if set, the name stands for a strict total order on the set `body`, which each execution chooses. The model
    forbids every choice that does not contain the relation `order`.
    """

    name: str
    kind: Kind
    body: Expr
    group: int | None = None
    doc: str = ""
    span: Span = no_span()
    order: Expr | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """`acyclic|irreflexive|empty body as name`, perhaps negated (`~`), perhaps a `flag`, which forbids nothing."""

    name: str
    kind: str  # "acyclic" | "irreflexive" | "empty"
    body: Expr
    negated: bool = False
    flag: bool = False
    doc: str = ""
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning to the author of a model: a construct whose meaning may differ from the intended one."""

    message: str
    span: Span | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Model:
    """A loaded model. `definitions` in order of evaluation: a body refers only to earlier ones, or to its own group."""

    name: str
    title: str
    definitions: tuple[Definition, ...]
    checks: tuple[Check, ...]
    shown: tuple[str, ...] = ()
    sources: tuple[Source, ...] = field(default=(), compare=False, repr=False)
    notices: tuple[Notice, ...] = field(default=(), compare=False, repr=False)

    def __repr__(self) -> str:
        checks = f"{count(len(self.axioms), 'axiom')}, {count(len(self.flags), 'flag')}"
        return shown("Model", f"{self.name}: {self.title}" if self.title else self.name, checks)

    @property
    def axioms(self) -> tuple[Check, ...]:
        """The checks that forbid executions."""
        return tuple(check for check in self.checks if not check.flag)

    @property
    def flags(self) -> tuple[Check, ...]:
        """The checks that only report."""
        return tuple(check for check in self.checks if check.flag)

    def without(self, name: str) -> Model:
        """The model without the check of that name. Raises KeyError if it has no such check."""
        if all(check.name != name for check in self.checks):
            raise KeyError(name)
        kept = tuple(check for check in self.checks if check.name != name)
        return replace(self, name=f"{self.name} without {name}", checks=kept)


NODES = ("Name", "Empty", "Binary", "Unary", "Definition", "Check", "Notice", "Model")
"""The classes that a model is made of."""
