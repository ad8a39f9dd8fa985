"""Operands of instructions: one set of types for litmus tests and compiled modules.

In: nothing. Out: `Operand` and its kinds. Both readers build these, and the instruction table reads them. A compiled
module declares its registers, so there a register is a `Register` with its number and type; a litmus thread only names
them. Source: "Instruction Operands".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import copysign, inf

from memmodel.ptx.vocabulary import DataType
from memmodel.source import Span, no_span


@dataclass(frozen=True, slots=True)
class Reg:
    """A register, by its name without the percent sign: `r0`, `p`, `rd1`."""

    name: str
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Imm:
    """An integer written in place."""

    value: int
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Real:
    """A floating-point number written in place, by its bits in the IEEE format of that `width` (32 or 64)."""

    bits: int
    width: int
    span: Span = no_span()

    @property
    def value(self) -> float:
        """The number, as Python has it."""
        value: float = struct.unpack(_FORMATS[self.width], self.bits.to_bytes(self.width // 8, "little"))[0]
        return value

    def encoded(self, kind: DataType) -> int | None:
        """Its bits where it is used with that type; None if PTX does not take it there ("Floating-Point Constants")."""
        if kind.kind == "f" and kind.width in _FORMATS:
            return self.bits if kind.width == self.width else _converted(self.value, kind.width)
        return self.bits if kind == DataType("b", self.width) else None


_FORMATS = {16: "<e", 32: "<f", 64: "<d"}


def _converted(value: float, width: int) -> int:
    """The bits of the nearest number in another format; beyond the largest, infinity."""
    try:
        packed = struct.pack(_FORMATS[width], value)
    except OverflowError:
        packed = struct.pack(_FORMATS[width], copysign(inf, value))
    return int.from_bytes(packed, "little")


@dataclass(frozen=True, slots=True)
class Sym:
    """A bare name: a declared variable (its address, plus `offset` bytes) or a label; `cta` for `x@cta1`."""

    name: str
    cta: int | None = None
    span: Span = no_span()
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Mem:
    """A memory operand `[base + offset]`; `base` is a variable or a register holding an address; offset in bytes."""

    base: Reg | Sym | Imm
    offset: int = 0
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class TensorOperand:
    """`[map, {c0, c1}]`: the address of a tensor map, and what else stands in the brackets: its coordinates."""

    base: Reg | Sym | Imm
    rest: tuple[Operand, ...]
    offset: int = 0
    span: Span = no_span()

    @property
    def items(self) -> tuple[Operand, ...]:
        """All that stands in the brackets."""
        return (self.base, *self.rest)


@dataclass(frozen=True, slots=True)
class Vector:
    """Operands in braces: `{%r0, %r1}`."""

    items: tuple[Operand, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Blank:
    """The bit bucket `_`, or an operand that is left out."""

    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Negated:
    """`!%p` as a source operand."""

    operand: Reg
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Pair:
    """`%r0|%p`: two results as one operand, as elect.sync and mbarrier.test_wait write them."""

    first: Operand
    second: Operand
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Register(Reg):
    """A declared register of a compiled function. `slot`: its number there; `kind` (`b`, `f`, `pred`, ...) and `width`
    in bits: of its declared type.
    """

    slot: int = field(kw_only=True)
    kind: str = field(kw_only=True)
    width: int = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Special:
    """A register of a compiled function that the machine sets, such as %tid.x."""

    name: str
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class JumpTarget:
    """A label of a compiled function: the number of the instruction after it."""

    name: str
    at: int
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class JumpTable:
    """The list of labels of a compiled function that stands at a label of its own (".branchtargets")."""

    name: str
    targets: tuple[int, ...]
    span: Span = no_span()


PARTS = {"b0": (0, 8), "b1": (8, 8), "b2": (16, 8), "b3": (24, 8), "h0": (0, 16), "h1": (16, 16)}
"""Selectors of operands: first bit, width."""


@dataclass(frozen=True, slots=True)
class Part:
    """A byte or half of a register: `%r1.b2`, `%r1.h0` ("Video Instructions")."""

    register: Reg
    selector: str
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Arguments:
    """Operands in parentheses, of a call."""

    items: tuple[Operand, ...]
    span: Span = no_span()


Operand = (
    Reg
    | Imm
    | Real
    | Sym
    | Mem
    | TensorOperand
    | Vector
    | Blank
    | Negated
    | Pair
    | Special
    | JumpTarget
    | JumpTable
    | Part
    | Arguments
)


def elements(operand: Operand) -> tuple[Operand, ...]:
    """The operands that a vector or a pair consists of; any other operand alone."""
    match operand:
        case Vector(items):
            return items
        case Pair(first, second):
            return (first, second)
    return (operand,)


def within(operand: Operand) -> Iterator[Operand]:
    """An operand and all that are written inside it, from left to right, each before those inside it."""
    yield operand
    inner: tuple[Operand, ...] = ()
    match operand:
        case Vector() | TensorOperand() | Arguments():
            inner = operand.items
        case Pair(first, second):
            inner = (first, second)
        case Mem(base):
            inner = (base,)
        case Negated(register) | Part(register):
            inner = (register,)
    for part in inner:
        yield from within(part)


def registers_in(operands: Iterable[Operand]) -> Iterator[Reg]:
    """The registers in operands, those of addresses included, from left to right."""
    return (part for operand in operands for part in within(operand) if isinstance(part, Reg))


def describe(operand: Operand) -> str:
    """What an operand is, in words."""
    if isinstance(operand, Reg):
        return f"the register '{operand.name}'"
    if isinstance(operand, Imm):
        return f"the number {operand.value}"
    if isinstance(operand, Real):
        return f"the floating-point number {operand.span.text if operand.span else operand.value}"
    if isinstance(operand, Sym):
        return f"the name '{operand.name}'"
    if isinstance(operand, Mem):
        return "a memory operand"
    if isinstance(operand, TensorOperand):
        return "a tensor operand"
    if isinstance(operand, Vector):
        return "a vector"
    if isinstance(operand, Pair):
        return "a pair of registers"
    if isinstance(operand, Negated):
        return f"the predicate '!{operand.operand.name}'"
    if isinstance(operand, JumpTarget):
        return f"the label '{operand.name}'"
    if isinstance(operand, JumpTable):
        return f"the list of labels '{operand.name}'"
    if isinstance(operand, Special | Part | Arguments):
        return "an operand of another kind"
    return "left out"
