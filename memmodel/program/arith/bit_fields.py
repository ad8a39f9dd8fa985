"""Bits inside a number: fields, masks, counts of bits, bytes, tables of bits.

In: a type. Out: `OPERATIONS`, as in `integers`; `inserted`. Source: the pseudocode of each page.
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.memory.tensormap import insert
from memmodel.program.arith.integers import Exact, Maker, Operation, reader
from memmodel.ptx.vocabulary import DataType

WORD = 0xFFFFFFFF


def unsigned(a: int, width: int) -> int:
    """The low bits of an integer as an unsigned number."""
    return a & (1 << width) - 1


def inserted(op: str, type: DataType) -> Operation:
    """`insert first width`: a number with a field replaced by the second argument."""
    first, width = (int(word) for word in op.split()[1:])
    return lambda number, value: insert(number, (first, width), value) & type.mask


def _on_pattern(fn: Callable[..., int]) -> Maker:
    """A function of the bits of its arguments as unsigned numbers, and of the type."""

    def make(type: DataType) -> Operation:
        mask = type.mask
        return lambda *args: fn(*(arg & mask for arg in args), type) & mask

    return make


def _bfe(type: DataType) -> Operation:
    """bfe: a field of bits; the sign of a signed field is its last bit inside the register."""
    width, mask, signed = type.width, type.mask, type.signed

    def bfe(a: int, position: int, length: int) -> int:
        position, length = position & 0xFF, length & 0xFF
        a &= mask
        field = unsigned(a >> position, length)
        if signed and length:
            sign = a >> min(position + length - 1, width - 1) & 1
            field |= -sign << max(0, min(length, width - position))
        return field & mask

    return bfe


def _bfi(type: DataType) -> Operation:
    """bfi: the lowest bits of a in place of a field of b."""
    mask = type.mask

    def bfi(a: int, b: int, position: int, length: int) -> int:
        position, length = position & 0xFF, length & 0xFF
        field = (1 << length) - 1 << position
        return (b & ~field | a << position & field) & mask

    return bfi


def _bfind(a: int, type: DataType) -> int:
    """bfind: the highest bit that differs from the sign."""
    a = reader(type)(a)
    return (~a if a < 0 else a).bit_length() - 1


def _shift_amount(a: int, type: DataType) -> int:
    """bfind.shiftamt: how far to shift left until that bit is the highest one."""
    place = _bfind(a, type)
    return -1 if place < 0 else type.width - 1 - place


def _resized(clamps: bool) -> Exact:
    def szext(a: int, n: int, type: DataType) -> int:
        n = min(n, type.width) if clamps else n & type.width - 1
        low = unsigned(a, n)
        return low - (1 << n) if type.signed and n and low >> n - 1 else low

    return szext


def _bit_mask(clamps: bool) -> Exact:
    def bmsk(first: int, count: int, type: DataType) -> int:
        first, count = (min(n, type.width) if clamps else n & type.width - 1 for n in (first, count))
        return unsigned(-1, count) << first

    return bmsk


def _nth_bit(mask: int, base: int, offset: int, type: DataType) -> int | None:
    """fns: the place of the n-th bit that is set, from `base` on, up or down; `base` is at most 31."""
    if base >= type.width:
        return None
    offset = reader(DataType("s", type.width))(offset)
    if offset == 0:
        return base if mask >> base & 1 else -1
    places = range(base, type.width) if offset > 0 else range(base, -1, -1)
    ones = [place for place in places if mask >> place & 1]
    return ones[abs(offset) - 1] if len(ones) >= abs(offset) else -1


def _fns(type: DataType) -> Operation:
    mask = type.mask

    def fns(a: int, base: int, offset: int) -> int | None:
        place = _nth_bit(a & mask, base & mask, offset, type)
        return None if place is None else place & mask

    return fns


def _pair(low: int, high: int) -> int:
    return (high & WORD) << 32 | low & WORD


def _prmt(a: int, b: int, selector: int, type: DataType) -> int:
    """prmt: four bytes chosen from eight; bit 3 of a choice repeats the sign of the byte."""
    source = _pair(a, b).to_bytes(8, "little")
    result = 0
    for place in range(4):
        choice = selector >> 4 * place & 0xF
        byte = source[choice & 7]
        result |= ((0xFF if byte & 0x80 else 0) if choice & 8 else byte) << 8 * place
    return result


PERMUTATIONS: dict[str, Callable[[int], tuple[int, ...]]] = {
    "f4e": lambda n: (n, n + 1, n + 2, n + 3),
    "b4e": lambda n: tuple((n - place) % 8 for place in range(4)),
    "rc8": lambda n: (n, n, n, n),
    "ecl": lambda n: tuple(max(n, place) for place in range(4)),
    "ecr": lambda n: tuple(min(n, place) for place in range(4)),
    "rc16": lambda n: (0, 1, 0, 1) if n % 2 == 0 else (2, 3, 2, 3),
}
"""The modes of prmt: for a selector, the byte of the pair that each byte of the result is."""


def _permuted(chosen: Callable[[int], tuple[int, ...]]) -> Exact:
    def prmt(a: int, b: int, selector: int, type: DataType) -> int:
        pair = _pair(a, b)
        return sum((pair >> 8 * byte & 0xFF) << 8 * place for place, byte in enumerate(chosen(selector & 3)))

    return prmt


def _lop3(a: int, b: int, c: int, table: int, type: DataType) -> int:
    """lop3: the table has the result for each of the eight combinations of bits; bit 7 is for 1, 1, 1."""
    result = 0
    for entry in range(8):
        if table >> entry & 1:
            result |= (a if entry & 4 else ~a) & (b if entry & 2 else ~b) & (c if entry & 1 else ~c)
    return result


def _funnel(left: bool, wraps: bool) -> Exact:
    """shf: b above a, shifted; the upper word of a left shift, the lower one of a right shift."""

    def shf(a: int, b: int, amount: int, type: DataType) -> int:
        amount = amount & 31 if wraps else min(amount, 32)
        both = _pair(a, b)
        return both << amount >> 32 if left else both >> amount

    return shf


def _carryless(upper: bool) -> Exact:
    """clmad: a half of the product of two polynomials over bits."""

    def product(a: int, b: int, type: DataType) -> int:
        total = 0
        for place in range(type.width):
            if a >> place & 1:
                total ^= b << place
        return total >> type.width if upper else total

    return product


OPERATIONS: dict[str, Maker] = {
    "bfe": _bfe,
    "bfi": _bfi,
    "popc": _on_pattern(lambda a, type: a.bit_count()),
    "clz": _on_pattern(lambda a, type: type.width - a.bit_length()),
    "brev": _on_pattern(lambda a, type: int(f"{a:0{type.width}b}"[::-1], 2)),
    "bfind": _on_pattern(_bfind),
    "bfind.shiftamt": _on_pattern(_shift_amount),
    "fns": _fns,
    **{f"szext.{mode}": _on_pattern(_resized(mode == "clamp")) for mode in ("clamp", "wrap")},
    **{f"bmsk.{mode}": _on_pattern(_bit_mask(mode == "clamp")) for mode in ("clamp", "wrap")},
    "prmt": _on_pattern(_prmt),
    **{f"prmt.{mode}": _on_pattern(_permuted(chosen)) for mode, chosen in PERMUTATIONS.items()},
    "lop3": _on_pattern(_lop3),
    **{
        f"shf.{side}.{mode}": _on_pattern(_funnel(side == "l", mode == "wrap"))
        for side in "lr"
        for mode in ("wrap", "clamp")
    },
    "clmul.lo": _on_pattern(_carryless(upper=False)),
    "clmul.hi": _on_pattern(_carryless(upper=True)),
}
