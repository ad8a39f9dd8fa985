"""Exact integer arithmetic of PTX: what every operation of an `Apply` computes.

In: an operation's name, its arguments, its type. Out: an integer of that type. Arguments are first reduced to the
type, as the hardware reads registers; results wrap. Comparisons give 0 or 1, in the signedness of the type.
Division by zero is unspecified in PTX ("Integer Arithmetic Instructions: div, rem"): no execution goes on with its
result, for which all bits are one here; dividing the least signed value by -1 wraps to itself.
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.errors import InternalError
from memmodel.memory.tensormap import insert
from memmodel.ptx.vocabulary import DataType


def double(type: DataType) -> DataType:
    """The type of a .wide result."""
    return DataType(type.kind, 2 * type.width)


def apply(op: str, args: tuple[int, ...], type: DataType) -> int:
    """The value of `op` on `args` in `type`. Raises InternalError if there is no such operation."""
    if op in SHIFTS:
        value, amount = args
        return type.wrap(SHIFTS[op](type.wrap(value), min(amount & 0xFFFFFFFF, type.width)))
    wrapped = [type.wrap(arg) for arg in args]
    if op in COMPARISONS:
        return int(COMPARISONS[op](*wrapped))
    if op == "mul.wide":
        return double(type).wrap(wrapped[0] * wrapped[1])
    if op == "mul.hi":
        return type.wrap((wrapped[0] * wrapped[1]) >> type.width)
    if op.startswith("insert "):
        return type.wrap(insert(args[0], (int(op.split()[1]), int(op.split()[2])), args[1]))
    if op == "selp":
        return wrapped[0] if args[2] else wrapped[1]
    if op in FIELDS:
        return type.wrap(FIELDS[op](*wrapped, type))
    if op in OPERATIONS:
        return type.wrap(OPERATIONS[op](*wrapped))
    raise InternalError(f"no arithmetic operation '{op}'")


def _div(a: int, b: int) -> int:
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _rem(a: int, b: int) -> int:
    return -1 if b == 0 else a - b * _div(a, b)


COMPARISONS: dict[str, Callable[..., bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}

SHIFTS: dict[str, Callable[[int, int], int]] = {
    "shl": lambda a, n: a << n,
    "shr": lambda a, n: a >> n,
}
"""A shift by more than the width is one by the width ("Logic and Shift Instructions"); shr of .s copies the sign."""


def _unsigned(a: int, width: int) -> int:
    return a & ((1 << width) - 1)


def _significant(a: int) -> int:
    return (~a if a < 0 else a).bit_length()


def _bfe(a: int, position: int, length: int, type: DataType) -> int:
    """bfe: a field of bits; the sign of a signed field is its last bit inside the register."""
    position, length = position & 0xFF, length & 0xFF
    field = _unsigned(_unsigned(a, type.width) >> position, length) if length else 0
    if type.kind == "s" and length:
        sign = a >> min(position + length - 1, type.width - 1) & 1
        inside = max(0, min(length, type.width - position))
        field |= -sign << inside
    return field


def _bfi(a: int, b: int, position: int, length: int, type: DataType) -> int:
    """bfi: the lowest bits of a in place of a field of b."""
    position, length = position & 0xFF, length & 0xFF
    mask = ((1 << length) - 1) << position
    return b & ~mask | a << position & mask


def _prmt(a: int, b: int, selector: int) -> int:
    """prmt: four bytes chosen from eight; bit 3 of a choice repeats the sign of the byte."""
    source = (_unsigned(b, 32) << 32 | _unsigned(a, 32)).to_bytes(8, "little")
    found = 0
    for place in range(4):
        choice = selector >> 4 * place & 0xF
        byte = source[choice & 7]
        found |= ((0xFF if byte & 0x80 else 0) if choice & 8 else byte) << 8 * place
    return found


def _lop3(a: int, b: int, c: int, table: int) -> int:
    """lop3: the table has the result for each of the eight combinations of bits; bit 7 is for 1, 1, 1."""
    found = 0
    for entry in range(8):
        if table >> entry & 1:
            found |= (a if entry & 4 else ~a) & (b if entry & 2 else ~b) & (c if entry & 1 else ~c)
    return found


def _funnel(a: int, b: int, amount: int, left: bool, wraps: bool) -> int:
    """shf: b above a, shifted; the upper word of a left shift, the lower one of a right shift."""
    amount = amount & 31 if wraps else min(_unsigned(amount, 32), 32)
    both = _unsigned(b, 32) << 32 | _unsigned(a, 32)
    return both << amount >> 32 if left else both >> amount


FIELDS: dict[str, Callable[..., int]] = {
    "bfe": _bfe,
    "bfi": _bfi,
    "popc": lambda a, type: _unsigned(a, type.width).bit_count(),
    "clz": lambda a, type: type.width - _unsigned(a, type.width).bit_length(),
    "brev": lambda a, type: int(f"{_unsigned(a, type.width):0{type.width}b}"[::-1], 2),
    "bfind": lambda a, type: _significant(a) - 1,
    "bfind.shiftamt": lambda a, type: type.width - _significant(a) if _significant(a) else -1,
}
"""Operations that look at the width of their type; bfind looks for the highest bit that differs from the sign."""


OPERATIONS: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _div,
    "rem": _rem,
    "min": min,
    "max": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a: ~a,
    "neg": lambda a: -a,
    "abs": abs,
    "cvt": lambda a: a,
    "cnot": lambda a: int(a == 0),
    "sad": lambda a, b, c: c + abs(a - b),
    "prmt": _prmt,
    "lop3": _lop3,
    **{
        f"shf.{side}.{mode}": lambda a, b, n, left=side == "l", wraps=mode == "wrap": _funnel(a, b, n, left, wraps)
        for side in "lr"
        for mode in ("wrap", "clamp")
    },
    "inc": lambda a, b: 0 if a >= b else a + 1,
    "dec": lambda a, b: b if a == 0 or a > b else a - 1,
}
"""`inc` and `dec` are those of atom: they count modulo b + 1. `cvt` reinterprets: only the wrapping matters."""
