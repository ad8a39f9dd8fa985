"""Tensor memory: its lanes and columns, and their allocation.

In: the steps AllocateColumns, FreeColumns, RelinquishPermit. Out: what a warp does at them. Tensor memory has 128 lanes
of 512 columns of 4 bytes; lane l, column c is at byte (512 l + c) * 4 here, and an address holds the lane in its upper
half. Source: PTX ISA "Tensor Memory Addressing", "tcgen05.alloc".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memmodel.base.labels import Allocates
from memmodel.isa.matrix.tensor_columns import DIFFERS, GROWS
from memmodel.kernel.machine.collective.exchange import lanes_meet
from memmodel.kernel.machine.parts import Cta, Faulty, LaneGroup, Lanes, PairTurn, TensorMemory, Warp
from memmodel.kernel.machine.regions.locate import aligned
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.problems import Refused
from memmodel.memory.bytes import Instance
from memmodel.program.warp_ops import AllocateColumns, FreeColumns, RelinquishPermit
from memmodel.ptx.vocabulary import Space

if TYPE_CHECKING:
    from memmodel.kernel.machine.interpret import Interpreter

COLUMNS, TENSOR_LANES, UNIT = 512, 128, 4
ROW = COLUMNS * UNIT

SEVERAL_PLACES = "lanes name different places for the address of an allocation, and which is written is not specified"


def tensor_memory(cta: Cta) -> TensorMemory:
    """The tensor memory of a CTA."""
    if cta.tensor is None:
        size = TENSOR_LANES * ROW
        instance = Instance(f"tensor memory of CTA {cta.number}", cta.threads[0].place.cta_id, Space.TENSOR, size)
        cta.tensor = TensorMemory(Block(instance, 0, size), [None] * COLUMNS)
    return cta.tensor


def stretch(cta: Cta, lane: int, column: int, count: int) -> tuple[Block, int, int]:
    """The columns of one lane that an access names. Raises Faulty where they are not allocated."""
    memory = tensor_memory(cta)
    if not (0 <= lane < TENSOR_LANES and column >= 0 and column + count <= COLUMNS):
        raise Faulty("undefined-tensor-memory", f"lane {lane}, columns {column} to {column + count - 1} do not exist")
    if None in memory.columns[column : column + count]:
        message = f"columns {column} to {column + count - 1} of tensor memory are not all allocated"
        raise Faulty("undefined-tensor-memory", message)
    return memory.block, lane * ROW + column * UNIT, count * UNIT


def owners(cta: Cta, column: int, count: int) -> tuple[TraceEvent, ...]:
    """The allocations that columns belong to."""
    owners = tensor_memory(cta).columns[column : column + count]
    return tuple(dict.fromkeys(owner for owner in owners if owner is not None))


def pair_of(machine: Machine, warp: Warp, group: int) -> list[Cta]:
    """The CTAs of a .cta_group::N, the executing one first."""
    if group == 1:
        return [warp.cta]
    other = machine.ctas.get((warp.cta.cluster, warp.cta.rank ^ 1))
    if other is None:
        raise Faulty("undefined-cta-groups", ".cta_group::2 in a cluster that has no pair of CTAs")
    return [warp.cta, other]


def together(machine: Machine, warp: Warp, group: LaneGroup, label: Allocates) -> bool:
    """Has a warp of the peer CTA come to the same, if .cta_group::2 asks for it? "The first warp to perform the
    operation could block until the second warp in the Peer CTA also performs the operation" ("Issue Granularity").

    It orders nothing, since it may as well not block.
    """
    if label.group != 2:
        return True
    peer = pair_of(machine, warp, 2)[1]
    if not isinstance(group.waits, PairTurn):
        warp.cta.pair_operations[label.what] += 1
        group.waits = PairTurn(label.what, warp.cta.pair_operations[label.what])
        machine.version += 1
    return peer.pair_operations[label.what] >= group.waits.turn


def allocate_columns(interpreter: Interpreter, op: AllocateColumns) -> Blocking:
    """Wait until columns are free; the warp writes the address of the first one to shared memory."""
    instruction, label = interpreter.instruction, op.label
    pointer, counts = interpreter.location(op.target.address, op.target.window), interpreter.value(op.columns)
    size = op.target.size or 0

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        columns = counts(warp)[lanes[0]]
        if columns is None:
            machine.unknown("the number of columns", instruction)
        if not 0 < columns <= COLUMNS or (columns & columns - 1 and not op.label.exclusive):
            raise Faulty("undefined-instruction", f"{columns} columns of tensor memory cannot be allocated")
        if not together(machine, warp, group, label):
            return False
        promised = tensor_memory(warp.cta).promised
        if label.group == 2 and promised and columns not in promised:
            raise Refused(DIFFERS, instruction.span)
        first = _free_columns(machine, warp, op, columns)
        if first is None:
            return False
        group.waits = None
        memory = tensor_memory(warp.cta)
        if memory.last and columns > memory.last:
            raise Refused(GROWS, instruction.span)
        memory.last = columns
        (block, at), *others = {pointer.find(machine, warp, lane, size, instruction) for lane in lanes}
        if others:
            raise Refused(SEVERAL_PLACES, instruction.span)
        aligned(block, at, size)
        thread = warp.threads[lanes[0]]
        event = machine.event(thread, instruction.number, label, columns)
        for cta in pair_of(machine, warp, label.group or 1):
            # The warp of the peer CTA takes part in the same allocation, and makes its own event of it.
            if cta is warp.cta or tensor_memory(cta).promised.get(columns) == first:
                tensor_memory(cta).columns[first : first + columns] = [event] * columns
                tensor_memory(cta).exclusive = op.label.exclusive
                tensor_memory(cta).given[first] = event
        event.owners = (event,)
        machine.weak(block, at, size, thread, op.write, instruction.number, size, None, first)
        machine.forget(block, at, size)
        block.store(at, size, first)
        lanes_meet(machine, warp, lanes, warp.live, instruction.number)
        for lane in lanes:  # whether they see the address because they have met is decision D19
            warp.threads[lane].epoch = len(warp.threads[lane].events)
        return True

    return run


def _free_columns(machine: Machine, warp: Warp, op: AllocateColumns, columns: int) -> int | None:
    """The first of `columns` adjacent columns that are free in both CTAs of a pair; None if there are too few now."""
    promised = tensor_memory(warp.cta).promised.pop(columns, None) if op.label.group == 2 else None
    if promised is not None:
        return promised
    memories = [tensor_memory(cta) for cta in pair_of(machine, warp, op.label.group or 1)]
    if any(memory.exclusive or (op.label.exclusive and any(memory.columns)) for memory in memories):
        return None
    for first in range(0, COLUMNS, columns):
        if not any(any(memory.columns[first : first + columns]) for memory in memories):
            for memory in memories[1:]:
                memory.promised[columns] = first
            return first
    return None


def free_columns(interpreter: Interpreter, op: FreeColumns) -> Blocking:
    """The columns of an allocation, all of them, are free again."""
    instruction, label = interpreter.instruction, op.label
    addresses, counts = interpreter.value(op.address), interpreter.value(op.columns)

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        address, columns = addresses(warp)[lanes[0]], counts(warp)[lanes[0]]
        if address is None or columns is None:
            machine.unknown("what is freed", instruction)
        if not together(machine, warp, group, label):
            return False
        group.waits = None
        lanes_meet(machine, warp, lanes, warp.live, instruction.number)
        memory, column = tensor_memory(warp.cta), address & 0xFFFF
        event = machine.event(warp.threads[lanes[0]], instruction.number, label, columns)
        owner = memory.columns[column] if column < COLUMNS else None
        held = [other is owner for other in memory.columns]
        if owner is None or held.count(True) != columns or not held[column] or (column and held[column - 1]):
            message = f"no allocation has {columns} columns from column {column} on"
            raise Faulty("undefined-tensor-memory-freed", message)
        if memory.exclusive is not op.label.exclusive:
            message = "columns are deallocated with .exclusive if and only if they were allocated so"
            raise Faulty("undefined-tensor-memory-freed", message)
        # The own allocation first. With .cta_group::2 what the peer CTA has of it is freed too.
        given = (tensor_memory(cta).given.get(column, owner) for cta in pair_of(machine, warp, label.group or 1))
        event.owners = tuple(dict.fromkeys((owner, *given)))
        memory.columns[column : column + columns] = [None] * columns
        memory.exclusive = False
        machine.version += 1
        return True

    return run


def relinquish_permit(interpreter: Interpreter, op: RelinquishPermit) -> Blocking:
    """The CTA, or both of a pair, will allocate no more."""
    number = interpreter.instruction.number

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if not together(machine, warp, group, op.label):
            return False
        group.waits = None
        lanes_meet(machine, warp, lanes, warp.live, number)
        machine.event(warp.threads[lanes[0]], number, op.label)
        return True

    return run
