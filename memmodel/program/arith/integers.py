"""Integers: sums, products, quotients, comparisons, logic, shifts.

In: a type. Out: `OPERATIONS`: by name, what makes the function of an operation for a type. Functions return unsigned
numbers of the type's width.
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.ptx.vocabulary import DataType

Operation = Callable[..., int | None]
"""A function of integers. None: PTX leaves the result open."""

Exact = Callable[..., int]
Maker = Callable[[DataType], Operation]
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def double(type: DataType) -> DataType:
    """The type of a .wide result."""
    return DataType(type.kind, 2 * type.width)


def reader(type: DataType) -> Callable[[int], int]:
    """What a register of a type holds, of any integer: its sign counts if the type has one."""
    mask, sign = type.mask, 1 << type.width - 1
    if type.signed:
        return lambda a: ((a & mask) ^ sign) - sign
    return lambda a: a & mask


def bounds(type: DataType) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    return (-(1 << type.width - 1), (1 << type.width - 1) - 1) if type.signed else (0, type.mask)


def on_numbers(fn: Exact) -> Maker:
    """A function of the numbers that registers hold, whose result wraps."""

    def make(type: DataType) -> Operation:
        read, mask = reader(type), type.mask
        return lambda *args: fn(*map(read, args)) & mask

    return make


def on_bits(fn: Exact) -> Maker:
    """A function whose low bits depend on the low bits of its arguments alone."""

    def make(type: DataType) -> Operation:
        mask = type.mask
        return lambda *args: fn(*args) & mask

    return make


def _add(type: DataType) -> Operation:
    mask = type.mask
    return lambda a, b: a + b & mask


def _sub(type: DataType) -> Operation:
    mask = type.mask
    return lambda a, b: a - b & mask


def _mul(type: DataType) -> Operation:
    mask = type.mask
    return lambda a, b: a * b & mask


def _and(type: DataType) -> Operation:
    mask = type.mask
    return lambda a, b: a & b & mask


def _or(type: DataType) -> Operation:
    mask = type.mask
    return lambda a, b: (a | b) & mask


def _cvt(type: DataType) -> Operation:
    mask = type.mask
    return lambda a: a & mask


def _selp(type: DataType) -> Operation:
    mask = type.mask
    return lambda a, b, holds: (a if holds else b) & mask


def _eq(type: DataType) -> Operation:
    mask = type.mask
    return lambda a, b: int(not (a ^ b) & mask)


def _ne(type: DataType) -> Operation:
    mask = type.mask
    return lambda a, b: int(bool((a ^ b) & mask))


def _lt(type: DataType) -> Operation:
    read = reader(type)
    return lambda a, b: int(read(a) < read(b))


def _le(type: DataType) -> Operation:
    read = reader(type)
    return lambda a, b: int(read(a) <= read(b))


def _gt(type: DataType) -> Operation:
    read = reader(type)
    return lambda a, b: int(read(a) > read(b))


def _ge(type: DataType) -> Operation:
    read = reader(type)
    return lambda a, b: int(read(a) >= read(b))


def quotient(a: int, b: int) -> int:
    """a divided by b, rounded towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _div(type: DataType) -> Operation:
    read, mask = reader(type), type.mask
    return lambda a, b: quotient(read(a), divisor) & mask if (divisor := read(b)) else None


def _rem(type: DataType) -> Operation:
    read, mask = reader(type), type.mask

    def rem(a: int, b: int) -> int | None:
        dividend, divisor = read(a), read(b)
        return dividend - divisor * quotient(dividend, divisor) & mask if divisor else None

    return rem


def _high(type: DataType) -> Operation:
    read, mask, width = reader(type), type.mask, type.width
    return lambda a, b: read(a) * read(b) >> width & mask


def _wide(type: DataType) -> Operation:
    read, mask = reader(type), double(type).mask
    return lambda a, b: read(a) * read(b) & mask


def _saturated(fn: Exact) -> Maker:
    """The nearest number of the type to a result."""

    def make(type: DataType) -> Operation:
        read, mask, (least, most) = reader(type), type.mask, bounds(type)
        return lambda *args: max(least, min(most, fn(*map(read, args)))) & mask

    return make


def _carry(type: DataType) -> Operation:
    """The carry out of a + b + carry."""
    mask, width = type.mask, type.width
    return lambda a, b, carry: (a & mask) + (b & mask) + (carry & 1) >> width


def _borrow(type: DataType) -> Operation:
    """The borrow out of a - b - borrow."""
    mask = type.mask
    return lambda a, b, borrow: int((a & mask) < (b & mask) + (borrow & 1))


def _shl(type: DataType) -> Operation:
    mask, width = type.mask, type.width
    return lambda a, n: a << min(n & 0xFFFFFFFF, width) & mask


def _shr(type: DataType) -> Operation:
    read, mask, width = reader(type), type.mask, type.width
    return lambda a, n: read(a) >> min(n & 0xFFFFFFFF, width) & mask


OPERATIONS: dict[str, Maker] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "mul.hi": _high,
    "mul.wide": _wide,
    "div": _div,
    "rem": _rem,
    "min": on_numbers(min),
    "max": on_numbers(max),
    "min.relu": on_numbers(lambda a, b: max(0, min(a, b))),
    "max.relu": on_numbers(lambda a, b: max(0, a, b)),
    "abs": on_numbers(abs),
    "neg": on_bits(lambda a: -a),
    "sad": on_numbers(lambda a, b, c: c + abs(a - b)),
    "add.sat": _saturated(lambda a, b: a + b),
    "sub.sat": _saturated(lambda a, b: a - b),
    "add.carry": _carry,
    "sub.carry": _borrow,
    "inc": on_numbers(lambda a, b: 0 if a >= b else a + 1),
    "dec": on_numbers(lambda a, b: b if a == 0 or a > b else a - 1),
    "eq": _eq,
    "ne": _ne,
    "lt": _lt,
    "le": _le,
    "gt": _gt,
    "ge": _ge,
    "and": _and,
    "or": _or,
    "xor": on_bits(lambda a, b: a ^ b),
    "not": on_bits(lambda a: ~a),
    "cnot": on_numbers(lambda a: int(a == 0)),
    "shl": _shl,
    "shr": _shr,
    "cvt": _cvt,
    "selp": _selp,
}
"""`inc` and `dec` are those of atom: they count modulo b + 1. `cvt` reinterprets: only the wrapping matters. A shift by
more than the width is one by the width ("Logic and Shift Instructions"); shr of .s copies the sign. `add.carry` and
`sub.carry` are what the extended-precision instructions leave in CC.CF.
"""
