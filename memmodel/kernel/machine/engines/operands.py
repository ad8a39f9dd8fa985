"""Operands of asynchronous instructions: tensor maps with coordinates, masks of CTAs.

In: operands as written. Out: what they name in a run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memmodel.kernel.machine.parts import Warp
from memmodel.kernel.machine.pure import Compiler
from memmodel.kernel.machine.regions.maps import Stretch, Tile, read_map
from memmodel.kernel.machine.state import Machine
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.problems import Refused
from memmodel.memory.tensormap import TENSORMAP_BYTES
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Operand, TensorOperand, Vector
from memmodel.ptx.vocabulary import Window


@dataclass(frozen=True, slots=True)
class BoxAt:
    """A box of a tensor: where its map lies, its bytes in global memory, its size, and its bytes behind an address.

    `negative`: a coordinate is below zero. `packed`: the type of its elements, if it is smaller than a byte.
    """

    block: Block
    at: int
    outside: list[Stretch]
    size: int
    inside: Callable[[int], list[Stretch]]
    negative: bool
    packed: str = ""


def maps_of(
    compiler: Compiler, instruction: PtxInstruction, operand: Operand, offsets: Operand | None = None
) -> Callable[[Machine, Warp, int], BoxAt]:
    """`[map, {c0, c1, …}]`: the box that a lane names. `offsets`: of im2col."""
    if not isinstance(operand, TensorOperand) or len(operand.rest) != 1:
        raise Refused(f"{instruction.opcode} takes a tensor map and coordinates in brackets here", instruction.span)
    vector = operand.rest[0]
    items = vector.items if isinstance(vector, Vector) else (vector,)
    where = compiler.get(operand.base, instruction)
    gets = [compiler.get(one, instruction, 32) for one in items]
    words = instruction.words
    rows = 4 if "tile::gather4" in words or "tile::scatter4" in words else 0
    image = "im2col" in words or "im2col_no_offs" in words
    moves = [] if offsets is None else offsets.items if isinstance(offsets, Vector) else (offsets,)
    moved = [compiler.get(one, instruction, 16) for one in moves]

    def find(machine: Machine, warp: Warp, lane: int) -> BoxAt:
        address = where(warp)[lane]
        given = [get(warp)[lane] for get in gets]
        if None in given:
            machine.unknown("a coordinate of the box", instruction)
        at = [_signed(one or 0) for one in given]
        address = None if address is None else address + operand.offset
        block, first = machine.place(warp, "generic", address, TENSORMAP_BYTES, instruction, Window.MAPS)
        number = block.load(first, TENSORMAP_BYTES)
        tile = "what the tensor map holds is not known" if number is None else read_map(number)
        if isinstance(tile, str):
            raise Refused(tile, instruction.span)
        if image is not (tile.corners is not None):
            raise Refused(f"the tensor map is {'not ' if image else ''}for im2col", instruction.span)
        if rows:
            return _rows(block, first, tile, at[0], at[1:])
        if len(at) != len(tile.map.sizes):
            message = f"the tensor map has {len(tile.map.sizes)} dimensions, and {len(at)} coordinates are given"
            raise Refused(message, instruction.span)
        distances = [get(warp)[lane] for get in moved] or [0] * (len(at) - 2)
        if None in distances:
            machine.unknown("an offset of im2col", instruction)
        if len(distances) != max(0, len(at) - 2):
            raise Refused(f"im2col takes {len(at) - 2} offsets here, and {len(distances)} are given", instruction.span)
        outside = tile.outside(tuple(at), tuple(one or 0 for one in distances))
        if outside is None:
            raise Refused("the coordinates lie outside the bounding box of im2col", instruction.span)
        return BoxAt(block, first, outside, tile.size, tile.inside, min(at) < 0, tile.packed)

    return find


def _rows(block: Block, first: int, tile: Tile, column: int, rows: list[int]) -> BoxAt:
    """.tile::gather4 and .tile::scatter4: four rows of a matrix."""
    outside = [one for row in rows for one in tile.outside((column, row)) or ()]
    size = tile.size * len(rows)

    def inside(where: int) -> list[Stretch]:
        return [(where, max(tile.inner, tile.span) * len(rows))]

    return BoxAt(block, first, outside, size, inside, min(column, *rows) < 0, tile.packed)


def _signed(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def multicast_ranks(machine: Machine, warp: Warp, mask: int, instruction: PtxInstruction) -> list[int]:
    """The CTAs of the cluster that a mask names."""
    ranks = [rank for rank in range(16) if mask >> rank & 1]
    for rank in ranks:
        if (warp.cta.cluster, rank) not in machine.ctas:
            raise Refused(f"the mask {mask:#x} names a CTA that the cluster does not have", instruction.span)
    return ranks
