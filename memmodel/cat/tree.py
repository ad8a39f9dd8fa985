"""A cat text as written: names not yet looked up, kinds not yet known, functions not yet expanded.

In: nothing. Out: the nodes between `cat.parser` and `cat.resolve`. Unlike `cat.syntax` they never leave this package.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.source import Span


@dataclass(frozen=True, slots=True)
class Ref:
    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Nothing:
    """`0` or `{}`."""

    span: Span


@dataclass(frozen=True, slots=True)
class Infix:
    """`mark` is the place of the operator itself."""

    op: str
    left: Term
    right: Term
    span: Span
    mark: Span


@dataclass(frozen=True, slots=True)
class Affix:
    """A prefix or postfix operator, or `[]`."""

    op: str
    operand: Term
    span: Span


@dataclass(frozen=True, slots=True)
class Application:
    head: Ref
    arguments: tuple[Term, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Local:
    """`let bindings in body`."""

    bindings: tuple[Binding, ...]
    body: Term
    span: Span


Term = Ref | Nothing | Infix | Affix | Application | Local


@dataclass(frozen=True, slots=True)
class Binding:
    """One `name = body`, or `name(parameters) = body`; `parameters` None when it is no function."""

    name: str
    parameters: tuple[str, ...] | None
    body: Term
    span: Span


@dataclass(frozen=True, slots=True)
class Let:
    """`override`: its bindings take the place of those of the same names in the files that this one includes."""

    bindings: tuple[Binding, ...]
    recursive: bool
    doc: str
    override: bool = False


@dataclass(frozen=True, slots=True)
class Test:
    """A check; `name` None when it has no `as`."""

    test: str
    body: Term
    name: str | None
    negated: bool
    flag: bool
    doc: str
    span: Span


@dataclass(frozen=True, slots=True)
class Include:
    path: str
    span: Span


@dataclass(frozen=True, slots=True)
class Show:
    """`show body as name`; `name` is the spelling of `body` when there is no `as`."""

    body: Term
    name: str
    renamed: bool


@dataclass(frozen=True, slots=True)
class Unshow:
    name: str
    span: Span


Statement = Let | Test | Include | Show | Unshow


@dataclass(frozen=True, slots=True)
class Text:
    """A whole file: its title (empty if it has none) and its statements in order."""

    title: str
    statements: tuple[Statement, ...]
