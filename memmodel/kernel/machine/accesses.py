"""Loads, stores and copies without bulk.

In: an Instruction. Out: a step that moves the values and leaves the accesses in the traces of its threads.
"""

from __future__ import annotations

from dataclasses import replace

from memmodel.base.labels import Access, Family, Issue, Label, Role, Side
from memmodel.isa.movement.access import WIDEST_SHARED, generic_window
from memmodel.kernel.arithmetic.alu import width_of
from memmodel.kernel.machine.parts import Faulty, LaneGroup, Lanes, Warp
from memmodel.kernel.machine.private_memory import moved, private_step, read_lane
from memmodel.kernel.machine.pure import Compiler, forgetting
from memmodel.kernel.machine.rows import LANES, UNKNOWN, Row, Uniform, Value, uniform
from memmodel.kernel.machine.state import WIDEST, Machine
from memmodel.kernel.machine.values.lanes import Get
from memmodel.kernel.machine.values.widths import extended, loaded, together, wider, width_in
from memmodel.kernel.machine.warpops import Blocking
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.problems import Refused
from memmodel.program.fields import NOTHING
from memmodel.program.ops import Track
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Blank, Mem, Operand, Register, TensorOperand, Vector
from memmodel.ptx.vocabulary import Proxy, Scope, Sem, Window

SCOPES = {"cta": Scope.CTA, "cluster": Scope.CLUSTER, "gpu": Scope.GPU, "sys": Scope.SYS}
DISCARDED = 128
"""Bytes that discard is about."""
SEMS = {"relaxed": Sem.RELAXED, "acquire": Sem.ACQUIRE, "release": Sem.RELEASE, "acq_rel": Sem.ACQ_REL}


