"""A litmus test as read: what both layouts mean, with a span on everything that came from the file.

In: nothing. Out: the frozen types that `litmus.parse` builds, `litmus.printer` prints, and every later stage reads.
Instructions stay as spelled here (mnemonic and operands); `memmodel.isa` says what they do.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from memmodel.base.oneline import count, shown
from memmodel.base.words import WordList
from memmodel.ptx.operands import Operand
from memmodel.ptx.vocabulary import DataType, Place, Proxy, Space
from memmodel.source import Source, Span, no_span

# ---- threads -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Guard:
    """`@%p` or `@!%p` in front of an instruction."""

    register: str
    negated: bool = False
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction as spelled: `mnemonic` with its dots (`ld.acquire.gpu.u32`), operands in order."""

    mnemonic: str
    operands: tuple[Operand, ...] = ()
    guard: Guard | None = None
    span: Span = no_span()
    mnemonic_span: Span = no_span()

    @property
    def parts(self) -> tuple[str, ...]:
        """The mnemonic split at its dots: ("ld", "acquire", "gpu", "u32")."""
        return tuple(self.mnemonic.split("."))

    def span_of_part(self, part: int | None) -> Span | None:
        """Where a dotted part of the mnemonic stands (None: all of it)."""
        whole: Span | None = self.mnemonic_span or self.span
        if part is None or whole is None or whole.text != self.mnemonic:
            return whole
        start = whole.start + sum(len(text) + 1 for text in self.parts[:part])
        return whole.source.span(start, start + len(self.parts[part]))


@dataclass(frozen=True, slots=True)
class Label:
    """`name:` in a thread's body."""

    name: str
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread: its name as written (`P0`), its place, its body in order.

    `predicates`: the registers declared with `.reg .pred`.
    """

    name: str
    place: Place
    body: tuple[Instruction | Label, ...]
    predicates: frozenset[str] = frozenset()
    span: Span = no_span()


# ---- memory --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TensorView:
    """A tensor map: a variable seen as a tensor of `shape` (empty: one row of all elements) that is copied in boxes of
    `box` (empty: all of it); both count elements, innermost dimension first.
    """

    data: str
    box: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared location or array. `type` None in the column layout.

    `length` counts elements; `init` has the values of the first ones, the others are 0.

    A .shared variable has one instance in every CTA, as in PTX; `cta` restricts it to that one CTA.
    `alias_of` makes it another virtual address of that variable, accessed through `proxy`.
    `mbarrier`: each element is an mbarrier object that starts initialised for that many arrivals.
    `maps`: each element (128 bytes) is a tensor map that starts so.
    `multimem`: it is not a memory of its own but an address that points to these variables, each on its device.
    `allocates`: the .tensor variable that a `tcgen05.alloc` which leaves its address here allocates.
    """

    name: str
    space: Space = Space.GENERIC
    type: DataType | None = None
    init: tuple[int, ...] = ()
    length: int = 1
    cta: int | None = None
    alias_of: str | None = None
    proxy: Proxy = Proxy.GENERIC
    align: int | None = None
    array: bool = False
    mbarrier: int | None = None
    maps: tuple[TensorView, ...] = ()
    multimem: tuple[str, ...] = ()
    allocates: str | None = None
    span: Span = no_span()


def root_of(variables: Mapping[str, Variable], name: str) -> Variable:
    """The variable of that name, or the one that it is finally an alias of. The aliases must not form a circle."""
    variable = variables[name]
    while variable.alias_of is not None:
        variable = variables[variable.alias_of]
    return variable


@dataclass(frozen=True, slots=True)
class RegisterInit:
    """`P0:r0 = 3` or `P0:r0 = x` (an address) in the init block."""

    thread: str
    register: str
    value: int | str
    span: Span = no_span()


# ---- the question --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RegValue:
    """`P0:r0`: a register of a thread at the end."""

    thread: str
    register: str
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class LocValue:
    """`x` or `x[2]` or `x@cta1`: a location at the end; the value of some co-maximal write. `index` in elements.

    `thread`: `x@P1` is the instance of that thread's CTA, which the number of a CTA may not tell.
    `owner`: whose instance it is, where the number of the CTA does not tell; no test writes this.
    """

    name: str
    index: int = 0
    cta: int | None = None
    span: Span = no_span()
    owner: tuple[object, ...] | None = None
    thread: str | None = None


