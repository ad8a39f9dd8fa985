"""Loads, stores, atomics, matrix fragments and copies without bulk.

In: an Instruction. Out: a step that moves the values and leaves the accesses in the traces of its threads.
"""

from __future__ import annotations

from memmodel.base.labels import Access, Family, Issue, Label, Role, Side
from memmodel.kernel.judge.events import Refused, TraceEvent
from memmodel.kernel.machine.alu import Fn, Value, function, width_of
from memmodel.kernel.machine.memory import Block
from memmodel.kernel.machine.pure import Compiler, Get
from memmodel.kernel.machine.state import Faulty, LaneGroup, Lanes, Machine, Warp
from memmodel.kernel.machine.warpops import Blocking
from memmodel.kernel.text.syntax import AddressOperand, Operand, PtxInstruction, Register, Sink, Symbol, VectorOperand
from memmodel.ptx import Proxy, Scope, Sem

SCOPES = {"cta": Scope.CTA, "cluster": Scope.CLUSTER, "gpu": Scope.GPU, "sys": Scope.SYS}
SEMS = {"relaxed": Sem.RELAXED, "acquire": Sem.ACQUIRE, "release": Sem.RELEASE, "acq_rel": Sem.ACQ_REL}
COMMUTING = ("add", "min", "max", "and", "or", "xor")
"""Operations that leave the same value in any order."""


