"""Numbers of which some bits are known: a word that packs a state with data.

In: words of an instruction. Out: `BitsFn`, what is known of its result. Settled here: only instructions with which
compilers pack and unpack words are followed; of any other the result is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


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

    def whole(self, width: int) -> int | None:
        """The number, if all its bits are known."""
        return self.value if self.known & (mask := (1 << width) - 1) == mask else None

    def part(self, at: int, width: int) -> Bits:
        """Some bits in a row."""
        return Bits(self.known >> at, self.value >> at).low(width)

    def up(self, by: int, width: int) -> Bits:
        """Moved to higher places; what comes in is 0."""
        return Bits(self.known << by | (1 << by) - 1, self.value << by).low(width)


NOTHING = Bits(0, 0)
BitsFn = Callable[..., Bits]
BITWISE = ("and", "or", "xor", "not")
SHIFTS = ("shl", "shr")
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def fields(words: tuple[str, ...], width: int) -> BitsFn | None:
    """What of its result is known, if only some bits of the operands are; None: nothing is said of it.

    `width`: of the operands, which are the low bits of what is given.
    """
    head, kind = words[0], words[-1]
    if kind[0] not in "usbp" and head not in ("mov", "selp"):
        return None
    if head in BITWISE:
        bitwise: dict[str, BitsFn] = {"and": _and, "or": _or, "xor": _xor, "not": lambda a: _not(a, width)}
        return bitwise[head]
    if head in SHIFTS:
        return _shift(head, width, signed=kind.startswith("s"))
    if head == "add" and kind[1:] in ("32", "64") and len(words) == 2:
        return lambda a, b: _sum(a, b, width)
    if head == "mov" and len(words) == 2:
        return lambda a: a
    if head == "cvt" and len(words) == 3 and words[1][0] in "usb":
        return lambda a: _widened(a, int(kind[1:]), int(words[1][1:]), signed=kind[0] == "s")
    if head == "selp":
        return lambda a, b, p: (a if p.value else b) if p.known else _both(a, b)
    if head == "setp" and len(words) == 3:
        how = UNSIGNED.get(words[1], words[1])
        return lambda a, b: compared(how, a, b, width, signed=kind[0] == "s" and words[1] not in UNSIGNED)
    if head == "prmt" and len(words) == 2:
        return lambda a, b, c: _permuted(a, b, c.whole(32))
    if head == "bfe" and kind[0] == "u":
        return lambda a, at, size: _extracted(a, at.whole(32), size.whole(32), width)
    return None


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
    """One of the two."""
    same = a.known & b.known & ~(a.value ^ b.value)
    return Bits(same, a.value & same)


def _shift(head: str, width: int, *, signed: bool) -> BitsFn:
    def shifted(a: Bits, b: Bits) -> Bits:
        by = b.whole(32)
        if by is None:
            return NOTHING
        by = min(by, width)
        if head == "shl":
            return a.up(by, width)
        found = a.part(by, width - by)
        return found if signed else Bits(found.known | (1 << width) - (1 << width - by), found.value)

    return shifted


def _sum(a: Bits, b: Bits, width: int) -> Bits:
    """A sum in which no bit is set on both sides is what `or` gives; else as far up as both are known."""
    mask = (1 << width) - 1
    if (a.known & ~a.value | b.known & ~b.value) & mask == mask:
        return _or(a, b)
    both = a.known & b.known
    length = (~both & both + 1).bit_length() - 1
    known = (1 << min(length, width)) - 1
    return Bits(known, a.value + b.value & known)


def _widened(a: Bits, source: int, to: int, *, signed: bool) -> Bits:
    a = a.low(min(source, to))
    if to <= source:
        return a
    above = (1 << to) - (1 << source)
    if not signed:
        return Bits(a.known | above, a.value)
    if not a.known >> source - 1 & 1:
        return a
    return Bits(a.known | above, a.value | (above if a.value >> source - 1 & 1 else 0))


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
    found = a.part(at, min(size, width - at))
    return Bits(found.known | (1 << width) - (1 << min(size, width - at)), found.value)


def packed(parts: list[Bits], width: int) -> Bits:
    """Numbers side by side in one of `width` bits, the first one lowest."""
    each = width // len(parts)
    known = value = 0
    for number, one in enumerate(parts):
        one = one.low(each)
        known, value = known | one.known << number * each, value | one.value << number * each
    return Bits(known, value)
