"""Several numbers in one word: the same operation on each, and sums of products.

In: an operation on one number, a type. Out: `lanewise`, `OPERATIONS`. Source: PTX ISA "add", "max", "dp4a", "dp2a".
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.program.arith.integers import Maker, Operation, reader
from memmodel.ptx.vocabulary import DataType


def lanewise(fn: Operation, type: DataType) -> Operation:
    """An operation on each lane of a packed type. If one result is open, so is the whole."""
    width = type.width // type.lanes
    mask, firsts = type.element.mask, range(0, type.width, width)

    def each(*args: int) -> int | None:
        result = 0
        for first in firsts:
            part = fn(*(arg >> first & mask for arg in args))
            if part is None:
                return None
            result |= part << first
        return result

    return each


def _dot(first: DataType, second: DataType, lowest: int) -> Maker:
    """The sum of the products of numbers side by side; those of the second word begin at a bit."""

    def make(type: DataType) -> Operation:
        read_first, read_second, mask = reader(first), reader(second), type.mask
        places = range(type.width // first.width)

        def dot(a: int, b: int, c: int) -> int:
            products = (
                read_first(a >> first.width * place) * read_second(b >> lowest + second.width * place)
                for place in places
            )
            return sum(products) + c & mask

        return dot

    return make


KINDS: tuple[tuple[str, str], ...] = tuple((a, b) for a in ("u32", "s32") for b in ("u32", "s32"))

OPERATIONS: dict[str, Callable[[DataType], Operation]] = {
    **{f"dp4a.{a}.{b}": _dot(DataType(a[0], 8), DataType(b[0], 8), 0) for a, b in KINDS},
    **{f"dp2a.lo.{a}.{b}": _dot(DataType(a[0], 16), DataType(b[0], 8), 0) for a, b in KINDS},
    **{f"dp2a.hi.{a}.{b}": _dot(DataType(a[0], 16), DataType(b[0], 8), 16) for a, b in KINDS},
}
