"""Atomic operations: a Read and a Write of the same elements that are one operation.

In: the two steps, and what their instruction leaves in registers. Out: what the machine does. Each element is an
operation of its own ("atom": "the entire atom is not guaranteed to be atomic as a single access"). The old values are
in no register, but in temporaries that only these steps use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memmodel.base.labels import Access
from memmodel.kernel.machine.accesses import ElementAccess, element_access, strong, unreduced
from memmodel.kernel.machine.parts import LaneGroup, Lanes, Warp
from memmodel.kernel.machine.regions.locate import aligned
from memmodel.kernel.machine.rows import Row, Value
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.machine.values.lanes import Get
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import ChoiceKind
from memmodel.program.arith import operation
from memmodel.program.expressions import Apply, Expr, registers_of
from memmodel.program.expressions import Get as RegisterValue
from memmodel.program.fields import NOTHING, Bits, BitsFn, combined
from memmodel.program.ops import Assign, Read, Write
from memmodel.program.regions import Elements

if TYPE_CHECKING:
    from memmodel.kernel.machine.interpret import Interpreter

Compute = Callable[[Sequence[Value], Sequence[Value]], Value]
"""A value in one lane, from the old values and the operands."""


class Operands:
    """The operands of an atomic operation: what its expressions use beside the old values."""

    def __init__(self, interpreter: Interpreter, olds: Sequence[str | None], unit: int) -> None:
        self.slots: list[int | None] = []
        self.gets: list[Get] = []
        self._interpreter, self._unit = interpreter, unit
        self._olds = {name: number for number, name in enumerate(olds) if name is not None}
        self._numbers: dict[Expr, int] = {}

    def number(self, expr: Expr) -> int:
        """The number of an expression that uses no old value."""
        expr = unreduced(expr, self._unit)
        if expr not in self._numbers:
            self._numbers[expr] = len(self.gets)
            self.gets.append(self._interpreter.value(expr))
            self.slots.append(self._interpreter.register(expr))
        return self._numbers[expr]

    def compute(self, expr: Expr) -> Compute:
        """What an expression gives in one lane; unknown where an operand is."""
        if isinstance(expr, RegisterValue) and expr.register in self._olds:
            old = self._olds[expr.register]
            return lambda olds, inputs: olds[old]
        if not isinstance(expr, Apply) or registers_of(expr).isdisjoint(self._olds):
            place = self.number(expr)
            return lambda olds, inputs: inputs[place]
        parts, function = [self.compute(part) for part in expr.args], operation(expr.op, expr.type)

        def computed(olds: Sequence[Value], inputs: Sequence[Value]) -> Value:
            values = [part(olds, inputs) for part in parts]
            return None if None in values else function(*values)

        return computed

    def operand(self, value: Expr) -> tuple[BitsFn | None, int]:
        """The operation that combines an old value with an operand, and that operand; none takes its place."""
        if isinstance(value, Apply) and not registers_of(value).isdisjoint(self._olds):
            return combined(value.op, value.type), self.number(value.args[1])
        return None, self.number(value)


@dataclass(frozen=True, slots=True)
class ElementUpdate:
    """What happens to one element. `when`: only if that is not 0. `bits`: what is known of single bits, from those of
    the old value and of the operand with that number; None if the operand takes the place of the old value.
    """

    value: Compute
    when: Compute | None
    bits: BitsFn | None
    operand: int

    def leaves(self, old: Bits, inputs: list[Bits]) -> Bits:
        """What it leaves, as far as single bits are known."""
        if self.when is not None:
            return NOTHING
        operand = inputs[self.operand]
        return operand if self.bits is None else self.bits(old, operand)


@dataclass(frozen=True, slots=True)
class Result:
    """A register that receives old values; `element`: it receives the one of that element as it is."""

    slot: int
    value: Compute
    element: int | None


def atomic_step(interpreter: Interpreter, read: Read, write: Write, assigns: Sequence[Assign]) -> Blocking:
    """An atomic operation on the elements of a region."""
    assert isinstance(read.region, Elements)
    access = element_access(interpreter, read.region, read.label)
    operands = Operands(interpreter, read.registers, access.unit)
    condition = None if write.when is None else operands.compute(write.when)
    updates = [ElementUpdate(operands.compute(value), condition, *operands.operand(value)) for value in write.values]
    results = [_result(interpreter, operands, read, assign) for assign in assigns]
    slots = [*operands.slots, *(result.slot for result in results)]
    packs = not interpreter.surroundings.packed.isdisjoint(slots)
    pointer, instruction, size = access.pointer, access.instruction, access.size
    atomic = Atomic(access, write.label, updates)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        addresses = list(pointer.address(warp))
        places = [pointer.place(machine, warp, addresses[lane], size, instruction) for lane in lanes]
        turns: list[int] | None = list(range(len(lanes)))
        if machine.order:
            turns = machine.turn([(*at, warp.threads[lane].number) for at, lane in zip(places, lanes, strict=True)])
        if turns is None:
            return False
        if machine.schedule.scripted is not None:
            machine.run.infeasible |= len(set(places)) < len(places)
            if any([
                machine.delays.awaits_turn(warp.threads[lane], instruction.number, block, first, atomic=True)
                for lane, (block, first) in zip(lanes, places, strict=True)
            ]):  # fmt: skip
                machine.run.infeasible |= len(lanes) > 1 and machine.delays.all_stay
                return False
        rows: list[Row] = [get(warp) for get in operands.gets]
        for number in turns:
            lane, (block, first) = lanes[number], places[number]
            aligned(block, first, size, addresses[lane])
            inputs = [row[lane] for row in rows]
            sources = zip(operands.slots, rows, strict=True)
            bits = [warp.bits_of(slot, row, lane) for slot, row in sources] if packs else []
            olds, known = atomic.operate(machine, warp, lane, block, first, inputs, bits)
            for result in results:
                warp.own(result.slot)[lane] = result.value(olds, inputs)
                bits_known = NOTHING if result.element is None else known[result.element]
                warp.learn(result.slot, lane, bits_known, 8 * access.unit)
                if warp.knows(result.slot, lane):
                    machine.run.choices.setdefault((ChoiceKind.ATOMIC, instruction.number), instruction)
        return True

    return step


def _result(interpreter: Interpreter, operands: Operands, read: Read, assign: Assign) -> Result:
    value = assign.value
    if isinstance(value, Apply) and value.op == "cvt":
        value = value.args[0]
    element = read.registers.index(value.register) if isinstance(value, RegisterValue) else None
    return Result(interpreter.slot(assign.register), operands.compute(value), element)


@dataclass(frozen=True, slots=True)
class Atomic:
    """The operations of one instruction on the elements at an address."""

    access: ElementAccess
    write: Access
    updates: Sequence[ElementUpdate]

    def operate(
        self, machine: Machine, warp: Warp, lane: int, block: Block, first: int, inputs: list[Value], bits: list[Bits]
    ) -> tuple[list[Value], list[Bits]]:
        """What a lane does: the old values that it sees, and what is known of their bits.

        `bits`: what is known of the operands, if registers are among those whose bits are looked at one by one.
        """
        number, unit = self.access.instruction.number, self.access.unit
        hidden = number in machine.schedule.opaque
        olds: list[Value] = []
        known: list[Bits] = []
        for place, update in enumerate(self.updates):
            at = first + place * unit
            known.append(block.bits(at, unit) if bits and not hidden else NOTHING)
            read = strong(machine, warp, lane, number, self.access.label, block, at, unit)
            older = machine.reads.older(read)
            unseen = hidden and number not in machine.schedule.counted
            olds.append(None if unseen else block.load(at, unit) if older is None else older.number(8 * unit))
            holds = 1 if update.when is None else update.when(olds, inputs)
            unchanged = False  # a script says itself which operations of a loop are left out
            if holds != 0:
                new = None if unseen or holds is None else update.value(olds, inputs)
                unchanged = machine.schedule.scripted is None and new is not None and new == olds[place]
                self._write(machine, warp, lane, update, read, older, new, inputs, [] if hidden else bits)
            machine.idle += unchanged
            if machine.reads.settled(read):
                machine.version -= 1  # threads that only make such operations wait
            machine.run.atomics.setdefault((block, at), []).append(read)
            machine.passed(block, at, warp.threads[lane].number)
        return [None] * len(olds) if hidden else olds, known

    def _write(
        self, machine: Machine, warp: Warp, lane: int, update: ElementUpdate, read: TraceEvent, older: Bits | None,
        new: Value, inputs: list[Value], bits: list[Bits],
    ) -> None:  # fmt: skip
        """The write of one element. `older`: what the read found, if that is not the last write."""
        block, at, unit, number = read.block, read.first, self.access.unit, self.access.instruction.number
        assert block is not None
        last = machine.strong[block].get(at)
        known = block.bits(at, unit) if bits else NOTHING
        write = strong(machine, warp, lane, number, self.write, block, at, unit)
        read.partner, write.partner = write, read
        operand = None if update.when is not None else inputs[update.operand]
        write.given = None if operand is None else operand & (1 << 8 * unit) - 1
        if older is not None:
            machine.reads.inserted(write, older, new)
            machine.strong[block].pop(at)
            machine.strong[block] |= {} if last is None else {at: last}
            return
        if new is None and bits:
            block.store_bits(at, unit, update.leaves(known, bits))
        else:
            block.store(at, unit, new)
        machine.reads.made(write)
