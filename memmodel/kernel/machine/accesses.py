"""Loads and stores: the steps Read and Write.

In: a step. Out: what moves its values and leaves the accesses in the traces of the threads. Lanes that access one block
of memory are done at once, where the access is weak; all others lane by lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memmodel.base.labels import Access, Side
from memmodel.kernel.machine.addressing import REACHES_OWN
from memmodel.kernel.machine.parts import LaneGroup, Lanes, Warp
from memmodel.kernel.machine.private_memory import OWN_WINDOWS, note_access, private_step, read_lane
from memmodel.kernel.machine.regions.locate import aligned, locator
from memmodel.kernel.machine.rows import LANES, UNKNOWN, Row, Uniform, Value, uniform
from memmodel.kernel.machine.state import WIDEST, Blocking, Machine
from memmodel.kernel.machine.values.lanes import Get, forgetting
from memmodel.kernel.machine.values.widths import extended, loaded, sign_bits, together
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import ChoiceKind
from memmodel.kernel.trace.problems import Refused
from memmodel.program.expressions import Apply, Expr
from memmodel.program.fields import NOTHING
from memmodel.program.ops import Read, Write
from memmodel.program.regions import Elements
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Sem

if TYPE_CHECKING:
    from memmodel.kernel.machine.interpret import Interpreter, Pointer


@dataclass(frozen=True, slots=True)
class ElementAccess:
    """An access to `count` elements of `unit` bytes. `kept`: the numbers of those that are accessed."""

    instruction: PtxInstruction
    pointer: Pointer
    label: Access
    unit: int
    count: int
    kept: tuple[int, ...]

    @property
    def size(self) -> int:
        return self.unit * self.count

    @property
    def runs(self) -> tuple[tuple[int, int], ...]:
        """The elements that are accessed, as bytes in a row: first, size."""
        firsts = [n for n in self.kept if n - 1 not in self.kept]
        ends = [n + 1 for n in self.kept if n + 1 not in self.kept]
        return tuple((n * self.unit, (end - n) * self.unit) for n, end in zip(firsts, ends, strict=True))


def element_access(interpreter: Interpreter, region: Elements, label: Access) -> ElementAccess:
    """What a step does with the elements of a region."""
    assert region.size is not None  # a module gives each access a type
    pointer = interpreter.location(region.address, region.window)
    kept = tuple(n for n in range(region.count) if n not in region.left_out)
    return ElementAccess(interpreter.instruction, pointer, label, region.size, region.count, kept)


def read_step(interpreter: Interpreter, op: Read) -> Blocking:
    """Loads elements into registers."""
    if not isinstance(op.region, Elements) or op.type is None or op.at is not None:
        raise Refused(f"{interpreter.instruction.opcode} cannot be run", interpreter.instruction.span)
    access = element_access(interpreter, op.region, op.label)
    slots = [None if name is None else interpreter.slot(name) for name in op.registers]
    widths = [interpreter.width(slot) for slot in slots if slot is not None]
    extend = sign_bits(op.type, access.unit, widths)
    if access.pointer.window in OWN_WINDOWS:
        return private_step(access.instruction, access.pointer, slots, [], access.unit, extend=extend)
    packed = not interpreter.surroundings.packed.isdisjoint(slots)
    weak, runs, unit, size = op.label.sem is Sem.WEAK, access.runs, access.unit, access.size
    number = access.instruction.number

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        addresses = access.pointer.address(warp)
        place = _together(machine, warp, lanes, access, addresses) if weak and not packed else None
        if place is None:
            return slow(machine, warp, lanes, addresses)
        block, offsets = place
        for begin, length in runs:
            firsts = [at + begin for at in offsets] if begin else offsets
            machine.weak_lanes(warp, lanes, block, firsts, length, op.label, number, unit)
        _read_all(warp, lanes, slots, block, offsets, unit, extend)
        return True

    def slow(machine: Machine, warp: Warp, lanes: Lanes, addresses: Row) -> bool:
        """Lane by lane: strong accesses, lanes that access different blocks, addresses that are bad."""
        addresses = list(addresses)  # the registers that hold them may be loaded
        own = _own(machine, warp, lanes, access, addresses)
        if not weak and _held(machine, warp, {n: addresses[n] for n in lanes if own[n] is None}, access):
            return False
        for lane in lanes:
            block, at = own[lane] or access.pointer.place(machine, warp, addresses[lane], size, access.instruction)
            aligned(block, at, size, addresses[lane])
            events = list[TraceEvent]()
            if own[lane] is not None or block is machine.memory.params:
                note_access(machine, warp, lane, (block, at), size, number, put=False)
            elif weak:
                for begin, length in runs:
                    machine.weak(block, at + begin, length, warp.threads[lane], op.label, number, unit)
            else:
                events = _all_strong(machine, warp, lane, access, block, at, [None] * access.count)
            read_lane(warp, lane, slots, block, at, unit, extend)
            if packed and not extend:
                _learn(warp, lane, slots, block, at, unit, max(widths))
            returned = [slots[n] for n in access.kept]
            wide = max(widths) if packed else 0
            _strong_result(machine, warp, lane, returned, access.instruction, events, extend, wide)
        return True

    return step


def write_step(interpreter: Interpreter, op: Write) -> Blocking:
    """Stores values to elements, or to all bytes of a region."""
    if not isinstance(op.region, Elements):
        return _filled(interpreter, op)
    if op.when is not None or op.rmw:
        raise Refused(f"{interpreter.instruction.opcode} cannot be run", interpreter.instruction.span)
    access = element_access(interpreter, op.region, op.label)
    values = [unreduced(value, access.unit) for value in op.values]
    sources = [interpreter.value(value) for value in values]
    if access.pointer.window in OWN_WINDOWS:
        return private_step(access.instruction, access.pointer, [], sources, access.unit)
    held = [interpreter.register(value) for value in values]
    packed = not interpreter.surroundings.packed.isdisjoint(held)
    weak, runs, unit, size = op.label.sem is Sem.WEAK, access.runs, access.unit, access.size
    number = access.instruction.number

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        addresses = access.pointer.address(warp)
        place = _together(machine, warp, lanes, access, addresses) if weak and not packed else None
        if place is None:
            return slow(machine, warp, lanes, addresses)
        block, offsets = place
        rows = [source(warp) for source in sources]
        for begin, length in runs:
            some = rows[begin // unit : (begin + length) // unit]
            unknown = all(row is UNKNOWN for row in some)
            stored = None if unknown else [together([row[lane] for row in some], unit) for lane in lanes]
            firsts = [at + begin for at in offsets] if begin else offsets
            machine.weak_lanes(warp, lanes, block, firsts, length, op.label, number, unit, stored)
            machine.forget_all(block, firsts, length)
        _write_all(lanes, [rows[n] for n in access.kept], block, offsets, [n * unit for n in access.kept], unit)
        return True

    def slow(machine: Machine, warp: Warp, lanes: Lanes, addresses: Row) -> bool:
        """Lane by lane: strong accesses, lanes that access different blocks, addresses that are bad."""
        own = _own(machine, warp, lanes, access, addresses)
        if not weak and _held(machine, warp, {n: addresses[n] for n in lanes if own[n] is None}, access):
            return False
        hidden = number in machine.schedule.opaque
        rows = [UNKNOWN if hidden else source(warp) for source in sources]
        for lane in lanes:
            block, at = own[lane] or access.pointer.place(machine, warp, addresses[lane], size, access.instruction)
            aligned(block, at, size, addresses[lane])
            events = list[TraceEvent]()
            if own[lane] is not None:
                note_access(machine, warp, lane, (block, at), size, number, put=True)
            elif weak:
                for begin, length in runs:
                    some = rows[begin // unit : (begin + length) // unit]
                    stored = together([row[lane] for row in some], unit)
                    thread = warp.threads[lane]
                    machine.weak(block, at + begin, length, thread, op.label, number, unit, value=stored)
                    machine.forget(block, at + begin, length)
            else:
                events = _all_strong(machine, warp, lane, access, block, at, [row[lane] for row in rows])
            for n in access.kept:
                block.store_bits(at + n * unit, unit, warp.bits_of(None if hidden else held[n], rows[n], lane))
            machine.reads.all_made(events)
        return True

    return step


def _filled(interpreter: Interpreter, op: Write) -> Blocking:
    """Write one value to all bytes of a region whose size is known only when it runs."""
    locate, source = locator(interpreter, op.region), interpreter.value(op.values[0])
    when = None if op.when is None else interpreter.value(op.when)
    instruction = interpreter.instruction

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        at, value = locate(machine, warp), source(warp)
        wanted = None if when is None else when(warp)
        for lane in lanes:
            if wanted is not None and wanted[lane] is None:
                machine.unknown("whether anything is written", instruction)
            if wanted is not None and not wanted[lane]:
                continue
            for block, first, size, _ in at(lane).spans:
                thread, number = warp.threads[lane], instruction.number
                machine.weak(block, first, size, thread, op.label, number, None, None, value[lane])
                machine.forget(block, first, size)
                block.store(first, size, value[lane])
        return True

    return step


def shifted(base: Get, offset: int) -> Get:
    """A number of bytes after an address."""

    def get(warp: Warp) -> Row:
        row = base(warp)
        if type(row) is Uniform:
            return row if row.value is None else uniform(row.value + offset)
        return [None if value is None else value + offset for value in row]

    return get


def strong(
    machine: Machine, warp: Warp, lane: int, at: int, label: Access, block: Block, first: int, size: int,
    issue: TraceEvent | None = None, value: Value = None,
) -> TraceEvent:  # fmt: skip
    """A strong access as an event; a read takes what the last strong write left. `issue`: of an asynchronous one;
    `value`: of a store.
    """
    if issue is not None:
        event = TraceEvent(issue.thread, None, at, label, issue=issue, time=issue.time)
        issue.signals += (event,)
    else:
        if label.side is Side.READ:
            machine.poll(warp.threads[lane], at, block, first)
        event = machine.event(warp.threads[lane], at, label, block.instance.name, first, size)
        event.known = _around(warp, lane, machine.looked_at.get(at, ()))
    event.block, event.first, event.size, event.value = block, first, size, value
    if issue is None:
        machine.reads.number(event, label, block, first, size)
    known = machine.strong.setdefault(block, {})
    for begin in range(first - WIDEST + 1, first + size):
        length, earlier = known.get(begin, (0, event))
        if length and first < begin + length:
            if label.side is Side.READ and (begin, length) == (first, size):
                event.source = earlier
            elif label.side is Side.WRITE and (begin, length) != (first, size):
                del known[begin]
    if label.side is Side.WRITE:
        known[first] = (size, event)
        if machine.memory_terms is not None:
            machine.memory_terms.written(block, first, size, at)
    return event


def _together(
    machine: Machine, warp: Warp, lanes: Lanes, access: ElementAccess, addresses: Row
) -> tuple[Block, list[int]] | None:
    """The block and the offsets of what lanes access, if all of it is good and lies in one block."""
    size, pointer = access.size, access.pointer
    place = machine.addressing.places(warp, pointer.space, addresses, lanes, size, pointer.window)
    if place is None or any((at + place[0].address) % size for at in place[1]):
        return None
    place[0].trust(place[1][0], size)
    return place


def _own(
    machine: Machine, warp: Warp, lanes: Lanes, access: ElementAccess, addresses: Row
) -> dict[int, tuple[Block, int] | None]:
    """What of their own memory lanes access through generic addresses."""
    if access.pointer.space is not None or access.pointer.window not in REACHES_OWN:
        return dict.fromkeys(lanes)
    return {lane: machine.addressing.private_at_generic(warp, lane, addresses[lane], access.size) for lane in lanes}


def unreduced(value: Expr, unit: int) -> Expr:
    """A value that is stored, without the reduction to its low bytes: these alone reach memory."""
    if isinstance(value, Apply) and value.op == "cvt" and value.type.width == 8 * unit:
        return value.args[0]
    return value


def _all_strong(
    machine: Machine, warp: Warp, lane: int, access: ElementAccess, block: Block, first: int, values: Sequence[Value]
) -> list[TraceEvent]:
    """The elements of a strong access."""
    at, label, unit = access.instruction.number, access.label, access.unit
    return [strong(machine, warp, lane, at, label, block, first + n * unit, unit, value=values[n]) for n in access.kept]


def _around(warp: Warp, lane: int, slots: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    values = ((slot, warp.registers[slot][lane]) for slot in slots)
    return tuple((slot, value) for slot, value in values if value is not None)


def _held(machine: Machine, warp: Warp, addresses: dict[int, Value], access: ElementAccess) -> bool:
    """True if a lane waits until all other threads are blocked, or for a write that it reads."""
    instruction, reads, delays = access.instruction, access.label.side is Side.READ, machine.delays
    at, count = instruction.number, len(access.kept)
    if reads and any([delays.awaits_chosen_write(warp.threads[n], at, count) for n in addresses]):
        machine.run.infeasible |= len(addresses) > 1 and delays.all_stay  # others of the warp need not stay
        return True
    if not machine.schedule.looks and (reads or machine.schedule.scripted is None):
        return False
    find = access.pointer.place
    places = [(n, find(machine, warp, address, access.size, instruction)) for n, address in addresses.items()]
    if not reads and any([delays.awaits_turn(warp.threads[n], at, *place, atomic=False) for n, place in places]):
        return True
    return any([delays.polls(warp.threads[n], instruction, place, reads=reads) for n, place in places])


def _learn(warp: Warp, lane: int, slots: list[int | None], block: Block, at: int, unit: int, wide: int) -> None:
    """What is known of the bits that are loaded into registers whose bits are looked at one by one."""
    for part, slot in enumerate(slots):
        if slot is not None:
            warp.learn(slot, lane, loaded(block.bits(at + part * unit, unit), unit, wide), wide)


def _strong_result(
    machine: Machine, warp: Warp, lane: int, slots: list[int | None], instruction: PtxInstruction,
    events: list[TraceEvent], extend: int, wide: int,
) -> None:  # fmt: skip
    """What a strong load returns may depend on the schedule, which may choose it. `events`: none if it is of no memory
    that threads share.
    """
    if not events:
        return
    machine.reads.all_made(events)
    for slot, event in zip(slots, events, strict=True):
        bits = machine.reads.returned(event) if machine.reads else None
        if bits is not None and slot is not None:
            warp.own(slot)[lane] = extended(bits.number(8 * event.size), event.size, extend)
            known = loaded(bits, event.size, wide) if wide and not extend else NOTHING
            warp.learn(slot, lane, known, max(wide, 1))
    machine.reads.load_ended(events)
    if instruction.number in machine.schedule.opaque:
        forgetting([slot for slot in slots if slot is not None])(warp, [lane])
    elif any(slot is not None and warp.knows(slot, lane) for slot in slots):
        machine.run.choices.setdefault((ChoiceKind.LOAD, instruction.number), instruction)


def _read_all(
    warp: Warp, lanes: Lanes, slots: list[int | None], block: Block, offsets: list[int], unit: int, extend: int
) -> None:
    for part, slot in enumerate(slots):
        if slot is None:
            continue
        if block.known is None and len(lanes) == LANES:
            warp.registers[slot] = UNKNOWN
            continue
        row, shift = warp.own(slot), part * unit
        for lane, at in zip(lanes, offsets, strict=True):
            row[lane] = extended(block.load(at + shift, unit), unit, extend)


def _write_all(
    lanes: Lanes, rows: Sequence[Row], block: Block, offsets: list[int], shifts: Sequence[int], unit: int
) -> None:
    for row, shift in zip(rows, shifts, strict=True):
        if row is UNKNOWN and block.known is None:
            continue
        for lane, at in zip(lanes, offsets, strict=True):
            block.store(at + shift, unit, row[lane])
