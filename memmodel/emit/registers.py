"""Which PTX type each register of a thread has.

In: the instructions of a thread, read against the table. Out: a class (pred, b16, b32, b64, b128) for each register.
Settled here: how wide each operand of an instruction is; a load, a store and a conversion also take a wider register.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from memmodel.errors import InputError
from memmodel.isa.place import MASKS
from memmodel.isa.rows.spelling import Spelling
from memmodel.isa.rows.types import data_type
from memmodel.litmus.syntax import Instruction
from memmodel.program.special import is_special
from memmodel.ptx.operands import Mem, Negated, Operand, Pair, Reg, TensorOperand, Vector
from memmodel.source import Span

POINTER = 64


@dataclass(frozen=True, slots=True)
class RegisterClass:
    """A register operand: its width in bits (1: a predicate). `least`: a wider register is accepted as well."""

    width: int
    least: bool = False
    signed: bool = False


PRED, B16, B32, B64, B128 = (
    RegisterClass(1),
    RegisterClass(16),
    RegisterClass(32),
    RegisterClass(64),
    RegisterClass(128),
)
HANDLE = RegisterClass(96)
"""A logical endpoint and a 64-bit offset."""

ANY = RegisterClass(0)
"""A predicate or a number: other uses of the register tell."""


@dataclass(slots=True)
class Registers:
    """What is known of the registers of one thread, in the order in which they appear."""

    exact: dict[str, tuple[int, Span]] = field(default_factory=dict)
    least: dict[str, int] = field(default_factory=dict)
    pointers: set[str] = field(default_factory=set)
    free: set[str] = field(default_factory=set)
    unsigned: set[str] = field(default_factory=set)
    signed: set[str] = field(default_factory=set)

    def note(self, register: str, kind: RegisterClass, span: Span) -> None:
        """One use of a register. Raises InputError where it contradicts an earlier one."""
        self.least.setdefault(register, 16)
        if kind is ANY:
            self.free.add(register)
            return
        (self.signed if kind.signed else self.unsigned).add(register)
        if kind.least:
            self.least[register] = max(self.least[register], kind.width)
            return
        width, first = self.exact.setdefault(register, (kind.width, span))
        if width != kind.width:
            hint = f"it is {_words(width)} on line {first.line}; PTX gives a register one size, so use another register"
            raise InputError(f"'%{register}' is used as {_words(kind.width)}", span, hint)

    def width(self, register: str) -> int:
        """1 for a predicate, else 16, 32, 64 or 128."""
        if register in self.exact:
            return self.exact[register][0]
        least = self.least.get(register, POINTER)
        if register in self.free and least < 32:
            return 1
        return POINTER if register in self.pointers and least < 32 else least

    def word(self, register: str) -> str:
        """The class as PTX declares it."""
        width = self.width(register)
        return "pred" if width == 1 else f"b{width}"

    def is_signed(self, register: str) -> bool:
        """True if the register is used only as a signed number."""
        return register in self.signed and register not in self.unsigned


def _words(width: int) -> str:
    return "a predicate" if width == 1 else f"{width} bits"


def collect(body: Sequence[tuple[Instruction, Spelling]]) -> Registers:
    """The registers of a thread. Raises InputError where one is used with two sizes."""
    registers = Registers()
    for instruction, reading in body:
        if instruction.guard is not None:
            registers.note(instruction.guard.register, PRED, instruction.guard.span)
        for operand, kind in zip(instruction.operands, kinds(instruction, reading), strict=True):
            for register, exact in _registers(operand, kind):
                if is_special(register.name):
                    continue
                if exact is None:
                    registers.least.setdefault(register.name, 16)
                    registers.pointers.add(register.name)
                else:
                    registers.note(register.name, exact, register.span or instruction.span)
    return registers


def _registers(operand: Operand, kind: RegisterClass) -> Iterator[tuple[Reg, RegisterClass | None]]:
    """The registers in an operand; no kind for one that holds an address."""
    if isinstance(operand, Reg):
        yield operand, kind
    elif isinstance(operand, Mem):
        if isinstance(operand.base, Reg):
            yield operand.base, None
    elif isinstance(operand, TensorOperand):
        if isinstance(operand.base, Reg):
            yield operand.base, None
        for element in operand.rest:
            yield from _registers(element, B64 if kind is HANDLE else B32)
    elif isinstance(operand, Vector):
        for element in operand.items:
            yield from _registers(element, kind)
    elif isinstance(operand, Negated):
        yield operand.operand, PRED
    elif isinstance(operand, Pair):
        if isinstance(operand.first, Reg):
            yield operand.first, kind
        if isinstance(operand.second, Reg):
            yield operand.second, PRED


# ---- operands of each instruction ----------------------------------------------------------------------------------

_BY_NAME = {
    "cache_policy": B64,
    "handle": HANDLE,
    "membermask": B32,
    "{!}a": PRED,
    "{!}c": PRED,
    "p": PRED,
    "d|p": B32,
    "pred": PRED,
    "response": B128,
    "waitComplete": PRED,
    "state": B64,
    "count": B32,
    "txCount": B32,
    "timeHint": B32,
    "reportValue": B64,
    "byteMask": B16,
    "ignoreBytesLeft": B32,
    "ignoreBytesRight": B32,
    "im2colInfo": B16,
    "size": B32,
    "src-size": ANY,
    "nCols": B32,
    "taddr": B32,
    "s-desc": B64,
    "b-desc": B64,
    "scale-d": PRED,
    "t": B32,
    "primary-size": B32,
    "total-size": B32,
    "fraction": B32,
    "redval": B32,
    "r": B32,
    "n": B32,
    "pos": B32,
    "len": B32,
}
"""Operands that have one size whatever the instruction, by their names in the table."""

RESULTS = frozenset({"d", "n", "redval", "p", "d|p", "pred", "state", "waitComplete", "reportValue"})
"""Names of operands that receive a result."""


def kinds(instruction: Instruction, reading: Spelling) -> list[RegisterClass]:
    """The class of register that each operand would be."""
    operands = instruction.operands
    typed = _typed(reading, "type")
    if reading.head == "mov":
        counts = [len(operand.items) if isinstance(operand, Vector) else 1 for operand in operands]
        return [typed if count == 1 else RegisterClass(max(16, typed.width // count)) for count in counts]
    if reading.words.get("mode") == "wide":
        double = RegisterClass(2 * typed.width, signed=typed.signed)
        return [double, typed, typed, double][: len(operands)]
    if reading.head.startswith("tcgen05.mma"):
        return _mma(operands)
    if reading.head.startswith("wgmma.mma_async"):
        metadata = [B32, B32] if reading.head.endswith(".sp") else []
        classes = [B32, B32 if isinstance(operands[1], Vector) else B64, B64, *metadata, PRED]
        return classes + [B32] * (len(operands) - len(classes))
    return [_named(name, reading, typed) for name in names(instruction, reading)]


def _mma(operands: Sequence[Operand]) -> list[RegisterClass]:
    """Descriptors of A and B, the instruction descriptor, the lanes to leave out, enable-input-d, the rest."""
    classes = [B32, B64, B64]
    scalars = [B32, PRED, B64, B64]
    for operand in operands[3:]:
        classes.append(B32 if isinstance(operand, Mem | TensorOperand | Vector) else scalars.pop(0))
    return classes


def names(instruction: Instruction, reading: Spelling) -> list[str]:
    """The table's name for each operand that is given, without brackets and question marks."""
    operands = instruction.operands
    if "reportValue?" in reading.operands and not (len(operands) > 1 and isinstance(operands[1], Reg)):
        names_without = [name for name in reading.operands if name != "reportValue?"]
        return [name.removesuffix("?").strip("[]") for name in names_without][: len(operands)]
    return [name.strip("[]") for name in reading.operand_names(len(operands)) or ()]


