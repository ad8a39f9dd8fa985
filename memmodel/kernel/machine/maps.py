"""Tensor maps of a launch and of tensormap.replace, and the bytes that a box of one touches.

In: the number that stands for the 128 bytes of a map (`memory.tensormap`), coordinates. Out: `Copied`: stretches of
global memory, and of shared memory behind the swizzle. Source: PTX ISA "Tensors", "Swizzling Modes".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from memmodel.kernel.launch import TensorMapSpec
from memmodel.memory.tensormap import (
    ADDRESS,
    ELEMENT_BYTES,
    RANK,
    TensorMap,
    box_field,
    extract,
    insert,
    size_field,
    stride_field,
)

SWIZZLE = (80, 4)
STRIDED = (84, 1)
INTERLEAVED = (85, 1)
"""Fields of ours beside those of `memory.tensormap`: code of the swizzle, element strides above 1, interleave."""

SPANS = {0: 0, 1: 32, 2: 64, 3: 128, 4: 96}
"""Bytes of a row by the code of `.swizzle_mode`."""

ELEMENT_SIZES = {0: 1, 1: 2, 2: 4, 3: 4, 4: 8, 5: 8, 6: 2, 7: 4, 8: 4, 9: 8, 10: 2, 11: 4, 12: 4, 15: 1}
"""Bytes of an element by the code of its type; 13 and 14 pack two of them into a byte ("tensormap.replace")."""

Stretch = tuple[int, int]
"""First byte and length."""


def described(spec: TensorMapSpec) -> int:
    """The number that stands for a map of the launch."""
    rank = len(spec.dims)
    strides = tuple(spec.strides_bytes[: rank - 1])
    number = TensorMap(spec.address, spec.element_bytes, spec.dims, spec.box, strides).pack()
    code = next((code for code, span in SPANS.items() if span == spec.swizzle), 0)
    return insert(number, SWIZZLE, code)


@dataclass(frozen=True, slots=True)
class Tile:
    """A map taken apart. `span`: bytes of the swizzle, 0 for none."""

    map: TensorMap
    span: int

    @property
    def size(self) -> int:
        """Bytes that a copy transfers."""
        return self.map.box_bytes

    def outside(self, coordinates: tuple[int, ...]) -> list[Stretch]:
        """The bytes in global memory, joined where they touch."""
        found: list[Stretch] = []
        for address, size in self.map.rows(coordinates):
            if address is None:
                continue
            if found and sum(found[-1]) == address:
                found[-1] = (found[-1][0], found[-1][1] + size)
            else:
                found.append((address, size))
        return found

    def inside(self, first: int) -> list[Stretch]:
        """The bytes in shared memory of a box that begins at this address."""
        inner = self.map.box[0] * self.map.element
        rows = prod(self.map.box[1:])
        if inner >= self.span:
            return [(first, inner * rows)]
        # A row is as long as the span; the swizzle moves its pieces of 16 bytes.
        return joined([(swizzled(first + row * self.span + at, self.span), min(16, inner - at))
                       for row in range(rows) for at in range(0, inner, 16)])  # fmt: skip


def read_map(number: int) -> Tile | str:
    """A map from its number, or why it is none that is known. A type that nobody set in zeroed memory is .u8."""
    if not extract(number, ELEMENT_BYTES):
        number = insert(number, ELEMENT_BYTES, ELEMENT_SIZES[0])
    found = TensorMap.unpack(number)
    if found is None:
        return "no tensor map is known to lie there"
    if extract(number, STRIDED):
        return "element strides above 1 are not known"
    if extract(number, INTERLEAVED):
        return "interleaved tensor maps are not known"
    return Tile(found, SPANS.get(extract(number, SWIZZLE), 0))


def replaced(number: int, field: str, axis: int, value: int) -> int | None:
    """The map with a new value in a field ("tensormap.replace"); None if the value is not known here."""
    if field == "elemtype":
        size = ELEMENT_SIZES.get(value)
        return None if size is None else insert(number, ELEMENT_BYTES, size)
    if field == "rank":
        return insert(number, RANK, value + 1)
    if field == "element_stride":
        return insert(number, STRIDED, 1) if value != 1 else number
    if field == "interleave_layout":
        return insert(number, INTERLEAVED, value != 0)
    if field == "swizzle_mode":
        return insert(number, SWIZZLE, value)
    where = {"global_address": ADDRESS, "global_dim": size_field(axis), "box_dim": box_field(axis)}
    if field == "global_stride":
        return insert(number, stride_field(axis), value) if axis < 4 else None
    return insert(number, where[field], value) if field in where else number


def swizzled(address: int, span: int) -> int:
    """Where the swizzle puts a byte: the number of its 16-byte piece in the row is mixed with that of the row."""
    if span not in (32, 64, 128):
        return address
    mask = span // 16 - 1
    return address ^ (address >> 7 & mask) << 4


def joined(stretches: list[Stretch]) -> list[Stretch]:
    """Stretches in order, joined where they touch."""
    found: list[Stretch] = []
    for first, size in sorted(stretches):
        if found and found[-1][0] + found[-1][1] >= first:
            end = max(sum(found[-1]), first + size)
            found[-1] = (found[-1][0], end - found[-1][0])
        else:
            found.append((first, size))
    return found
