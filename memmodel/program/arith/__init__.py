"""Exact arithmetic of PTX: what every operation of an `Apply` computes.

In: an operation's name and its type. Out: a function from numbers to a number. Every interpreter of steps computes with
these functions: the engines of litmus tests (`apply`, numbers as registers of a type hold them) and the machine that
runs compiled modules (`operation`, unsigned numbers). Arguments are first reduced to the type, as the hardware reads
registers; results wrap. Comparisons give 0 or 1, in the signedness of the type.

A result is None where PTX leaves it open: division by zero ("Integer Arithmetic Instructions: div, rem"), NaN whose
bits are unspecified, approximations ("Floating Point Instructions"), and what is not followed (`opaque.NAME`). No
execution of a litmus test goes on with such a result, for which `apply` returns a number whose bits are all one.
"""

from __future__ import annotations

from functools import lru_cache

from memmodel.errors import InternalError
from memmodel.program.arith import bit_fields, floats, integers, packed, video
from memmodel.program.arith.floats import unknown
from memmodel.program.arith.integers import COMPARISONS, Operation, double
from memmodel.ptx.vocabulary import PREDICATE, DataType

__all__ = ["COMPARISONS", "Operation", "apply", "double", "operation", "result_type", "unknown"]


BITS_ONLY = ("cvt", "selp")
"""Operations that do not look at what the bits of their operands mean, as `cvt` without a source type, which wraps."""

NAMED = {**integers.OPERATIONS, **bit_fields.OPERATIONS, **packed.OPERATIONS}
"""Operations on integers, by name: what makes their function for a type."""


def apply(op: str, args: tuple[int, ...], type: DataType) -> int:
    """The value of `op` on `args` in `type`. Raises InternalError if there is no such operation."""
    result = operation(op, type)(*args)
    return result_type(op, type).wrap(-1 if result is None else result)


@lru_cache(maxsize=4096)
def result_type(op: str, type: DataType) -> DataType:
    """The type of the values that an operation in `type` gives."""
    if op == "mul.wide":
        return double(type)
    return PREDICATE if is_comparison(op) else type


def is_comparison(op: str) -> bool:
    """True if an operation says how two numbers compare."""
    head = op.partition(".")[0]
    return head in COMPARISONS or head in floats.TESTS


@lru_cache(maxsize=4096)
def operation(op: str, type: DataType) -> Operation:
    """The function of an operation, from integers to unsigned numbers. Raises InternalError if there is none."""
    if op.startswith("insert "):
        return bit_fields.inserted(op, type)
    if op.startswith("opaque."):
        return unknown
    make = NAMED.get(op)
    if type.lanes > 1:
        each = operation(op, type.element)
        return unknown if each is unknown else packed.lanewise(each, type)
    if (type.floating and op not in BITS_ONLY) or op.startswith("cvt."):
        return floats.operation(op, type)
    if make is None:
        computed = video.video(tuple(op.split("."))) if op[0] == "v" else None
        if computed is None:
            raise InternalError(f"no arithmetic operation '{op}' on .{type}")
        return computed
    return make(type)
