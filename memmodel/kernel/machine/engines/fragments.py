"""Matrices that a warp moves: the steps MoveMatrix and Forget.

In: a step. Out: what the warp does at it. What is loaded or stored is unknown afterwards; what is settled here is
which lane moves which bytes: of a row four neighbouring lanes four bytes each, which is what they have of it in
registers; of a row whose elements go to other lanes, and of a whole matrix, some lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from memmodel.base.labels import Side
from memmodel.kernel.machine.parts import Faulty, LaneGroup, Lanes, Warp
from memmodel.kernel.machine.regions.locate import aligned
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.machine.values.lanes import forgetting
from memmodel.kernel.trace.blocks import Block
from memmodel.program.regions import LaneRows, MatrixLines
from memmodel.program.warp_ops import Forget, MoveMatrix

if TYPE_CHECKING:
    from memmodel.kernel.machine.interpret import Interpreter

PIECE, LANES_OF_ROW, MATRICES = 4, 4, 8
"""Bytes that a lane moves at once, the lanes that share a row, and the rows after which the lanes begin again."""

Pieces = tuple[Block, int, list[int], Lanes | None]
"""A block, how many bytes a piece has, where each begins, and the lane that moves it: None if that is not specified."""


def forget(interpreter: Interpreter, op: Forget) -> Blocking:
    """The registers receive unknown values."""
    clear = forgetting([interpreter.slot(register) for register in op.registers])

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        clear(warp, lanes)
        return True

    return run


def move_matrix(interpreter: Interpreter, op: MoveMatrix) -> Blocking:
    """The accesses of a warp to its matrices."""
    number, clear = interpreter.instruction.number, forgetting([interpreter.slot(name) for name in op.registers])
    region = op.region
    if isinstance(region, LaneRows):
        locate, element = _rows(interpreter, region, op), PIECE
        fragment = f"rows {op.transposed}" if op.label.side is Side.WRITE else ""
    else:
        locate, element, fragment = _lines(interpreter, region), max(1, region.bits // 8), region.fragment

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        block, size, offsets, movers = locate(machine, warp, lanes)
        if movers is None:
            machine.weak_matrix(warp, lanes, block, offsets, size, op.label, number, element, fragment)
        else:
            machine.weak_lanes(warp, movers, block, offsets, size, op.label, number, element)
        if op.label.side is Side.WRITE:
            machine.forget_all(block, offsets, size)
            for offset in offsets:
                block.forget(offset, size)
        clear(warp, lanes)
        return True

    return run


def _rows(interpreter: Interpreter, region: LaneRows, op: MoveMatrix) -> Callable[[Machine, Warp, Lanes], Pieces]:
    """The rows that the first lanes name. Where the elements of a piece belong to several lanes, no one moves it."""
    pointer, instruction = interpreter.location(region.address, region.window), interpreter.instruction
    columns = region.moved // PIECE

    def locate(machine: Machine, warp: Warp, lanes: Lanes) -> Pieces:
        addresses = pointer.address(warp)
        places = [
            pointer.place(machine, warp, addresses[lane], region.size, instruction) for lane in lanes[: region.rows]
        ]
        block = places[0][0]
        if any(other is not block for other, _ in places):
            raise Faulty("undefined-address", "the rows of a matrix lie in different objects")
        if any(first % region.size for _, first in places):
            raise Faulty("undefined-address", f"a row of a matrix is misaligned for {region.size} bytes")
        offsets = [first + PIECE * column for _, first in places for column in range(columns)]
        if op.transposed is not False:
            return block, PIECE, offsets, None
        movers = [row % MATRICES * LANES_OF_ROW + column for row in range(len(places)) for column in range(columns)]
        return block, PIECE, offsets, movers

    return locate


def _lines(interpreter: Interpreter, region: MatrixLines) -> Callable[[Machine, Warp, Lanes], Pieces]:
    """The lines of a whole matrix, from the address that all lanes name."""
    pointer, instruction = interpreter.location(region.address, region.window), interpreter.instruction
    strides = None if region.stride is None else interpreter.value(region.stride)
    size = region.length * region.bits // 8
    piece = min(PIECE, size)

    def locate(machine: Machine, warp: Warp, lanes: Lanes) -> Pieces:
        stride = region.length if strides is None else strides(warp)[lanes[0]]
        if stride is None:
            machine.unknown("the stride", instruction)
        apart = stride * region.bits // 8
        whole = apart * (region.lines - 1) + size
        block, first = pointer.find(machine, warp, lanes[0], whole, instruction)
        aligned(block, first, region.align)
        offsets = [first + line * apart + byte for line in range(region.lines) for byte in range(0, size, piece)]
        return block, piece, offsets, None

    return locate
