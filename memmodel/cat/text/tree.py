"""A cat text as written: names not yet looked up, kinds not yet known, functions not yet expanded.

In: nothing. Out: the nodes between `cat.parser` and `cat.resolve`. Unlike `cat.syntax` they never leave this package.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.source import Span

# ---- expressions -----------------------------------------------------------------------------------------------------


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
    """`f(x, y)` has two arguments, `f x` one; `f x y` applies the application of f to x."""

    head: Term
    arguments: tuple[Term, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Local:
    """`let bindings in body`, perhaps `let rec`."""

    bindings: tuple[Binding, ...]
    body: Term
    recursive: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Tag:
    """`'name`."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Tuple:
    """`(a, b)`, or `()`."""

    items: tuple[Term, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Collection:
    """`{a, b}`: a set whose elements are listed."""

    items: tuple[Term, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Lambda:
    """`fun parameters -> body`."""

    parameters: tuple[str, ...]
    body: Term
    span: Span


@dataclass(frozen=True, slots=True)
class Try:
    """`try first with second`."""

    first: Term
    second: Term
    span: Span


@dataclass(frozen=True, slots=True)
class VariantIs:
    """`"name"` as a condition: true if this variant of the model is asked for."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Logical:
    """op is one of not && || between conditions on variants."""

    op: str
    operands: tuple[Condition, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Comparison:
    """op is one of = subset in."""

    op: str
    left: Term
    right: Term
    span: Span


Condition = VariantIs | Logical | Comparison


@dataclass(frozen=True, slots=True)
class Conditional:
    """`if condition then first else second`."""

    condition: Condition
    first: Term
    second: Term
    span: Span


@dataclass(frozen=True, slots=True)
class MatchTag:
    """`match subject with || 'a -> … || _ -> …`; a clause without a tag is the default."""

    subject: Term
    clauses: tuple[tuple[str | None, Term], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class MatchSet:
    """`match subject with || {} -> empty || element ++ rest -> other`.

    `before`: of `before | element ++ rest`, the elements on the other side; None if not asked for.
    """

    subject: Term
    empty: Term
    element: str
    rest: str
    other: Term
    before: str | None
    span: Span


Term = (
    Ref
    | Nothing
    | Infix
    | Affix
    | Application
    | Local
    | Tag
    | Tuple
    | Collection
    | Lambda
    | Try
    | Conditional
    | MatchTag
    | MatchSet
)


@dataclass(frozen=True, slots=True)
class Binding:
    """One `name = body`, or `name(parameters) = body`; `parameters` None when it is not a function.

    `pattern`: the names of `(a, b) = body`, None when there is one name only.
    """

    name: str
    parameters: tuple[str, ...] | None
    body: Term
    span: Span
    pattern: tuple[str, ...] | None = None


# ---- statements ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Let:
    """`override`: its bindings take the place of those of the same names in the files that this one includes.

    `when`: a check that stands after a `let rec`.
    """

    bindings: tuple[Binding, ...]
    recursive: bool
    doc: str
    override: bool = False
    when: Test | None = None


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


@dataclass(frozen=True, slots=True)
class With:
    """`with name from body`: some element of a set."""

    name: str
    body: Term
    span: Span


@dataclass(frozen=True, slots=True)
class Procedure:
    """`recursive` is of no importance: a procedure that calls itself ends nowhere."""

    name: str
    parameters: tuple[str, ...]
    statements: tuple[Statement, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class CallStatement:
    """`call procedure arguments as name`."""

    procedure: Ref
    arguments: tuple[Term, ...]
    name: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Forall:
    name: str
    over: Term
    statements: tuple[Statement, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Branch:
    """`if "variant" … else … end`."""

    condition: Condition
    first: tuple[Statement, ...]
    second: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class MatchStatement:
    """`match tag with || 'a -> statements … end`; a clause without a tag is the default."""

    subject: Term
    clauses: tuple[tuple[str | None, tuple[Statement, ...]], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Enum:
    """`enum name = 'a || 'b`."""

    name: str
    tags: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class OwnDependencies:
    """`catdep`: the file works dependencies out of register events."""

    span: Span


Statement = (
    Let
    | Test
    | Include
    | Show
    | Unshow
    | With
    | Procedure
    | CallStatement
    | Forall
    | Branch
    | MatchStatement
    | Enum
    | OwnDependencies
)


@dataclass(frozen=True, slots=True)
class Text:
    """A whole file: its title (empty if it has none), all words of its first line, and its statements in order."""

    title: str
    heading: str
    statements: tuple[Statement, ...]