def access_step(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    """The step of an instruction of this family."""
    head = instruction.words[0]
    if head == "st" and "async" in instruction.words:
        return None
    if instruction.words[:2] == ("st", "bulk"):
        return _zeros(compiler, instruction)
    if head == "discard":
        return _discard(compiler, instruction)
    if head in ("ld", "ldu", "st"):
        return _partly(compiler, instruction) or _move(compiler, instruction)
    if instruction.words[:2] == ("cp", "async") and instruction.words[2] in ("ca", "cg"):
        return _copy(compiler, instruction)
    return None


def address(compiler: Compiler, instruction: PtxInstruction, operand: Operand) -> Get:
    """The numbers of an address operand."""
    if not isinstance(operand, Mem | TensorOperand):
        raise Refused(f"{instruction.opcode} takes an address in brackets here", instruction.span)
    base = compiler.get(operand.base, instruction)
    offset = operand.offset
    if offset == 0:
        return base

    def get(warp: Warp) -> Row:
        row = base(warp)
        if type(row) is Uniform:
            return row if row.value is None else uniform(row.value + offset)
        return [None if one is None else one + offset for one in row]

    return get


def space_of(words: tuple[str, ...]) -> str:
    """The state space that an instruction names."""
    spaces = ("shared", "global", "local", "param", "const")
    return next((word for word in words[1:] if word.split("::")[0] in spaces), "generic")


def _semantics(instruction: PtxInstruction, side: Side) -> Access:
    words = instruction.words
    scope = next((SCOPES[word] for word in words if word in SCOPES), None)
    if "volatile" in words:
        return Access(side, Sem.RELAXED, Scope.SYS, spelt="volatile")
    sem = next((SEMS[word] for word in words if word in SEMS), None)
    if "mmio" in words:
        return Access(side, sem or Sem.RELAXED, scope or Scope.SYS, spelt="mmio")
    if sem is None:
        return Access(side, proxy=Proxy.READ_ONLY if "nc" in words else Proxy.GENERIC)
    return Access(side, sem, scope)


def aligned(block: Block, at: int, size: int, operand: Value = None) -> None:
    """Is an access of so many bytes aligned? Raises Faulty. `operand`: the address as the instruction has it."""
    if (at + block.address) % size:
        said = at + block.address if operand is None else operand
        raise Faulty("undefined-address", f"address {said:#x} is misaligned for {size} bytes")


def strong(
    machine: Machine, warp: Warp, lane: int, at: int, label: Access, block: Block, first: int, size: int,
    issue: TraceEvent | None = None, value: Value = None,
) -> TraceEvent:  # fmt: skip
    """A strong access as an event; a read takes what the last strong write left. `issue`: of an asynchronous one;
    `value`: of a store.
    """
    if issue is not None:
        made = TraceEvent(issue.thread, None, at, label, issue=issue, time=issue.time)
        issue.signals += (made,)
    else:
        if label.side is Side.READ:
            machine.poll(warp.threads[lane], at, block, first)
        made = machine.event(warp.threads[lane], at, label, block.instance.name, first, size)
        made.known = _around(warp, lane, machine.loops.get(at, ()))
    made.block, made.first, made.size, made.value = block, first, size, value
    if issue is None:
        machine.reads.number(made, label, block, first, size)
    known = machine.strong.setdefault(block, {})
    for begin in range(first - WIDEST + 1, first + size):
        length, event = known.get(begin, (0, made))
        if length and first < begin + length:
            if label.side is Side.READ and (begin, length) == (first, size):
                made.source = event
            elif label.side is Side.WRITE and (begin, length) != (first, size):
                del known[begin]
    if label.side is Side.WRITE:
        known[first] = (size, made)
        if machine.noted is not None:
            machine.noted.written(block, first, size, at)
    return made


def _partly(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    """A weak vector with sinks: what they stand for is neither read nor written ("ld", "st")."""
    words, operands = instruction.words, instruction.operands
    what = next((one for one in operands if isinstance(one, Vector)), None)
    where = next((one for one in operands if isinstance(one, Mem | TensorOperand)), None)
    sunk = what is not None and any(isinstance(one, Blank) for one in what.items)
    if what is None or where is None or not sunk or any(word in SEMS or word == "volatile" for word in words):
        return None
    unit, alone = (width_of(words[-1]) or 0) // 8, tuple(word for word in words if word not in ("v2", "v4", "v8"))
    steps = []
    for number, item in sorted(
        enumerate(what.items), key=lambda one: one[1] == where.base
    ):  # the address is read first
        if not isinstance(item, Blank):
            place = replace(where, offset=where.offset + number * unit)
            both = tuple(item if one is what else place if one is where else one for one in operands)
            steps.append(_move(compiler, replace(instruction, words=alone, operands=both)))

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        return all(one(machine, warp, lanes, group) for one in steps)

    return step


def _move(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    words, operands = instruction.words, instruction.operands
    load = words[0] != "st"
    if len(operands) < 2:
        raise Refused(f"{instruction.opcode} takes two operands", instruction.span)
    where, what = (operands[1], operands[0]) if load else (operands[0], operands[1])
    items, unit = _elements(instruction, what)
    lanes_of, space = len(items), space_of(words)
    label, get = _semantics(instruction, Side.READ if load else Side.WRITE), address(compiler, instruction, where)
    size, number = unit * lanes_of, instruction.number
    slots = [compiler.slot_of(one) for one in items] if load else []
    sources = [] if load else [compiler.get(one, instruction, unit * 8) for one in items]
    weak, extend = label.sem is Sem.WEAK, wider(words[-1], unit, items)
    if space.split("::")[0] in ("param", "local"):
        return private_step(instruction, get, slots, sources, unit, extend=extend)
    # Memory of the thread is for weak and volatile accesses; constants and parameters are only read.
    local = space == "generic" and (weak or "volatile" in words) and size <= WIDEST_SHARED
    window = generic_window(mmio="mmio" in words, strong=not (weak and load), size=size)
    held = [compiler.slot_of(one) for one in items]
    parts, wide = not compiler.packed.isdisjoint(held), width_in(items, unit)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        addresses = list(get(warp))
        found = machine.places(warp, space, addresses, lanes, size, window) if weak and not parts else None
        if found is None or any((one + found[0].address) % size for one in found[1]):
            return slow(machine, warp, lanes, addresses)
        block, offsets = found
        if load:
            machine.weak_lanes(warp, lanes, block, offsets, size, label, number, unit)
            _read_all(warp, lanes, slots, block, offsets, unit, extend)
            return True
        rows = [one(warp) for one in sources]
        stored = None if all(row is UNKNOWN for row in rows) else [together([r[k] for r in rows], unit) for k in lanes]
        machine.weak_lanes(warp, lanes, block, offsets, size, label, number, unit, stored)
        machine.forget_all(block, offsets, size)
        _write_all(warp, lanes, sources, block, offsets, unit)
        return True

    def slow(machine: Machine, warp: Warp, lanes: Lanes, addresses: Row) -> bool:
        """Lane by lane: strong accesses, lanes that access different blocks, addresses that are bad."""
        own = {lane: machine.private(warp, lane, addresses[lane], size) if local else None for lane in lanes}
        common = {lane: addresses[lane] for lane in lanes if own[lane] is None}
        if not weak and _held(machine, warp, common, space, (unit, lanes_of), instruction, window):
            return False
        hidden = number in machine.schedule.opaque
        lists = [list(UNKNOWN if hidden else one(warp)) for one in sources]
        for lane in lanes:
            block, at = own[lane] or machine.place(warp, space, addresses[lane], size, instruction, window)
            aligned(block, at, size, addresses[lane])
            events = list[TraceEvent]()
            if own[lane] is not None or block is machine.memory.params:
                moved(machine, warp, lane, (block, at), size, number, put=not load)
            elif weak:
                stored = None if load else together([one[lane] for one in lists], unit)
                machine.weak(block, at, size, warp.threads[lane], label, number, unit, value=stored)
                if not load:
                    machine.forget(block, at, size)
            else:
                values = [one[lane] for one in lists] or [None] * lanes_of
                events = _all_strong(machine, warp, lane, number, label, block, at, unit, values)
            if load:
                read_lane(warp, lane, slots, block, at, unit, extend)
                _learn(warp, lane, slots if parts and not extend else [], block, at, unit, wide)
                _strong_result(machine, warp, lane, slots, instruction, events, extend, wide if parts else 0)
                continue
            for part, row in enumerate(lists):
                block.store_bits(at + part * unit, unit, warp.bits_of(None if hidden else held[part], row, lane))
            machine.reads.all_made(events)
        return True

    return step


def _all_strong(
    machine: Machine, warp: Warp, lane: int, at: int, label: Access, block: Block, first: int, unit: int,
    values: list[Value],
) -> list[TraceEvent]:  # fmt: skip
    """The elements of a strong access."""
    return [
        strong(machine, warp, lane, at, label, block, first + part * unit, unit, value=value)
        for part, value in enumerate(values)
    ]


def _around(warp: Warp, lane: int, slots: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    values = ((slot, warp.registers[slot][lane]) for slot in slots)
    return tuple((slot, value) for slot, value in values if value is not None)


def _held(
    machine: Machine, warp: Warp, addresses: dict[int, Value], space: str, sizes: tuple[int, int],
    instruction: PtxInstruction, window: Window,
) -> bool:  # fmt: skip
    """Does a lane wait until nobody else can go on, or for a write that it reads? `sizes`: bytes, how often."""
    reads = instruction.words[0] != "st"
    if reads and any([machine.early(warp.threads[lane], instruction.number, sizes[1]) for lane in addresses]):
        return True
    if not machine.schedule.looks:
        return False
    size = sizes[0] * sizes[1]
    places = [(n, machine.place(warp, space, one, size, instruction, window)) for n, one in addresses.items()]
    return any([machine.held(warp.threads[n], instruction, at, reads=reads) for n, at in places])


def _learn(warp: Warp, lane: int, slots: list[int | None], block: Block, at: int, unit: int, wide: int) -> None:
    """What is known of the bits that are loaded into registers whose bits are looked at one by one."""
    for part, slot in enumerate(slots):
        if slot is not None:
            warp.learn(slot, lane, loaded(block.bits(at + part * unit, unit), unit, wide), wide)


def _elements(instruction: PtxInstruction, what: Operand) -> tuple[tuple[Operand, ...], int]:
    """The values that an access moves, and the bytes of each."""
    words = instruction.words
    unit = (width_of(words[-1]) or 0) // 8
    if not unit:
        raise Refused(f"{instruction.opcode} has no type", instruction.span)
    items = what.items if isinstance(what, Vector) else (what,)
    wanted = next((int(word[1:]) for word in words if word in ("v2", "v4", "v8")), 1)
    if len(items) != wanted:
        raise Refused(f"{instruction.opcode} moves {wanted} values, not {len(items)}", instruction.span)
    return items, unit


def _zeros(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """st.bulk: as many bytes of shared memory as the operand says become zero."""
    get = address(compiler, instruction, instruction.operands[0])
    sizes = compiler.get(instruction.operands[1], instruction)
    label, space = Access(Side.WRITE), space_of(instruction.words)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        for lane in lanes:
            size = sizes(warp)[lane]
            if size is None:
                machine.unknown("the size", instruction)
            if size % 8:
                raise Faulty("undefined-instruction", f"st.bulk writes a multiple of 8 bytes, and not {size}")
            if size:
                block, at = machine.place(warp, space, get(warp)[lane], size, instruction, Window.SHARED_CTA)
                machine.weak(block, at, size, warp.threads[lane], label, instruction.number, None, None, 0)
                machine.forget(block, at, size)
                block.write(at, bytes(size))
        return True

    return step


def _discard(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """discard: a weak write of 128 bytes of global memory, whose values are indeterminate ("discard")."""
    get = address(compiler, instruction, instruction.operands[0])
    label = Access(Side.WRITE)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        places = list(get(warp))
        for lane in lanes:
            block, at = machine.place(warp, "generic", places[lane], DISCARDED, instruction, Window.GLOBAL)
            aligned(block, at, DISCARDED, places[lane])
            machine.weak(block, at, DISCARDED, warp.threads[lane], label, instruction.number, None)
            machine.forget(block, at, DISCARDED)
            block.forget(at, DISCARDED)
        return True

    return step


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
            warp.own(slot)[lane] = extended(bits.whole(8 * event.size), event.size, extend)
            known = loaded(bits, event.size, wide) if wide and not extend else NOTHING
            warp.learn(slot, lane, known, max(wide, 1))
    if instruction.number in machine.schedule.opaque:
        forgetting([slot for slot in slots if slot is not None])(warp, [lane])
    elif any(slot is not None and warp.knows(slot, lane) for slot in slots):
        machine.run.choices.setdefault(("load", instruction.number), instruction)


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


def _write_all(warp: Warp, lanes: Lanes, sources: list[Get], block: Block, offsets: list[int], unit: int) -> None:
    for part, get in enumerate(sources):
        row, shift = get(warp), part * unit
        if row is UNKNOWN and block.known is None:
            continue
        for lane, at in zip(lanes, offsets, strict=True):
            block.store(at + shift, unit, row[lane])


def registers_of(compiler: Compiler, operand: Operand) -> list[int]:
    """The registers of a fragment."""
    items = operand.items if isinstance(operand, Vector) else (operand,)
    return [slot for slot in map(compiler.slot_of, items) if slot is not None]


def gathered(warp: Warp, lanes: Lanes) -> bool:
    """Have all lanes of the warp that have not ended come to an instruction with .aligned?"""
    return len(lanes) == LANES or sum(1 << lane for lane in lanes) == warp.live


def _copy(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """cp.async: 4, 8 or 16 bytes, of which `src-size` are read and the rest is zero."""
    hinted = any("cache_hint" in word for word in instruction.words)
    operands = instruction.operands[:-1] if hinted else instruction.operands
    target = address(compiler, instruction, operands[0])
    source = address(compiler, instruction, operands[1])
    sizes = compiler.get(operands[2], instruction)
    kept = compiler.get(operands[3], instruction) if len(operands) > 3 else sizes
    ignored = len(operands) > 3 and isinstance(operands[3], Register) and operands[3].kind == "pred"
    issue_label: Label = Issue(Family.CP_ASYNC)
    reads = Access(Side.READ, family=Family.CP_ASYNC, asynchronous=True, role=Role.SOURCE)
    writes = Access(Side.WRITE, family=Family.CP_ASYNC, asynchronous=True)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        to, start, whole, part = list(target(warp)), list(source(warp)), list(sizes(warp)), list(kept(warp))
        for lane in lanes:
            size, left = whole[lane], part[lane]
            if size is None or left is None:
                machine.unknown("the size of the copy", instruction)
            left = (0 if left else size) if ignored else left
            if left > size:
                raise Faulty("undefined-instruction", f"src-size {left} of cp.async is above cp-size {size}")
            thread = warp.threads[lane]
            block, at = machine.place(warp, "shared", to[lane], size, instruction)
            aligned(block, at, size, to[lane])
            issue = machine.event(thread, instruction.number, issue_label)
            if left:
                origin, begin = machine.place(warp, "global", start[lane], left, instruction)
                machine.weak(origin, begin, left, thread, reads, instruction.number, None, issue)
                block.copy(at, origin, begin, left)
            machine.weak(block, at, size, thread, writes, instruction.number, None, issue)
            machine.forget(block, at, size)
            if left < size:
                block.store(at + left, size - left, 0)
            warp.tracks[Track.CP_ASYNC].add(lane, issue)
        return True

    return step