@dataclass(frozen=True, slots=True)
class Number:
    value: int
    span: Span = no_span()


Term = RegValue | LocValue | Number


@dataclass(frozen=True, slots=True)
class Compare:
    """`left op right` with op one of == != < <= > >= (values as signed integers)."""

    left: Term
    op: str
    right: Term
    span: Span = no_span()

    def true_of(self, left: int, right: int) -> bool:
        """True if the comparison holds of these values."""
        return _COMPARISONS[self.op](left, right)


_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class And:
    items: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    items: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    operand: Condition


@dataclass(frozen=True, slots=True)
class Always:
    """`true`: every execution that reaches the end."""


Condition = Compare | And | Or | Not | Always


def terms_of(condition: Condition) -> Iterator[Term]:
    """The terms of a condition, in order."""
    return (term for comparison in comparisons_of(condition) for term in (comparison.left, comparison.right))


def comparisons_of(condition: Condition) -> Iterator[Compare]:
    """The comparisons in a condition, in order."""
    pending = [condition]
    while pending:
        node = pending.pop()
        if isinstance(node, Compare):
            yield node
        elif isinstance(node, And | Or):
            pending.extend(reversed(node.items))
        elif isinstance(node, Not):
            pending.append(node.operand)


FINDINGS = ("race", "hang", "hazard", "undefined")
"""What a question or an Expect line can ask for beside final states."""


class Quantifier(WordList):
    """The question a file asks about its condition. Its spelling is the file's."""

    EXISTS = "exists"
    NOT_EXISTS = "~exists"
    FORALL = "forall"


@dataclass(frozen=True, slots=True)
class Expectation:
    """`Expect=model:word`: what the file says happens to its condition under that model."""

    model: str
    word: str
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Asked:
    """One more question of a file, after its first, with the expectations that stand above it."""

    quantifier: Quantifier
    condition: Condition
    shown: tuple[Term, ...] = ()
    finding: str | None = None
    expectations: tuple[Expectation, ...] = ()


class Layout(WordList):
    """How instructions are written: in the two layouts of litmus tests, or in a compiled module."""

    COLUMNS = "columns"
    BLOCKS = "blocks"
    MODULE = "module"


@dataclass(frozen=True, slots=True, repr=False)
class LitmusTest:
    """A whole test. `description` is its quoted sentences; `shown` its `locations` clause.

    `finding`: the question is not about final states but whether there is such a finding (`exists race`); the condition
    is then `true`. `more_questions`: further questions; those fields are about the first.
    """

    name: str
    description: tuple[str, ...]
    expectations: tuple[Expectation, ...]
    variables: tuple[Variable, ...]
    registers: tuple[RegisterInit, ...]
    threads: tuple[Thread, ...]
    quantifier: Quantifier
    condition: Condition
    shown: tuple[Term, ...] = ()
    finding: str | None = None
    more_questions: tuple[Asked, ...] = ()
    layout: Layout = field(default=Layout.COLUMNS, compare=False)
    source: Source = field(default=None, compare=False, repr=False)  # type: ignore[assignment]
    warnings: tuple[str, ...] = field(default=(), compare=False)

    def __repr__(self) -> str:
        asked = f"{self.quantifier.value} {self.finding or '(...)'}"
        expected = ", ".join(f"{expectation.model}:{expectation.word}" for expectation in self.expectations)
        more = count(len(self.more_questions), "further question") if self.more_questions else ""
        return shown("LitmusTest", self.name, count(len(self.threads), "thread"), asked, more, expected)

    def questions(self) -> tuple[LitmusTest, ...]:
        """The test once for each of its questions, in order."""
        tests = [replace(self, more_questions=()) if self.more_questions else self]
        for asked in self.more_questions:
            tests.append(
                replace(
                    tests[0],
                    quantifier=asked.quantifier,
                    condition=asked.condition,
                    shown=asked.shown or self.shown,
                    finding=asked.finding,
                    expectations=asked.expectations,
                )
            )
        return tuple(tests)
