"""Matrix descriptors: the bytes of shared memory that an operand of wgmma or tcgen05.mma touches.

In: a descriptor, rows, bytes of a row, which way the matrix is stored. Out: stretches. A matrix has `rows` along M
or N and `depth` bytes along K. Sources: PTX ISA "Matrix Descriptor Format", "Canonical Layouts", "Swizzling Modes":

    K-major, no swizzle            ((8, m), (16, k)) : ((16, SBO), (1, LBO))
    K-major, swizzle of S bytes    ((8, m), S)       : ((S, SBO), 1)
    M-major, no swizzle            ((16, m), (8, k)) : ((1, SBO), (16, LBO))
    M-major, swizzle of S bytes    ((S, m), (8, k))  : ((1, LBO), (S, SBO))
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from memmodel.kernel.machine.parts import Cta, Warp
from memmodel.kernel.machine.regions.maps import Stretch, joined, swizzled
from memmodel.kernel.machine.state import Machine, Span
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Space, Window

HOPPER_SPANS = {0: 0, 1: 128, 2: 64, 3: 32}
BLACKWELL_SPANS = {0: 0, 1: 128, 2: 128, 4: 64, 6: 32}
"""Bytes of the swizzle by its code in a descriptor; 1 of tcgen05 mixes pieces of 32 bytes."""

PIECE = 16


@dataclass(frozen=True, slots=True)
class MatrixDescriptor:
    """A descriptor taken apart: first byte, distances in bytes, bytes of the swizzle."""

    start: int
    leading: int
    stride: int
    span: int
    coarse: bool = False


def hopper(value: int) -> MatrixDescriptor:
    """A descriptor of wgmma."""
    return _fields(value, HOPPER_SPANS.get(value >> 62 & 3, 0))


def blackwell(value: int) -> MatrixDescriptor | None:
    """A descriptor of tcgen05; None if its layout is not known."""
    code = value >> 61 & 7
    if code not in BLACKWELL_SPANS or value >> 52 & 1:
        return None
    return _fields(value, BLACKWELL_SPANS[code], coarse=code == 1)


def _fields(value: int, span: int, *, coarse: bool = False) -> MatrixDescriptor:
    start, leading, stride = ((value >> at & 0x3FFF) << 4 for at in (0, 16, 32))
    return MatrixDescriptor(start, leading, stride, span, coarse)


def matrix_bytes(matrix: MatrixDescriptor, rows: int, depth: int, element: int, *, transposed: bool) -> list[Stretch]:
    """The bytes that a matrix touches, relative to the shared memory of its CTA; `element` in bits."""
    return list(_bytes(matrix, rows, depth, element, transposed))


def matrix_spans(
    machine: Machine, warp: Warp, cta: Cta, matrix: MatrixDescriptor, shape: tuple[int, int, int], window: Window,
    instruction: PtxInstruction, *, transposed: bool, mask: int = -1,
) -> list[Span]:  # fmt: skip
    """The bytes of a matrix in the shared memory of a CTA. `shape`: rows, depth and bits of an element; `mask`: the
    bits that count of an address there.
    """
    key = warp.cta.number, cta.number, matrix, shape, window, transposed, mask
    if key not in machine.matrices:
        stretches = [
            (first & mask | cta.base, size) for first, size in matrix_bytes(matrix, *shape, transposed=transposed)
        ]
        machine.matrices[key] = [
            (*machine.addressing.place(warp, Space.SHARED, first, size, instruction, window), size)
            for first, size in stretches
        ]
    return machine.matrices[key]


@lru_cache(maxsize=1 << 14)
def _bytes(matrix: MatrixDescriptor, rows: int, depth: int, element: int, transposed: bool) -> tuple[Stretch, ...]:
    width = max(matrix.span, PIECE)
    pieces: set[int] = set()
    if not transposed:
        for row in range(rows):
            first = matrix.start + row // 8 * matrix.stride + row % 8 * width
            for at in range(0, depth, PIECE):
                pieces.add(first + (at if matrix.span else at // PIECE * matrix.leading))
    else:
        along, columns = max(1, rows * element // 8), max(1, depth * 8 // element)
        groups, others = (matrix.leading, matrix.stride) if matrix.span else (matrix.stride, matrix.leading)
        for column in range(columns):
            first = matrix.start + column // 8 * others + column % 8 * width
            for at in range(0, along, PIECE):
                pieces.add(first + at // width * groups + at % width)
    return tuple(joined([(_moved(piece, matrix), PIECE) for piece in pieces]))


def _moved(address: int, matrix: MatrixDescriptor) -> int:
    if matrix.coarse:
        return address ^ (address >> 7 & 3) << 5
    return swizzled(address, matrix.span)
