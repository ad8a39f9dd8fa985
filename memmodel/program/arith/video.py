"""Video instructions: arithmetic on words, and on the halves and bytes of words.

In: the words of a mnemonic; `into.h1` after them names the part of the third operand that the result replaces. Out: a
function from 32-bit numbers to one. Source: PTX ISA "Scalar Video Instructions", "SIMD Video Instructions".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from memmodel.program.arith.integers import Operation, bounds, reader
from memmodel.ptx.operands import PARTS
from memmodel.ptx.vocabulary import U32, DataType

WORD = 0xFFFFFFFF

_COMPUTE: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "avrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
    "absdiff": lambda a, b: abs(a - b),
    "min": min,
    "max": max,
}
_COMPARE: dict[str, Callable[[int, int], int]] = {
    "eq": lambda a, b: int(a == b),
    "ne": lambda a, b: int(a != b),
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
    "gt": lambda a, b: int(a > b),
    "ge": lambda a, b: int(a >= b),
}
_SECOND: dict[str, Callable[[int, int], int]] = {"add": lambda a, c: a + c, "min": min, "max": max}
_SCALES = {"shr7": 7, "shr15": 15}


def video(words: tuple[str, ...]) -> Operation | None:
    """What a video instruction computes; None for any other instruction."""
    named = re.fullmatch(r"v(add|sub|avrg|absdiff|min|max|set|shl|shr|mad)([24]?)", words[0])
    if named is None:
        return None
    name, lanes, rest = named[1], int(named[2] or 1), list(words[1:])
    into = rest.pop() if "into" in rest else ""
    types = [DataType(word[0], 32) for word in rest if word in ("u32", "s32")]
    modifiers = [word for word in rest if word not in ("u32", "s32", "into")]
    if name == "set":
        types.insert(0, U32)
    if name == "mad":
        return _multiplied(types, modifiers)
    work = _shifting(name, modifiers) if name in ("shl", "shr") else _COMPUTE.get(name)
    if name == "set":
        work = _COMPARE[modifiers.pop(0)]
    assert work is not None
    saturates = "sat" in modifiers
    second = next((word for word in modifiers if word in _SECOND), "")
    if lanes > 1:
        return _each(work, types, 32 // lanes, saturates, second)
    return _scalar(work, types, saturates, second, into)


def _shifting(name: str, modifiers: Sequence[str]) -> Callable[[int, int], int]:
    wraps = "wrap" in modifiers

    def shift(a: int, b: int) -> int:
        amount = b & 31 if wraps else min(b & WORD, 32)
        return a << amount if name == "shl" else a >> amount

    return shift


def _scalar(
    work: Callable[[int, int], int], types: Sequence[DataType], saturates: bool, second: str, into: str
) -> Operation:
    """One result. `second`: an operation on it and the third operand. `into`: the part of this operand to replace."""
    result, (first, other) = types[0], [reader(type) for type in types[1:]]
    shift, width = PARTS[into] if into else (0, 32)
    least, most = bounds(DataType(result.kind, width))
    mask, read = (1 << width) - 1, reader(result)

    def compute(a: int, b: int, *c: int) -> int | None:
        value = work(first(a), other(b))
        if saturates:
            value = max(least, min(most, value))
        if into:
            return (c[0] & ~(mask << shift) | (value & mask) << shift) & WORD
        if not second:
            return value & WORD
        if second != "add" and not least <= value <= most:
            return None  # the page compares more bits than it says how to extend
        return _SECOND[second](value, read(c[0])) & WORD

    return compute


def _each(
    work: Callable[[int, int], int], types: Sequence[DataType], width: int, saturates: bool, second: str
) -> Operation:
    """The same on each half or byte; `add` adds the results to the third operand."""
    result, first, other = (DataType(type.kind, width) for type in types)
    read_first, read_other, (least, most) = reader(first), reader(other), bounds(result)

    def compute(a: int, b: int, c: int) -> int:
        total, merged = c, 0
        for place in range(0, 32, width):
            value = work(read_first(a >> place), read_other(b >> place))
            value = max(least, min(most, value)) if saturates else value
            total += value
            merged |= (value & result.mask) << place
        return (total if second else merged) & WORD

    return compute


def _multiplied(types: Sequence[DataType], modifiers: Sequence[str]) -> Operation:
    """vmad: a product and a sum, shifted down. It has a sign if one of its factors has."""
    scale = next((_SCALES[word] for word in modifiers if word in _SCALES), 0)
    first, other = types[1:]
    final = DataType("s" if first.signed or other.signed else "u", 32)
    read_first, read_other, read_sum, (least, most) = reader(first), reader(other), reader(final), bounds(final)
    plus_one, saturates = int("po" in modifiers), "sat" in modifiers

    def compute(a: int, b: int, c: int) -> int:
        value = read_first(a) * read_other(b) + read_sum(c) + plus_one >> scale
        return (max(least, min(most, value)) if saturates else value) & WORD

    return compute
