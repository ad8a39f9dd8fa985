"""Calls of functions: what goes in, what comes out, and what a function that calls itself finds as it left it.

In: the `CallPlan`s of an instruction. Out: groups of lanes that go on in a function or behind a call. Registers and
parameters of a function have one place for each thread, so that they are put aside while another call of it is at work.
The stack from which alloca takes is the end of the memory of a thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memmodel.base.labels import Access, Side
from memmodel.kernel.machine.compiler import Compiler
from memmodel.kernel.machine.memory import PRIVATE_START, STACK
from memmodel.kernel.machine.parts import Faulty, LaneGroup, Lanes, PutAside, Warp
from memmodel.kernel.machine.private_memory import moved
from memmodel.kernel.machine.rows import Row
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.problems import Refused
from memmodel.program.windows import LOCAL_WINDOW
from memmodel.ptx.module.syntax import Callee, PtxInstruction
from memmodel.ptx.operands import Arguments, Imm, Sym

MAX_DEPTH = 1000
"""Calls inside one another."""

Moves = Sequence[tuple[int, int, int]]
"""What is copied in the memory of a thread: from, to, bytes."""


@dataclass(frozen=True, slots=True)
class CallPlan:
    """A call: the function, the places that go in and come out; its address."""

    callee: Callee
    given: tuple[tuple[int, int, int], ...]
    returned: tuple[tuple[int, int, int], ...]
    address: int


def _active(callee: Callee, places: Iterable[int]) -> bool:
    """Is a thread in a function already? `places`: of the calls that it is in."""
    return any(callee.start <= at < callee.end for at in places)


def enter(machine: Machine, warp: Warp, group: LaneGroup, lanes: Lanes, plan: CallPlan, call: PtxInstruction) -> None:
    """The group goes on in the function."""
    frames = (*group.frames, group.at)
    if len(frames) > MAX_DEPTH:
        raise Refused(f"calls are nested more than {MAX_DEPTH:,} deep", call.span)
    again = _active(plan.callee, frames)
    if again and any(one.space == "local" for one in plan.callee.variables):
        raise Refused("a call of a function by itself, with local memory of its own, is not known", call.span)
    for lane in lanes:
        own = _private(machine, warp, lane)
        if again:
            warp.aside[lane].append(_put_aside(machine, warp, lane, own, plan.callee))
        for source, target, size in plan.given:
            own.copy(target, own, source, size)
            if machine.noted is not None:
                machine.noted.left(own, target, machine.noted.taken(own, source, size))
    group.frames, group.at = frames, plan.callee.start


def back(machine: Machine, warp: Warp, group: LaneGroup, lanes: Lanes, plans: Sequence[CallPlan]) -> None:
    """The group goes on behind the call."""
    plan = next(one for one in plans if one.callee.start <= group.at < one.callee.end)
    again = _active(plan.callee, group.frames)
    for lane in lanes:
        own = _private(machine, warp, lane)
        results = [(target, _piece(own, source, size)) for source, target, size in plan.returned]
        noted = machine.noted
        terms = [] if noted is None else [noted.taken(own, source, size) for source, _, size in plan.returned]
        if again:
            kept = warp.aside[lane].pop()
            _restore(warp, lane, own, plan.callee, kept)
            for at, data, _ in () if noted is None else kept.memory:
                moved(machine, warp, lane, (own, at), len(data), group.at, put=True)
        for target, piece in results:
            _put(own, target, *piece)
        for (target, _), cells in zip(results, terms, strict=False):
            if noted is not None:
                noted.left(own, target, cells)
    group.frames, group.at = group.frames[:-1], group.frames[-1] + 1


def chosen_callee(
    machine: Machine, warp: Warp, group: LaneGroup, lanes: Lanes, plans: Sequence[CallPlan], through: Row | None,
    call: PtxInstruction,
) -> tuple[CallPlan, Lanes]:  # fmt: skip
    """The function that these lanes call. `through`: its addresses; lanes that call another one wait."""
    if through is None:
        return plans[0], lanes
    if any(through[lane] is None for lane in lanes):
        machine.unknown("which function is called", call)
    first = through[lanes[0]]
    plan = next((one for one in plans if one.address == first), None)
    if plan is None:
        raise Faulty("undefined-instruction", "no function with these parameters has the address that is called")
    others = [lane for lane in lanes if through[lane] != first]
    if others:
        warp.groups.append(LaneGroup(group.at, others, frames=group.frames))
        group.lanes = [lane for lane in group.lanes if lane not in others]
    return plan, [lane for lane in lanes if lane not in others]


HEAP = ("malloc", "free")


def system_call(machine: Machine, warp: Warp, lanes: Lanes, call: PtxInstruction) -> None:
    """A call of a function of the system: malloc, free, or one that touches no memory of the kernel and whose result is
    not known.
    """
    name = next((one.name for one in call.operands if isinstance(one, Sym)), "")
    symbols = machine.memory.symbols
    lists = [one.items for one in call.operands if isinstance(one, Arguments)]
    places = [[symbols[x.name][1] for x in one if isinstance(x, Sym) and x.name in symbols] for one in lists]
    for lane in lanes:
        found = [machine.private(warp, lane, LOCAL_WINDOW + at, 1) for part in places for at in part]
        own = [one for one in found if one is not None]
        if name == "malloc" and len(own) == 2:
            (block, at), (_, given) = own
            size = block.load(given, 8)
            if size is None:
                machine.unknown("how many bytes malloc is asked for", call)
            machine.run.assumed.setdefault(f"line {call.line}: malloc was taken to return memory, and not null")
            block.store(at, 8, machine.memory.allocate(size))
            moved(machine, warp, lane, own[0], 8, call.number, put=True)
        elif name == "free" and len(own) == 1:
            _free(machine, warp, lane, own[0][0].load(own[0][1], 8), call)
        elif isinstance(call.operands[0], Arguments):
            for block, at in own[: len(places[0])]:
                block.forget(at, 8)
                moved(machine, warp, lane, (block, at), 8, call.number, put=True)


def _free(machine: Machine, warp: Warp, lane: int, address: int | None, call: PtxInstruction) -> None:
    """To free memory conflicts with all use of it, as a write of all its bytes does."""
    if address is None:
        machine.unknown("what is freed", call)
    if address == 0:
        return
    block = machine.memory.heap.get(address)
    if block is None:
        raise Faulty("undefined-address", f"{address:#x} is freed, and is no memory that malloc returned")
    machine.weak(block, 0, block.size, warp.threads[lane], Access(Side.WRITE), call.number, None)
    machine.memory.release(block)


def stack_step(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    """alloca, stacksave, stackrestore: the stack of a thread grows down."""
    head, operands = instruction.words[0], instruction.operands
    if head not in ("alloca", "stacksave", "stackrestore"):
        return None
    slot = None if head == "stackrestore" else compiler.target(instruction)
    source = None if head == "stacksave" else compiler.get(operands[head == "alloca"], instruction)
    align = operands[2].value if len(operands) > 2 and isinstance(operands[2], Imm) else 8

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        top = PRIVATE_START + machine.memory.private_size
        given = None if source is None else list(source(warp))
        for lane in lanes:
            value = 0 if given is None else given[lane]
            if value is None:
                machine.unknown("the size of the stack", instruction)
            if head == "alloca":
                at = (top - warp.stacked[lane] - value) // max(8, align) * max(8, align)
                warp.stacked[lane] = top - at
            elif head == "stackrestore":
                warp.stacked[lane] = top - value
            if not 0 <= warp.stacked[lane] <= STACK:
                raise Refused(
                    f"{instruction.opcode}: a stack of more than {STACK:,} bytes is not known", instruction.span
                )
            if slot is not None:
                warp.own(slot)[lane] = top - warp.stacked[lane]
        return True

    return step


def _private(machine: Machine, warp: Warp, lane: int) -> Block:
    found = machine.private(warp, lane, LOCAL_WINDOW + PRIVATE_START, 0)
    assert found is not None
    return found[0]


def _piece(own: Block, at: int, size: int) -> tuple[bytes, bytes]:
    """Bytes of a thread's memory, and which of them are known."""
    if own.known is None:
        return bytes(size), bytes(size)
    return bytes(own.data[at : at + size]), bytes(own.known[at : at + size])


def _put(own: Block, at: int, data: bytes, known: bytes) -> None:
    if own.known is None and not any(known):
        return
    own.write(at, data)
    assert own.known is not None
    own.known[at : at + len(known)] = known


def _put_aside(machine: Machine, warp: Warp, lane: int, own: Block, callee: Callee) -> PutAside:
    first, count = callee.registers
    places = ((machine.memory.symbols[one.name][1] - PRIVATE_START, one.size or 8) for one in callee.variables
              if one.space == "param")  # fmt: skip
    return PutAside(
        tuple(warp.registers[slot][lane] for slot in range(first, first + count)),
        tuple((at, *_piece(own, at, size)) for at, size in places),
    )


def _restore(warp: Warp, lane: int, own: Block, callee: Callee, kept: PutAside) -> None:
    first, count = callee.registers
    warp.clear(range(first, first + count), [lane])
    for slot, value in enumerate(kept.registers, first):
        if warp.registers[slot][lane] != value:
            warp.own(slot)[lane] = value
    for at, data, known in kept.memory:
        _put(own, at, data, known)
