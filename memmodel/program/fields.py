"""Numbers of which some bits are known: a word that packs a state with data.

In: an expression. Out: `known_bits`, what is known of its value where only some bits of registers are known;
`combined`, the same of one operation. Settled here: only operations with which compilers pack and unpack words are
followed; of any other nothing is known, unless its operands are known as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from memmodel.program.arith import COMPARISONS, operation, result_type
from memmodel.program.expressions import Apply, Const, Expr, stripped
from memmodel.program.unknowns import Leaf
from memmodel.ptx.vocabulary import DataType

WIDEST = 128
"""Bits of the widest register. A number of fewer bits has zeros above them."""


@dataclass(frozen=True, slots=True)
class Bits:
    """`known`: a mask of the bits that are known; `value`: these bits, 0 elsewhere."""

    known: int
    value: int

    @classmethod
    def of(cls, value: int, width: int) -> Bits:
        """A number that is known."""
        mask = (1 << width) - 1
        return cls(mask, value & mask)

    def low(self, width: int) -> Bits:
        """The low bits."""
        mask = (1 << width) - 1
        return Bits(self.known & mask, self.value & mask)

    def number(self, width: int) -> int | None:
        """The number, if all its bits are known."""
        return self.value if self.known & (mask := (1 << width) - 1) == mask else None

    def part(self, at: int, width: int) -> Bits:
        """Some bits in a row."""
        return Bits(self.known >> at, self.value >> at).low(width)

    def shifted_left(self, by: int, width: int) -> Bits:
        """Moved to higher places; what comes in is 0."""
        return Bits(self.known << by | (1 << by) - 1, self.value << by).low(width)


NOTHING = Bits(0, 0)
BitsFn = Callable[..., Bits]
KnownBits = Callable[[Mapping[Leaf, Bits]], Bits]
"""What is known of a value, from what is known of its leaves."""


def known_bits(expr: Expr, width: int) -> KnownBits:
    """What is known of a register of `width` bits after an expression was put there."""
    expr = stripped(expr)
    bits = _known(expr)
    if not isinstance(expr, Apply):
        return lambda leaves: bits(leaves).low(width)
    type = result_type(expr.op, expr.type)
    return lambda leaves: _widened(bits(leaves), type, width)


def combined(op: str, type: DataType) -> BitsFn:
    """What is known of the result of an operation, from what is known of its operands."""
    rule, exact, result = _rule(op, type), operation(op, type), result_type(op, type)

    def combine(*operands: Bits) -> Bits:
        numbers = [operand.number(WIDEST) for operand in operands]
        if None not in numbers:
            value = exact(*numbers)
            return NOTHING if value is None else Bits.of(value & result.mask, WIDEST)
        return NOTHING if rule is None else _above(rule(*operands), result.width)

    return combine


def follows_bits(expr: Expr) -> bool:
    """True if single bits of registers tell single bits of the value of an expression."""
    expr = stripped(expr)
    return not isinstance(expr, Apply) or (
        _rule(expr.op, expr.type) is not None and all(follows_bits(arg) for arg in expr.args)
    )


def _known(expr: Expr) -> KnownBits:
    if isinstance(expr, Const):
        number = Bits.of(expr.value, WIDEST)
        return lambda leaves: number
    if not isinstance(expr, Apply):
        leaf = expr
        return lambda leaves: leaves[leaf]
    combine, operands = combined(expr.op, expr.type), [_operand(arg, expr.type) for arg in expr.args]
    return lambda leaves: combine(*(operand(leaves) for operand in operands))


def _operand(expr: Expr, type: DataType) -> KnownBits:
    """An operand of an operation in `type`: its sign counts where that is wider."""
    expr = stripped(expr)
    bits = _known(expr)
    if not isinstance(expr, Apply):
        return bits
    source = result_type(expr.op, expr.type)
    if not source.signed or source.width >= type.width:
        return bits
    return lambda leaves: _above(_widened(bits(leaves), source, type.width), type.width)


def _rule(op: str, type: DataType) -> BitsFn | None:
    """The rule of an operation for bits that are known one by one; None if there is none."""
    width = type.width
    if op == "selp":
        return lambda a, b, p: ((a if p.value & 1 else b) if p.known & 1 else _both(a, b)).low(width)
    if op == "cvt":
        return lambda a: a.low(width)
    if type.floating or type.lanes > 1:
        return None
    if op in COMPARISONS:
        return lambda a, b: compared(op, a.low(width), b.low(width), width, signed=type.signed)
    rules: dict[str, BitsFn] = {
        "and": lambda a, b: _and(a.low(width), b.low(width)),
        "or": lambda a, b: _or(a.low(width), b.low(width)),
        "xor": lambda a, b: _xor(a.low(width), b.low(width)),
        "not": lambda a: _not(a.low(width), width),
        "shl": lambda a, by: _left(a.low(width), by.number(32), width),
        "shr": lambda a, by: _right(a.low(width), by.number(32), width, signed=type.signed),
        "add": lambda a, b: _sum(a.low(width), b.low(width), width),
        "prmt": lambda a, b, control: _permuted(a, b, control.number(32)),
    }
    if op == "bfe" and not type.signed:
        return lambda a, at, size: _extracted(a.low(width), at.number(32), size.number(32), width)
    return rules.get(op)


def _above(bits: Bits, width: int) -> Bits:
    """A number of `width` bits, with zeros above them."""
    bits = bits.low(width)
    return Bits(bits.known | (1 << WIDEST) - (1 << width), bits.value)


def _widened(bits: Bits, type: DataType, width: int) -> Bits:
    """A number of a type in a register of `width` bits, which its sign fills if it has one."""
    if not type.signed or width <= type.width:
        return bits.low(width)
    above = (1 << width) - (1 << type.width)
    bits = bits.low(type.width)
    if not bits.known >> type.width - 1 & 1:
        return bits
    return Bits(bits.known | above, bits.value | (above if bits.value >> type.width - 1 & 1 else 0))


def _and(a: Bits, b: Bits) -> Bits:
    zeros = a.known & ~a.value | b.known & ~b.value
    return Bits(a.known & b.known | zeros, a.value & b.value)


def _or(a: Bits, b: Bits) -> Bits:
    return Bits(a.known & b.known | a.value | b.value, a.value | b.value)


def _xor(a: Bits, b: Bits) -> Bits:
    both = a.known & b.known
    return Bits(both, (a.value ^ b.value) & both)


def _not(a: Bits, width: int) -> Bits:
    return Bits(a.known, ~a.value & a.known).low(width)


def _both(a: Bits, b: Bits) -> Bits:
    """The bits that are known of a value that is one of two."""
    same = a.known & b.known & ~(a.value ^ b.value)
    return Bits(same, a.value & same)


def _left(a: Bits, by: int | None, width: int) -> Bits:
    return NOTHING if by is None else a.shifted_left(min(by, width), width)


def _right(a: Bits, by: int | None, width: int, *, signed: bool) -> Bits:
    if by is None:
        return NOTHING
    by = min(by, width)
    moved = a.part(by, width - by)
    return moved if signed else Bits(moved.known | (1 << width) - (1 << width - by), moved.value)


def _sum(a: Bits, b: Bits, width: int) -> Bits:
    """A sum in which no bit is set on both sides is what `or` gives; else as far up as both are known."""
    mask = (1 << width) - 1
    if (a.known & ~a.value | b.known & ~b.value) & mask == mask:
        return _or(a, b)
    both = a.known & b.known
    length = (~both & both + 1).bit_length() - 1
    known = (1 << min(length, width)) - 1
    return Bits(known, a.value + b.value & known)


def compared(how: str, a: Bits, b: Bits, width: int, *, signed: bool) -> Bits:
    """A comparison, as far as the least and the most that the numbers can be decide it."""
    if how in ("eq", "ne"):
        differ = bool(a.known & b.known & (a.value ^ b.value))
        return Bits.of(int(how == "ne"), 1) if differ else NOTHING
    if how not in ("lt", "le", "gt", "ge"):
        return NOTHING
    (least, most), (low, high) = _range(a, width, signed=signed), _range(b, width, signed=signed)
    if how in ("gt", "le"):  # a > b is b < a; a <= b is not that
        (least, most), (low, high) = (low, high), (least, most)
    strict = how in ("lt", "gt")
    if most < low:
        return Bits.of(int(strict), 1)
    return Bits.of(int(not strict), 1) if least >= high else NOTHING


def _range(a: Bits, width: int, *, signed: bool) -> tuple[int, int]:
    top = 1 << width - 1 if signed else 0
    free = ~a.known & (1 << width) - 1
    least = a.value | free & top
    most = a.value | free & ~top
    return (least ^ top) - top, (most ^ top) - top


def _permuted(a: Bits, b: Bits, control: int | None) -> Bits:
    if control is None:
        return NOTHING
    known = value = 0
    for lane in range(4):
        chosen = control >> lane * 4 & 15
        if chosen & 8:
            continue  # a sign, eight times
        byte = (a if chosen < 4 else b).part(chosen % 4 * 8, 8)
        known, value = known | byte.known << lane * 8, value | byte.value << lane * 8
    return Bits(known, value)


def _extracted(a: Bits, at: int | None, size: int | None, width: int) -> Bits:
    if at is None or size is None:
        return NOTHING
    at, size = at & 255, size & 255
    if at >= width:
        return Bits.of(0, width)
    field = a.part(at, min(size, width - at))
    return Bits(field.known | (1 << width) - (1 << min(size, width - at)), field.value)
