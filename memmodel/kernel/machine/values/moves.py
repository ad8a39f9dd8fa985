"""Which loads and stores move values that a run follows.

In: the instructions of an entry, the stores that are asked about. Out: the registers that lead to these stores, and a
`Move` for each load and store on the way. A load reads what any store may leave that is followed and whose state space
it may meet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memmodel.isa.lowered import lowered, registers
from memmodel.program.expressions import Expr, Get, leaves_of, space_named
from memmodel.program.ops import Read, Write
from memmodel.program.regions import Elements, LaneRows
from memmodel.program.warp_ops import MoveMatrix
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Mem, TensorOperand
from memmodel.ptx.vocabulary import Sem

PIECE = 4
"""Bytes of a row of a matrix that a lane has."""


@dataclass(frozen=True, slots=True)
class Move:
    """A load or store whose values are followed: weak, of all elements, of `unit` bytes each.

    `space`: the state space that it names. `slots`: the registers that a load writes. `values`: what a store leaves.
    `signed`: the elements are extended by their sign. `transposed`: of a matrix whose elements lanes have by columns.
    """

    unit: int
    space: str | None
    slots: tuple[int, ...] = ()
    values: tuple[Expr, ...] = ()
    signed: bool = False
    transposed: bool = False

    @property
    def count(self) -> int:
        """The number of elements that are moved."""
        return len(self.slots) or len(self.values)

    def meets(self, other: Move) -> bool:
        """True if an address of one state space may be in the other one."""
        return self.space == other.space or None in (self.space, other.space)


def followed(body: Sequence[PtxInstruction], stores: frozenset[int]) -> tuple[frozenset[int], Mapping[int, Move]]:
    """The registers that lead to some stores, and the loads and stores on the way, by number."""
    makers: dict[int, list[PtxInstruction]] = {}
    known = {instruction.number: move for instruction in body if (move := _move(instruction)) is not None}
    writers = {number: move for number, move in known.items() if move.values}
    for instruction in body:
        for slot in lowered(instruction).writes:
            makers.setdefault(slot, []).append(instruction)
    slots: set[int] = set()
    moves = {number: move for number, move in writers.items() if number in stores}
    waiting = [slot for move in moves.values() for slot in _stored_slots(move)]
    waiting += [
        instruction.guard.slot for instruction in body if lowered(instruction).jumps and instruction.guard is not None
    ]
    while waiting:
        slot = waiting.pop()
        if slot in slots:
            continue
        slots.add(slot)
        for instruction in makers.get(slot, ()):
            waiting += [] if instruction.guard is None else [instruction.guard.slot]
            load = known.get(instruction.number)
            if load is not None and instruction.number not in moves:
                moves[instruction.number] = load
                met = {number: store for number, store in writers.items() if number not in moves and load.meets(store)}
                moves |= met
                waiting += [slot for store in met.values() for slot in _stored_slots(store)]
            elif not lowered(instruction).loads:
                operands = [
                    operand for operand in instruction.operands[1:] if not isinstance(operand, Mem | TensorOperand)
                ]
                waiting += [register for operand in operands for register in registers(operand)]
    return frozenset(slots), moves


def _move(instruction: PtxInstruction) -> Move | None:
    """What a load or store moves; None if its values cannot be followed."""
    does = lowered(instruction)
    if does.atomic:
        return None
    for op in does.ops:
        if isinstance(op, MoveMatrix) and isinstance(op.region, LaneRows) and op.transposed is not None:
            slots = tuple(map(int, op.registers))
            return Move(PIECE, space_named(op.region.address), slots, op.values, transposed=op.transposed)
        if not isinstance(op, Read | Write) or not isinstance(op.region, Elements):
            continue
        size, weak = op.region.size, op.label.sem is Sem.WEAK and not op.label.asynchronous
        if size is None or not weak or op.region.left_out:
            return None
        space = space_named(op.region.address)
        if isinstance(op, Write):
            return None if op.when is not None else Move(size, space, values=op.values)
        if op.type is None or None in op.registers:
            return None
        slots = tuple(int(name) for name in op.registers if name is not None)
        return Move(size, space, slots, signed=op.type.signed)
    return None


def _stored_slots(move: Move) -> list[int]:
    """The registers that a store leaves in memory."""
    leaves = (leaf for value in move.values for leaf in leaves_of(value))
    return [int(leaf.register) for leaf in leaves if isinstance(leaf, Get) and leaf.register.isdigit()]
