"""Tensor maps of a launch and of tensormap.replace, and the bytes that a box of one touches.

In: the number that stands for the 128 bytes of a map (`memory.tensormap`), coordinates. Out: `Copied`: stretches of
global memory, and of shared memory after the swizzle. Source: PTX ISA "Tensors", "Swizzling Modes".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from operator import mul

from memmodel.kernel.launch import TensorMapSpec
from memmodel.memory.tensormap import (
    ELEMENT_BYTES,
    ELEMENT_SIZES,
    IM2COL,
    INTERLEAVED,
    NAN_FILL,
    PACKED,
    PACKING,
    SWIZZLE,
    TensorMap,
    corner_fields,
    extract,
    insert,
    step_field,
)

SPANS = {0: 0, 1: 32, 2: 64, 3: 128, 4: 96}
"""Bytes of a row by the code of `.swizzle_mode`."""

_, DENSE_4_BITS, PADDED_4_BITS, PADDED_6_BITS = PACKED
BITS = {DENSE_4_BITS: (4, 4), PADDED_4_BITS: (4, 8), PADDED_6_BITS: (6, 8)}
"""Bits of an element in global memory, and in shared memory with its part of the padding ("Sub-byte Types")."""

Stretch = tuple[int, int]
"""First byte and length."""


def packed_map(spec: TensorMapSpec) -> int:
    """The number that stands for a map of the launch."""
    rank, image = len(spec.dims), spec.im2col
    strides = tuple(spec.strides_bytes[: rank - 1])
    box = spec.box if image is None else (image.channels, image.pixels, *(1,) * (rank - 2))
    number = TensorMap(spec.address, spec.element_bytes, spec.dims, box, strides).pack()
    for axis, step in enumerate(spec.element_strides):
        number = insert(number, step_field(axis), step - 1)
    if image is not None:
        number = insert(number, IM2COL, 1)
        for axis, (low, high) in enumerate(zip(image.lower, image.upper, strict=True)):
            lower, upper = corner_fields(axis)
            number = insert(insert(number, lower, low), upper, high)
    number = insert(number, PACKING, PACKED.index(spec.packed or ""))
    code = next(code for code, span in SPANS.items() if span == spec.swizzle)
    return insert(number, SWIZZLE, code)


@dataclass(frozen=True, slots=True)
class Tile:
    """The boxes of a tensor map, as a copy takes them. `span`: bytes of the swizzle, 0 for none. `steps`: element
    strides. `corners`: of the bounding box of im2col, in each of its dimensions. `packed`: the type, if it is smaller
    than a byte. `nan`: what lies outside the tensor is read as NaN.
    """

    map: TensorMap
    span: int
    steps: tuple[int, ...]
    corners: tuple[tuple[int, int], ...] | None = None
    packed: str = ""
    nan: bool = False

    @property
    def bits(self) -> tuple[int, int]:
        """Bits of an element in global and in shared memory."""
        return BITS.get(self.packed, (8 * self.map.element,) * 2)

    @property
    def inner(self) -> int:
        """Bytes of the innermost dimension of a box in shared memory."""
        return self.map.box[0] * self.bits[1] // 8

    @property
    def shape(self) -> tuple[int, ...]:
        """How many elements a copy takes in each dimension: in im2col as many pixels as the map says."""
        inner, *others = self.map.box
        if self.corners is not None:
            return self.map.box
        return inner, *(-(-size // step) for size, step in zip(others, self.steps[1:], strict=True))

    @property
    def size(self) -> int:
        """Bytes that a copy transfers, with the padding."""
        return self.inner * prod(self.shape[1:])

    def global_bytes(self, coordinates: tuple[int, ...], offsets: tuple[int, ...] = ()) -> list[Stretch] | None:
        """The bytes in global memory, joined where they touch. `offsets`: of im2col; None: outside its bounding box."""
        pixels = self._tiled(coordinates[1:]) if self.corners is None else self._pixels(coordinates[1:], offsets)
        stretches: list[Stretch] = []
        inner, sizes = self._inner_bytes(coordinates[0]), self.map.sizes[1:]
        for at in pixels or ():
            row = None if inner is None else self._row(inner, at, sizes)
            if row is None:
                continue
            if stretches and sum(stretches[-1]) == row[0]:
                stretches[-1] = (stretches[-1][0], stretches[-1][1] + row[1])
            else:
                stretches.append(row)
        return None if pixels is None else stretches

    def _inner_bytes(self, first: int) -> Stretch | None:
        """The bytes of the innermost dimension from a coordinate on, as far as they lie in the tensor."""
        low, high = max(first, 0), min(first + self.map.box[0], self.map.sizes[0])
        bits = self.bits[0]
        begin, end = low * bits // 8, -(-high * bits // 8)
        return (self.map.address + begin, end - begin) if high > low else None

    def _row(self, inner: Stretch, at: tuple[int, ...], sizes: tuple[int, ...]) -> Stretch | None:
        """The bytes of a row at outer coordinates; None if they lie outside the tensor. `inner`: those of the first row
        of the tensor.
        """
        for place, size in zip(at, sizes, strict=True):
            if not 0 <= place < size:
                return None
        return inner[0] + sum(map(mul, at, self.map.strides)), inner[1]

    def _tiled(self, start: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The outer coordinates of a box: each dimension is traversed in its steps ("Traversal-Stride")."""
        sides = zip(start, self.map.box[1:], self.steps[1:], strict=True)
        ranges = [range(first, first + size, step) for first, size, step in sides]
        return [at[::-1] for at in product(*reversed(ranges))]

    def _pixels(self, start: tuple[int, ...], offsets: tuple[int, ...]) -> list[tuple[int, ...]] | None:
        """The outer coordinates of im2col: as many bases as there are pixels per column, in the bounding box and then
        in the next image, each moved by the offsets ("im2col mode"). None: the first one lies outside the bounding box.
        """
        assert self.corners is not None
        bounds = [(low, size - 1 + high) for (low, high), size in zip(self.corners, self.map.sizes[1:], strict=False)]
        *base, image = start
        if any(not low <= c <= high for c, (low, high) in zip(base, bounds, strict=True)):
            return None
        pixels = []
        for _ in range(self.map.box[1]):
            pixels.append((*(c + offset for c, offset in zip(base, offsets, strict=True)), image))
            for axis, (low, high) in enumerate(bounds):
                base[axis] += self.steps[axis + 1]
                if base[axis] <= high:
                    break
                base[axis] = low
            else:
                image += 1
        return pixels

    def shared_bytes(self, first: int) -> list[Stretch]:
        """The bytes in shared memory of a box that begins at this address."""
        inner = self.inner
        rows = prod(self.shape[1:])
        if inner >= self.span:
            return [(first, inner * rows)]
        # A row is as long as the span; the swizzle moves its pieces of 16 bytes.
        return joined([(swizzled(first + row * self.span + at, self.span), min(16, inner - at))
                       for row in range(rows) for at in range(0, inner, 16)])  # fmt: skip


