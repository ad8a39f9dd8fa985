"""Exact integer arithmetic of PTX: what every operation of an `Apply` computes.

In: an operation's name, its arguments, its type. Out: an integer of that type. Arguments are first reduced to the
type, as the hardware reads registers; results wrap. Comparisons give 0 or 1, in the signedness of the type.
Division by zero is unspecified in PTX ("Integer Arithmetic Instructions: div, rem"): here all bits are one, for div
and rem alike, as on hardware; dividing the least signed value by -1 wraps to itself.
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.errors import InternalError
from memmodel.memory.tensormap import insert
from memmodel.ptx import DataType


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
    "popc": lambda a: a.bit_count(),
    "inc": lambda a, b: 0 if a >= b else a + 1,
    "dec": lambda a, b: b if a == 0 or a > b else a - 1,
}
"""`inc` and `dec` are those of atom: they count modulo b + 1. `cvt` reinterprets: only the wrapping matters."""