def _named(name: str, reading: Spelling, typed: RegisterClass) -> RegisterClass:
    if name == "ctaMask":
        return RegisterClass(MASKS[reading.words.get("multicast", "multicast::cluster")])
    if name == "phase":
        return B32 if "parity" in reading.words else B64
    size = reading.row.sizes.get(name)
    if isinstance(size, int):
        return RegisterClass(size)
    return _BY_NAME.get(name, typed) if size is None else _typed(reading, size)


def _typed(reading: Spelling, slot: str) -> RegisterClass:
    """The class of a type; loads, stores and conversions take wider registers, too."""
    kind = data_type(reading.words.get(slot, ""))
    if kind is None:
        return B32
    loose = reading.head in ("ld", "ldu", "st", "cvt")
    return RegisterClass(max(16, kind.width) if kind.width > 1 else 1, loose, kind.kind == "s")


def targets(instruction: Instruction, reading: Spelling) -> list[str]:
    """The registers that the instruction assigns."""
    if reading.head == "mbarrier.pending_count":
        return [register.name for register, _ in _registers(instruction.operands[0], B32)]
    return [
        register.name
        for name, operand in zip(names(instruction, reading), instruction.operands, strict=True)
        if name in RESULTS
        for register, _ in _registers(operand, B32)
    ]
