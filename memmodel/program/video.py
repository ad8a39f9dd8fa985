"""Video instructions: arithmetic on words, and on the halves and bytes of words.

In: the words of an opcode. Out: a function from 32-bit numbers to one, or None for what is not computed here. Source:
PTX ISA "Scalar Video Instructions", "SIMD Video Instructions".
"""

from __future__ import annotations

import re
from collections.abc import Callable

from memmodel.ptx.operands import PARTS

Bits = Callable[..., int]
WORD = 0xFFFFFFFF

_COMPUTE: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "avrg": lambda a, b: a + b + (a + b >= 0) >> 1,
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
_TYPES = ("u32", "s32")


def part(value: int, selector: str, kind: str) -> int:
    """The byte or half of a word, extended as its type says."""
    first, width = PARTS[selector]
    return _read(value >> first, width, kind) & WORD


def _read(value: int, width: int, kind: str) -> int:
    low = value & (1 << width) - 1
    return low - (1 << width) if kind == "s32" and low >> width - 1 else low


def _clamp(value: int, width: int, kind: str) -> int:
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if kind == "s32" else (0, (1 << width) - 1)
    return max(low, min(high, value))


def video(words: tuple[str, ...]) -> Bits | None:
    """What a video instruction computes."""
    named = re.fullmatch(r"v(add|sub|avrg|absdiff|min|max|set|shl|shr|mad)([24]?)", words[0])
    if named is None:
        return None
    op, lanes = named[1], int(named[2] or 1)
    rest = list(words[1:])
    kind = "u32" if op == "set" else rest.pop(0)
    kinds = rest[:2]
    if len(kinds) < 2 or any(one not in _TYPES for one in (kind, *kinds)):
        return None
    more = rest[2:]
    if op == "mad":
        return _multiplied(kind, kinds, more)
    if op in ("shl", "shr"):
        return _shifted(op, kind, kinds[0], more)
    work = _COMPARE.get(more.pop(0) if more else "") if op == "set" else _COMPUTE.get(op)
    saturates = bool(more) and more[0] == "sat"
    second = more[-1] if len(more) > saturates else ""
    if work is None or len(more) > saturates + bool(second) or (second and second not in _SECOND):
        return None
    if lanes > 1:
        return _each(work, (kind, *kinds), 32 // lanes, saturates, second) if second in ("", "add") else None

    def compute(a: int, b: int, *c: int) -> int:
        found = work(_read(a, 32, kinds[0]), _read(b, 32, kinds[1]))
        return _seconded(_clamp(found, 32, kind) if saturates else found, kind, second, c)

    return compute


def _seconded(value: int, kind: str, second: str, c: tuple[int, ...]) -> int:
    """The second operation, on the result and a third operand."""
    if not second:
        return value & WORD
    return _SECOND[second](_read(value, 32, kind), _read(c[0], 32, kind)) & WORD


def _each(work: Callable[[int, int], int], kinds: tuple[str, ...], width: int, saturates: bool, second: str) -> Bits:
    """The same on each half or byte; `add` adds the results to the third operand."""
    mask = (1 << width) - 1

    def compute(a: int, b: int, c: int) -> int:
        total, result = c, 0
        for first in range(0, 32, width):
            found = work(_read(a >> first, width, kinds[1]), _read(b >> first, width, kinds[2]))
            found = _clamp(found, width, kinds[0]) if saturates else found
            total += found
            result |= (found & mask) << first
        return (total if second else result) & WORD

    return compute


def _shifted(op: str, kind: str, source: str, more: list[str]) -> Bits | None:
    saturates = "sat" in more
    mode = next((one for one in more if one in ("clamp", "wrap")), None)
    second = next((one for one in more if one in _SECOND), "")
    if mode is None or len(more) != 1 + saturates + bool(second):
        return None

    def compute(a: int, b: int, *c: int) -> int:
        amount, value = b & 31 if mode == "wrap" else min(b & WORD, 32), _read(a, 32, source)
        found = value << amount if op == "shl" else value >> amount
        return _seconded(_clamp(found, 32, kind) if saturates else found, kind, second, c)

    return compute


def _multiplied(kind: str, kinds: list[str], more: list[str]) -> Bits | None:
    saturates = "sat" in more
    scale = next((int(one[3:]) for one in more if one in ("shr7", "shr15")), 0)
    if len(more) != saturates + bool(scale):
        return None
    signed = "s32" if "s32" in (kind, *kinds) else "u32"

    def compute(a: int, b: int, c: int) -> int:
        found = _read(a, 32, kinds[0]) * _read(b, 32, kinds[1]) + _read(c, 32, signed) >> scale
        return (_clamp(found, 32, kind) if saturates else found) & WORD

    return compute
