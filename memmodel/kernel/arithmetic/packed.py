"""Instructions on several numbers in one word, and on bits as polynomials.

In: the words of an opcode. Out: a function from words to a word, or None. Source: PTX ISA "add", "max", "cvt.pack",
"dp4a", "dp2a", "clmad".
"""

from __future__ import annotations

from collections.abc import Callable

Fn = Callable[..., int]
WORD = 0xFFFFFFFF
PACKED_KINDS = ("u16x2", "s16x2", "u8x4", "s8x4")

_WORK: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "min": min,
    "max": max,
    "neg": lambda a: -a,
}


def clamped(value: int, width: int, *, signed: bool) -> int:
    """A number, no further than its width lets it go."""
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
    return max(low, min(high, value))


def as_signed(value: int, width: int) -> int:
    """The low bits as a signed number."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> width - 1 else value


def packed(words: tuple[str, ...]) -> Fn | None:
    """add, sub, min, max and neg on the halves or bytes of a word."""
    kind, work = words[-1], _WORK.get(words[0])
    if work is None:
        return None
    width, signed = int(kind[1:-2]), kind[0] == "s"
    mask, firsts = (1 << width) - 1, range(0, 32, width)
    saturates, positive = "sat" in words, "relu" in words

    def part(value: int) -> int:
        return as_signed(value, width) if signed else value & mask

    def each(*given: int) -> int:
        result = 0
        for first in firsts:
            found = work(*(part(one >> first) for one in given))
            found = clamped(found, width, signed=signed) if saturates else found
            result |= ((max(found, 0) if positive else found) & mask) << first
        return result

    return each


def narrowed(words: tuple[str, ...]) -> Fn:
    """cvt.pack.sat: two numbers of .s32, made as narrow as it says, the first above the second, above what c has."""
    width, signed = int(words[3][1:]), words[3][0] == "s"
    mask = (1 << width) - 1

    def narrow(a: int) -> int:
        return clamped(as_signed(a, 32), width, signed=signed) & mask

    if width == 16:
        return lambda a, b: narrow(a) << 16 | narrow(b)
    return lambda a, b, c: (c << 2 * width | narrow(a) << width | narrow(b)) & WORD


def dot(words: tuple[str, ...]) -> Fn:
    """dp4a, dp2a: the sum of the products of bytes, or of halves and bytes."""
    width = 8 if words[0] == "dp4a" else 16
    first, second = (_reader(kind, size) for kind, size in zip(words[-2:], (width, 8), strict=True))
    down = 16 if "hi" in words else 0
    places = range(32 // width)
    return lambda a, b, c: sum(first(a >> width * k) * second(b >> down + 8 * k) for k in places) + c & WORD


def _reader(kind: str, width: int) -> Callable[[int], int]:
    return (lambda a: as_signed(a, width)) if kind[0] == "s" else (lambda a: a & (1 << width) - 1)


def carryless(words: tuple[str, ...]) -> Fn | None:
    """clmad: the product of polynomials over bits, its lower or its upper half, plus a third one."""
    if len(words) != 3 or words[1] not in ("lo", "hi"):
        return None
    down, mask = (64 if words[1] == "hi" else 0), (1 << 64) - 1

    def compute(a: int, b: int, c: int) -> int:
        product = 0
        for bit in range(64):
            if a >> bit & 1:
                product ^= (b & mask) << bit
        return (product >> down ^ c) & mask

    return compute