def access_step(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    """The step of an instruction of this family."""
    head = instruction.words[0]
    if head in ("ld", "ldu", "st"):
        return _move(compiler, instruction)
    if head in ("atom", "red"):
        return _atomic(compiler, instruction)
    if head in ("ldmatrix", "stmatrix"):
        return _matrix(compiler, instruction)
    if head == "mma":
        return _mma(compiler, instruction)
    if instruction.words[:2] == ("cp", "async") and instruction.words[2] in ("ca", "cg"):
        return _copy(compiler, instruction)
    return None


def address(compiler: Compiler, instruction: PtxInstruction, operand: Operand) -> Get:
    """The numbers of an address operand."""
    if not isinstance(operand, AddressOperand):
        raise Refused(f"{instruction.opcode} takes an address in brackets here", instruction.span)
    base = compiler.get(operand.base, instruction)
    offset = operand.offset
    if offset == 0:
        return base
    return lambda warp: [None if one is None else one + offset for one in base(warp)]


def space_of(words: tuple[str, ...]) -> str:
    """The state space that an instruction names."""
    for word in words[1:]:
        if word.split("::")[0] in ("shared", "global", "local", "param", "const"):
            return word
    return "generic"


def _semantics(instruction: PtxInstruction, side: Side) -> Access:
    words = instruction.words
    scope = next((SCOPES[word] for word in words if word in SCOPES), None)
    if "volatile" in words:
        return Access(side, Sem.RELAXED, Scope.SYS, spelt="volatile")
    if "mmio" in words:
        return Access(side, Sem.RELAXED, scope or Scope.SYS, spelt="mmio")
    sem = next((SEMS[word] for word in words if word in SEMS), None)
    if sem is None:
        return Access(side, proxy=Proxy.READ_ONLY if "nc" in words else Proxy.GENERIC)
    return Access(side, sem, scope)


def strong(
    machine: Machine, warp: Warp, lane: int, at: int, label: Access, block: Block, first: int, size: int
) -> TraceEvent:
    """A strong access as an event; a read takes what the last strong write left."""
    if label.side is Side.READ:
        machine.poll(warp.threads[lane], at, block, first)
    made = machine.event(warp.threads[lane], at, label, block.instance.name, first, size)
    made.block, made.first, made.size = block, first, size
    known = machine.strong.setdefault(block, {})
    for begin, (length, event) in list(known.items()):
        if begin < first + size and first < begin + length:
            if label.side is Side.READ and (begin, length) == (first, size):
                made.source = event
            elif label.side is Side.WRITE and (begin, length) != (first, size):
                del known[begin]
    if label.side is Side.WRITE:
        known[first] = (size, made)
    return made


def _move(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    words, operands = instruction.words, instruction.operands
    load = words[0] != "st"
    if len(operands) < 2:
        raise Refused(f"{instruction.opcode} takes two operands", instruction.span)
    where, what = (operands[1], operands[0]) if load else (operands[0], operands[1])
    unit = (width_of(words[-1]) or 0) // 8
    if not unit:
        raise Refused(f"{instruction.opcode} has no type", instruction.span)
    items = what.items if isinstance(what, VectorOperand) else (what,)
    lanes_of = next((int(word[1:]) for word in words if word in ("v2", "v4", "v8")), 1)
    if len(items) != lanes_of:
        raise Refused(f"{instruction.opcode} moves {lanes_of} values, not {len(items)}", instruction.span)
    space = space_of(words)
    label = _semantics(instruction, Side.READ if load else Side.WRITE)
    if space.startswith("param") or space == "local":
        return _private(compiler, instruction, where, items, unit, load=load)
    get = address(compiler, instruction, where)
    size, number = unit * lanes_of, instruction.number
    slots = [one.slot if isinstance(one, Register) else None for one in items] if load else []
    sources = [] if load else [compiler.get(one, instruction, unit * 8) for one in items]
    extend = words[-1][0] == "s" and unit < 8

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        addresses = list(get(warp))
        lists = [one(warp) for one in sources]
        for lane in lanes:
            block, at = machine.place(warp, space, addresses[lane], size, instruction)
            if (at + block.address) % size:
                raise Faulty("undefined-address", f"address {addresses[lane]:#x} is misaligned for {size} bytes")
            if block is machine.memory.params:
                _read(warp, lane, slots, block, at, unit, extend)
                continue
            if label.sem is Sem.WEAK:
                given = None if load else _together([one[lane] for one in lists], unit)
                machine.weak(block, at, size, warp.threads[lane], label, number, unit, None, given)
            else:
                for part in range(lanes_of):
                    strong(machine, warp, lane, number, label, block, at + part * unit, unit)
            if load:
                _read(warp, lane, slots, block, at, unit, extend)
                if label.sem is not Sem.WEAK:
                    _strong_result(machine, warp, lane, slots, instruction)
                continue
            if label.sem is Sem.WEAK:
                machine.forget(block, at, size)
            for part, values in enumerate(lists):
                block.store(at + part * unit, unit, values[lane])
        return True

    return step


def _together(values: list[Value], unit: int) -> Value:
    """The elements of a vector as one number."""
    found = 0
    for number, value in enumerate(values):
        if value is None:
            return None
        found |= (value & (1 << 8 * unit) - 1) << 8 * unit * number
    return found


def _strong_result(
    machine: Machine, warp: Warp, lane: int, slots: list[int | None], instruction: PtxInstruction
) -> None:
    """What a strong load returns may depend on the schedule."""
    if instruction.number in machine.schedule.opaque:
        for slot in slots:
            if slot is not None:
                warp.registers[slot][lane] = None
    elif any(slot is not None and warp.registers[slot][lane] is not None for slot in slots):
        machine.run.choices.setdefault(("load", instruction.number), instruction)


def _read(warp: Warp, lane: int, slots: list[int | None], block: Block, at: int, unit: int, extend: bool) -> None:
    for part, slot in enumerate(slots):
        if slot is not None:
            value = block.load(at + part * unit, unit)
            if extend and value is not None and value >> unit * 8 - 1:
                value |= (1 << 64) - (1 << unit * 8)
            warp.registers[slot][lane] = value


def _private(
    compiler: Compiler,
    instruction: PtxInstruction,
    where: Operand,
    items: tuple[Operand, ...],
    unit: int,
    *,
    load: bool,
) -> Blocking:
    """Parameters of the entry are read; local memory and parameters of calls are a thread's own, and opaque."""
    base = where.base if isinstance(where, AddressOperand) else None
    own = space_of(instruction.words) == "local"
    own |= isinstance(base, Symbol) and base.name not in compiler.memory.symbols
    if own:
        if load:
            slots = [one.slot for one in items if isinstance(one, Register)]

            def forget(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
                for slot in slots:
                    for lane in lanes:
                        warp.registers[slot][lane] = None
                return True

            return forget
        return lambda machine, warp, lanes, group: True
    get = address(compiler, instruction, where)
    registers = [one.slot if isinstance(one, Register) else None for one in items]
    extend = instruction.words[-1][0] == "s" and unit < 8

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        addresses, params = list(get(warp)), machine.memory.params
        for lane in lanes:
            at = addresses[lane]
            if at is None:
                machine.unknown("the address", instruction)
            if not 0 <= at <= params.size - unit * len(registers):
                raise Faulty("undefined-address", f"offset {at} is outside the parameters")
            _read(warp, lane, registers, params, at, unit, extend)
        return True

    return step


def _modifies(op: str, kind: str) -> Fn | None:
    width = width_of(kind) or 32
    mask = (1 << width) - 1
    special: dict[str, Fn] = {
        "exch": lambda old, b: b & mask,
        "inc": lambda old, b: 0 if old >= b else old + 1,
        "dec": lambda old, b: b if old == 0 or old > b else old - 1,
        "cas": lambda old, b, c: c & mask if old == b & mask else old,
    }
    return special.get(op) or function((op, kind))


def _atomic(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    words, operands = instruction.words, list(instruction.operands)
    atom = words[0] == "atom"
    kind, unit = words[-1], (width_of(words[-1]) or 0) // 8
    op = next(
        (
            word
            for word in words[1:]
            if word in ["add", "sub", "inc", "dec", "min", "max", "and", "or", "xor", "exch", "cas"]
        ),
        None,
    )
    if op is None or not unit or any(word in ("v2", "v4", "v8") for word in words):
        raise Refused(f"{instruction.opcode} is not known", instruction.span)
    target = operands.pop(0) if atom else Sink()
    slot = target.slot if isinstance(target, Register) else None
    get = address(compiler, instruction, operands[0])
    gets = [compiler.get(one, instruction, unit * 8) for one in operands[1 : 3 if op == "cas" else 2]]
    if len(gets) != (2 if op == "cas" else 1):
        raise Refused(f"{instruction.opcode} has too few operands", instruction.span)
    fn = _modifies(op, kind)
    scope = next((SCOPES[word] for word in words if word in SCOPES), Scope.GPU)
    sem = next((SEMS[word] for word in words if word in SEMS), Sem.RELAXED)
    first = Sem.ACQUIRE if sem in (Sem.ACQUIRE, Sem.ACQ_REL) else Sem.RELAXED
    second = Sem.RELEASE if sem in (Sem.RELEASE, Sem.ACQ_REL) else Sem.RELAXED
    family = Family.ATOM if atom else Family.RED
    reads = Access(Side.READ, first, scope, family=family, rmw=True)
    writes = Access(Side.WRITE, second, scope, family=family, rmw=True)
    space = space_of(words)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        addresses, values = list(get(warp)), [one(warp) for one in gets]
        turns = lanes
        if machine.order:
            places = [machine.place(warp, space, addresses[lane], unit, instruction) for lane in lanes]
            numbers = machine.turn([(*one, warp.threads[lane].number) for one, lane in zip(places, lanes, strict=True)])
            if numbers is None:
                return False
            turns = [lanes[number] for number in numbers]
        for lane in turns:
            block, at = machine.place(warp, space, addresses[lane], unit, instruction)
            if (at + block.address) % unit:
                raise Faulty("undefined-address", f"address {addresses[lane]:#x} is misaligned for {unit} bytes")
            read = strong(machine, warp, lane, instruction.number, reads, block, at, unit)
            old, given = block.load(at, unit), [one[lane] for one in values]
            if instruction.number in machine.schedule.opaque and slot is not None:
                old = None
            new: Value = None if old is None or None in given or fn is None else fn(old, *given)
            writes_it = op != "cas" or old is None or given[0] is None or old == given[0]
            if writes_it:
                write = strong(machine, warp, lane, instruction.number, writes, block, at, unit)
                read.partner, write.partner = write, read
                block.store(at, unit, new)
            if slot is not None:
                warp.registers[slot][lane] = old
                if old is not None:
                    machine.run.choices.setdefault(("atomic", instruction.number), instruction)
            elif old is not None and (op not in COMMUTING or machine.kinds.setdefault((block, at), op) != op):
                machine.run.choices.setdefault(("order", instruction.number), instruction)
            machine.run.atomics.setdefault((block, at), []).append(read)
            machine.passed(block, at, warp.threads[lane].number)
        return True

    return step


def _matrix(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """ldmatrix and stmatrix: lane 8k + r names row r of matrix k, 16 bytes."""
    words = instruction.words
    load = words[0] == "ldmatrix"
    count = next((int(word[1:]) for word in words if word in ("x1", "x2", "x4")), 0)
    if not count or "m8n8" not in words or words[-1] != "b16":
        raise Refused(f"{instruction.opcode} is not known", instruction.span)
    where, what = instruction.operands[:: 1 if not load else -1][:2]
    get = address(compiler, instruction, where)
    slots = [
        one.slot for one in (what.items if isinstance(what, VectorOperand) else (what,)) if isinstance(one, Register)
    ]
    label = Access(Side.READ if load else Side.WRITE)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if sum(1 << lane for lane in lanes) != warp.live:
            return False
        addresses = list(get(warp))
        for lane in lanes[: 8 * count]:
            block, at = machine.place(warp, "shared", addresses[lane], 16, instruction)
            if at % 16:
                raise Faulty("undefined-address", f"address {addresses[lane]:#x} is misaligned for 16 bytes")
            # Lane 4r + c moves word c of every row r.
            for column in range(4):
                thread = warp.threads[lane % 8 * 4 + column]
                machine.weak(block, at + 4 * column, 4, thread, label, instruction.number, 4)
            if not load:
                machine.forget(block, at, 16)
                block.store(at, 16, None)
        if load:
            for slot in slots:
                for lane in lanes:
                    warp.registers[slot][lane] = None
        return True

    return step


def _mma(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    target = instruction.operands[0]
    slots = [
        one.slot
        for one in (target.items if isinstance(target, VectorOperand) else (target,))
        if isinstance(one, Register)
    ]

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if sum(1 << lane for lane in lanes) != warp.live:
            return False
        for slot in slots:
            for lane in lanes:
                warp.registers[slot][lane] = None
        return True

    return step


def _copy(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """cp.async: 4, 8 or 16 bytes, of which `src-size` are read and the rest is zero."""
    operands = instruction.operands
    target = address(compiler, instruction, operands[0])
    source = address(compiler, instruction, operands[1])
    sizes = compiler.get(operands[2], instruction)
    kept = compiler.get(operands[3], instruction) if len(operands) > 3 else sizes
    ignored = len(operands) > 3 and isinstance(operands[3], Register) and operands[3].kind == "pred"
    issue_label: Label = Issue(Family.CP_ASYNC)
    reads = Access(Side.READ, family=Family.CP_ASYNC, asynchronous=True, role=Role.SOURCE)
    writes = Access(Side.WRITE, family=Family.CP_ASYNC, asynchronous=True)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        to, start, whole, part = list(target(warp)), list(source(warp)), sizes(warp), kept(warp)
        for lane in lanes:
            size, left = whole[lane], part[lane]
            if size is None or left is None:
                machine.unknown("the size of the copy", instruction)
            left = (0 if left else size) if ignored else left
            if left > size:
                raise Faulty("undefined-instruction", f"src-size {left} of cp.async is above cp-size {size}")
            thread = warp.threads[lane]
            block, at = machine.place(warp, "shared", to[lane], size, instruction)
            if at % size:
                raise Faulty("undefined-address", f"address {to[lane]:#x} is misaligned for {size} bytes")
            issue = machine.event(thread, instruction.number, issue_label)
            if left:
                origin, begin = machine.place(warp, "global", start[lane], left, instruction)
                machine.weak(origin, begin, left, thread, reads, instruction.number, None, issue)
                block.copy(at, origin, begin, left)
            machine.weak(block, at, size, thread, writes, instruction.number, None, issue)
            machine.forget(block, at, size)
            if left < size:
                block.store(at + left, size - left, 0)
            warp.pending[lane].append(issue)
        return True

    return step
