"""What the 128 bytes of a tensor map say, as a number and taken apart.

In: the fields of a map. Out: the number that stands for its bytes, and back. PTX leaves the format to the hardware
("tensormap.replace"); this one is ours, and nothing shows it. All sizes count elements, innermost dimension first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

TENSORMAP_BYTES = 128
MAX_DIMENSIONS = 5

ADDRESS = (0, 64)
"""The first bit and the width of the field `global_address`."""

RANK = (64, 8)
ELEMENT_BYTES = (72, 8)
SWIZZLE, INTERLEAVED = (80, 4), (85, 1)
"""The code of the swizzle, and whether the layout is interleaved. Litmus tests have neither."""

IM2COL, PACKING, NAN_FILL = (86, 1), (88, 2), (90, 1)
"""Whether the map is for im2col, the place of its type among those of elements below a byte (`PACKED`), and whether
what lies outside the tensor is read as NaN (`fill_mode`)."""

_SIZES, _BOX, _STRIDES, _STEPS, _LOWER, _UPPER = 96, 256, 352, 608, 648, 696
_SIZE_BITS, _BOX_BITS, _STRIDE_BITS, _STEP_BITS, _CORNER_BITS = 32, 16, 64, 8, 16

ELEMENT_SIZES = {0: 1, 1: 2, 2: 4, 3: 4, 4: 8, 5: 8, 6: 2, 7: 4, 8: 4, 9: 8, 10: 2, 11: 4, 12: 4, 13: 1, 14: 1, 15: 1}
"""Bytes of an element by the code of its type ("tensormap.replace"); the last three are smaller than a byte."""

PACKED = ("", "b4x16", "b4x16_p64", "b6x16_p32")
LAST_PLAIN = 12
"""Types below a byte, from the code after the last plain one on; what the last one stores is .b6p2x16."""


def size_field(axis: int) -> tuple[int, int]:
    """Where the size of the tensor in a dimension stands (`global_dim`)."""
    return _SIZES + axis * _SIZE_BITS, _SIZE_BITS


def box_field(axis: int) -> tuple[int, int]:
    """Where the size of the box in a dimension stands (`box_dim`)."""
    return _BOX + axis * _BOX_BITS, _BOX_BITS


def stride_field(axis: int) -> tuple[int, int]:
    """Where the distance in bytes between neighbours in dimension axis + 1 stands (`global_stride`)."""
    return _STRIDES + axis * _STRIDE_BITS, _STRIDE_BITS


def step_field(axis: int) -> tuple[int, int]:
    """Where the element stride in a dimension stands, less one (`element_stride`)."""
    return _STEPS + axis * _STEP_BITS, _STEP_BITS


def corner_fields(axis: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where the lower and the upper corner of the bounding box of im2col stand, in one of its dimensions."""
    return (_LOWER + axis * _CORNER_BITS, _CORNER_BITS), (_UPPER + axis * _CORNER_BITS, _CORNER_BITS)


def insert(number: int, field: tuple[int, int], value: int) -> int:
    """The number with one field replaced."""
    first, width = field
    mask = (1 << width) - 1
    return number & ~(mask << first) | (value & mask) << first


def insertion(field: tuple[int, int]) -> str:
    """The operation of `program.arith` that replaces a field."""
    return f"insert {field[0]} {field[1]}"


def extract(number: int, field: tuple[int, int]) -> int:
    """One field of the number."""
    first, width = field
    return number >> first & (1 << width) - 1


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A tensor in global memory and the box that one copy moves. `strides`: bytes, for all dimensions but the first."""

    address: int
    element: int
    sizes: tuple[int, ...]
    box: tuple[int, ...]
    strides: tuple[int, ...]

    @staticmethod
    def dense(address: int, element: int, sizes: tuple[int, ...], box: tuple[int, ...]) -> TensorMap:
        """A tensor whose rows lie one after the other."""
        strides = tuple(element * prod(sizes[: axis + 1]) for axis in range(len(sizes) - 1))
        return TensorMap(address, element, sizes, box, strides)

    @property
    def box_bytes(self) -> int:
        return self.element * prod(self.box)

    def pack(self) -> int:
        """The number that stands for the bytes of the map."""
        number = 0
        for field, value in ((ADDRESS, self.address), (RANK, len(self.sizes)), (ELEMENT_BYTES, self.element)):
            number = insert(number, field, value)
        for axis, (size, box) in enumerate(zip(self.sizes, self.box, strict=True)):
            number = insert(insert(number, size_field(axis), size), box_field(axis), box)
        for axis, stride in enumerate(self.strides):
            number = insert(number, stride_field(axis), stride)
        return number

    @staticmethod
    def unpack(number: int) -> TensorMap | None:
        """The map that a number stands for; None if it stands for none."""
        rank, element = extract(number, RANK), extract(number, ELEMENT_BYTES)
        if not 1 <= rank <= MAX_DIMENSIONS or not element:
            return None
        sizes = tuple(extract(number, size_field(axis)) for axis in range(rank))
        box = tuple(extract(number, box_field(axis)) for axis in range(rank))
        strides = tuple(extract(number, stride_field(axis)) for axis in range(rank - 1))
        return TensorMap(extract(number, ADDRESS), element, sizes, box, strides) if all(sizes) and all(box) else None

    def rows(self, coordinates: tuple[int, ...]) -> Iterator[tuple[int | None, int]]:
        """The rows of the box at these coordinates, in the order of the tile: (address, bytes).

        An address of None: these bytes lie outside the tensor.
        """
        for inner in product(*(range(size) for size in reversed(self.box[1:]))):
            at = [c + i for c, i in zip(coordinates[1:], reversed(inner), strict=True)]
            if any(not 0 <= c < size for c, size in zip(at, self.sizes[1:], strict=True)):
                yield None, self.box[0] * self.element
                continue
            start = self.address + sum(c * stride for c, stride in zip(at, self.strides, strict=True))
            low, high = coordinates[0], coordinates[0] + self.box[0]
            first, last = min(max(low, 0), high), max(min(high, self.sizes[0]), low)
            last = max(first, last)
            if first > low:
                yield None, (first - low) * self.element
            if last > first:
                yield start + first * self.element, (last - first) * self.element
            if high > last:
                yield None, (high - last) * self.element