@lru_cache(maxsize=256)
def read_map(number: int) -> Tile | str:
    """A map from its number, or why no map is known there. A type that was never set in zeroed memory is .u8."""
    if not extract(number, ELEMENT_BYTES):
        number = insert(number, ELEMENT_BYTES, ELEMENT_SIZES[0])
    tensor_map = TensorMap.unpack(number)
    if tensor_map is None:
        return "no tensor map is known to lie there"
    if extract(number, INTERLEAVED):
        return "interleaved tensor maps are not known"
    rank = len(tensor_map.sizes)
    steps = tuple(extract(number, step_field(axis)) + 1 for axis in range(rank))
    corners = None
    if extract(number, IM2COL):
        ends = [corner_fields(axis) for axis in range(rank - 2)]
        corners = tuple((_corner(number, lower), _corner(number, upper)) for lower, upper in ends)
    packed = PACKED[extract(number, PACKING)]
    span, nan = SPANS.get(extract(number, SWIZZLE), 0), bool(extract(number, NAN_FILL))
    return Tile(tensor_map, span, steps, corners, packed, nan)


def _corner(number: int, field: tuple[int, int]) -> int:
    value = extract(number, field)
    return value - (1 << 16) if value >> 15 else value


def swizzled(address: int, span: int) -> int:
    """Where the swizzle puts a byte: the number of its 16-byte piece in the row is mixed with that of the row."""
    if span not in (32, 64, 128):
        return address
    mask = span // 16 - 1
    return address ^ (address >> 7 & mask) << 4


def joined(stretches: list[Stretch]) -> list[Stretch]:
    """Stretches in order, joined where they touch."""
    result: list[Stretch] = []
    for first, size in sorted(stretches):
        if result and result[-1][0] + result[-1][1] >= first:
            end = max(sum(result[-1]), first + size)
            result[-1] = (result[-1][0], end - result[-1][0])
        else:
            result.append((first, size))
    return result
