"""Atomic operations: atom and red, of one element and of vectors.

In: an Instruction. Out: a step. Each element of a vector is an operation of its own ("atom": "vector operations are
performed ... as a set of scalar atomic operations, with no guarantee of atomicity across the entire vector access").
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.base.labels import Access, Family, Side
from memmodel.kernel.arithmetic.alu import Fn, function, width_of
from memmodel.kernel.machine.accesses import SCOPES, SEMS, address, aligned, space_of, strong
from memmodel.kernel.machine.parts import LaneGroup, Lanes, Warp
from memmodel.kernel.machine.pure import Compiler
from memmodel.kernel.machine.rows import Value
from memmodel.kernel.machine.state import Machine
from memmodel.kernel.machine.warpops import Blocking
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.problems import Refused
from memmodel.program.fields import NOTHING, Bits, fields
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Blank, Vector
from memmodel.ptx.vocabulary import Scope, Sem, Window

OPERATIONS = ("add", "min", "max", "and", "or", "xor", "sub", "inc", "dec", "exch", "cas")


@dataclass(frozen=True, slots=True)
class AtomicPlan:
    """What an instruction does to an element of `unit` bytes."""

    instruction: PtxInstruction
    op: str
    fn: Fn | None
    unit: int
    reads: Access
    writes: Access


def atomic_step(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    """The step of an instruction of this family."""
    words, operands = instruction.words, list(instruction.operands)
    if words[0] not in ("atom", "red") or "async" in words:
        return None
    plan = _plan(instruction)
    target = operands.pop(0) if words[0] == "atom" else Blank()
    get = address(compiler, instruction, operands[0])
    given = operands[1 : 3 if plan.op == "cas" else 2]
    count = next((int(word[1:]) for word in words if word in ("v2", "v4", "v8")), 1)
    vectors = [one.items if isinstance(one, Vector) else (one,) for one in given]
    results = target.items if isinstance(target, Vector) else (target,) * count
    if len(given) != (2 if plan.op == "cas" else 1) or any(len(one) != count for one in (*vectors, results)):
        raise Refused(f"{instruction.opcode} has too few operands", instruction.span)
    slots = [compiler.slot_of(one) for one in results]
    sources = [[compiler.get(one, instruction, plan.unit * 8) for one in vector] for vector in vectors]
    held = [[compiler.slot_of(one) for one in vector] for vector in vectors]
    packs = any(one in compiler.packed for vector in (slots, *held) for one in vector)
    space, size = space_of(words), plan.unit * count

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        addresses = list(get(warp))
        values = [[one(warp) for one in vector] for vector in sources]
        both = list(zip(held, values, strict=True)) if packs else []
        places = [machine.place(warp, space, addresses[lane], size, instruction, Window.DATA) for lane in lanes]
        turns: list[int] | None = list(range(len(lanes)))
        if machine.order:
            turns = machine.turn([(*one, warp.threads[lane].number) for one, lane in zip(places, lanes, strict=True)])
        if turns is None:
            return False
        for number in turns:
            lane, (block, at) = lanes[number], places[number]
            aligned(block, at, size, addresses[lane])
            for part, slot in enumerate(slots):
                operands = [vector[part][lane] for vector in values]
                bits = [warp.bits_of(names[part], rows[part], lane) for names, rows in both]
                _operate(machine, warp, lane, plan, (block, at + part * plan.unit), operands, bits, slot)
        return True

    return step


def _plan(instruction: PtxInstruction) -> AtomicPlan:
    words = instruction.words
    kind = next((word for word in reversed(words) if width_of(word)), "")
    unit = (width_of(kind) or 0) // 8
    op = next((word for word in words[1:] if word in OPERATIONS), None)
    if op is None or not unit:
        raise Refused(f"{instruction.opcode} is not known", instruction.span)
    scope = next((SCOPES[word] for word in words if word in SCOPES), Scope.GPU)
    sem = next((SEMS[word] for word in words if word in SEMS), Sem.RELAXED)
    first = Sem.ACQUIRE if sem in (Sem.ACQUIRE, Sem.ACQ_REL) else Sem.RELAXED
    second = Sem.RELEASE if sem in (Sem.RELEASE, Sem.ACQ_REL) else Sem.RELAXED
    family = Family.ATOM if words[0] == "atom" else Family.RED
    return AtomicPlan(
        instruction, op, modifies(op, kind), unit,
        Access(Side.READ, first, scope, family=family, rmw=True),
        Access(Side.WRITE, second, scope, family=family, rmw=True),
    )  # fmt: skip


def _operate(
    machine: Machine, warp: Warp, lane: int, plan: AtomicPlan, place: tuple[Block, int], given: list[Value],
    bits: list[Bits], slot: int | None,
) -> None:  # fmt: skip
    """One operation on one element; what it returns may depend on the schedule.

    `bits`: what is known of the operands, if the registers are among those whose bits are looked at one by one.
    """
    (block, at), number, op = place, plan.instruction.number, plan.op
    hidden = number in machine.schedule.opaque
    found = block.bits(at, plan.unit) if bits and not hidden else NOTHING
    read = strong(machine, warp, lane, number, plan.reads, block, at, plan.unit)
    older = machine.reads.older(read)
    unseen = hidden and number not in machine.schedule.counted
    old = None if unseen else block.load(at, plan.unit) if older is None else older.whole(8 * plan.unit)
    new: Value = None if old is None or None in given or plan.fn is None else plan.fn(old, *given)
    if op != "cas" or old is None or given[0] is None or old == given[0]:
        last = machine.strong[block].get(at)
        write = strong(machine, warp, lane, number, plan.writes, block, at, plan.unit)
        read.partner, write.partner = write, read
        write.given = None if op == "cas" else given[0]
        if older is not None:
            machine.reads.inserted(write, older, new)
            machine.strong[block].pop(at)
            machine.strong[block] |= {} if last is None else {at: last}
        elif new is None and bits and not hidden:
            block.store_bits(at, plan.unit, _leaves(plan, found, bits))
        else:
            block.store(at, plan.unit, new)
        if older is None:
            machine.reads.made(write)
    if slot is not None:
        warp.own(slot)[lane] = None if hidden else old
        warp.learn(slot, lane, found, 8 * plan.unit)
        if warp.knows(slot, lane):
            machine.run.choices.setdefault(("atomic", number), plan.instruction)
    machine.run.atomics.setdefault((block, at), []).append(read)
    machine.passed(block, at, warp.threads[lane].number)


def _leaves(plan: AtomicPlan, old: Bits, given: list[Bits]) -> Bits:
    """What an operation leaves, as far as single bits are known."""
    if plan.op == "exch":
        return given[0]
    told = fields((plan.op, f"u{8 * plan.unit}"), 8 * plan.unit)
    return NOTHING if told is None else told(old, *given)


def modifies(op: str, kind: str) -> Fn | None:
    """What an operation leaves, from the old value and its operands; None if it is not known."""
    width = width_of(kind) or 32
    mask = (1 << width) - 1
    special: dict[str, Fn] = {
        "exch": lambda old, b: b & mask,
        "inc": lambda old, b: 0 if old >= b else old + 1,
        "dec": lambda old, b: b if old == 0 or old > b else old - 1,
        "cas": lambda old, b, c: c & mask if old == b & mask else old,
    }
    return special.get(op) or function((op, kind))
