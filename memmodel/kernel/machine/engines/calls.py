"""Calls of functions: what goes in, what comes out, and what a function that calls itself finds as it left it.

In: the `CallPlan`s of an instruction. Out: groups of lanes that go on in a function or after a call. Registers and
parameters of a function have one place for each thread, so that they are put aside while another call of it is at work.
The stack from which alloca takes is the end of the memory of a thread. What a function took is given back as it exits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memmodel.base.labels import Access, Side
from memmodel.kernel.machine.memory import PRIVATE_START, STACK
from memmodel.kernel.machine.parts import Faulty, LaneGroup, Lanes, PutAside, Warp
from memmodel.kernel.machine.private_memory import note_access
from memmodel.kernel.machine.rows import Row
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.machine.surroundings import Surroundings
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.problems import Refused
from memmodel.program.warp_ops import CallFunction, OnStack
from memmodel.ptx.module.syntax import Callee, ModuleVariable, PtxInstruction
from memmodel.ptx.vocabulary import Space

if TYPE_CHECKING:
    from memmodel.kernel.machine.interpret import Interpreter

MAX_DEPTH = 1000
"""Calls inside one another."""


@dataclass(frozen=True, slots=True)
class CallPlan:
    """A call of a function: what is copied before and after it (from, to, bytes), and the address of the function."""

    callee: Callee
    arguments: tuple[tuple[int, int, int], ...]
    results: tuple[tuple[int, int, int], ...]
    address: int


def _active(callee: Callee, places: Iterable[int]) -> bool:
    """True if a thread is in a function already. `places`: of the calls that it is in."""
    return any(callee.start <= at < callee.end for at in places)


def enter(machine: Machine, warp: Warp, group: LaneGroup, lanes: Lanes, plan: CallPlan, call: PtxInstruction) -> None:
    """The group goes on in the function."""
    frames = (*group.frames, group.at)
    if len(frames) > MAX_DEPTH:
        raise Refused(f"calls are nested more than {MAX_DEPTH:,} deep", call.span)
    recursive = _active(plan.callee, frames)
    if recursive and any(variable.space is Space.LOCAL for variable in plan.callee.variables):
        raise Refused("a call of a function by itself, with local memory of its own, is not known", call.span)
    for lane in lanes:
        own = _private(machine, warp, lane)
        warp.stacks[lane].append(warp.stacked[lane])
        if recursive:
            warp.aside[lane].append(_put_aside(machine, warp, lane, own, plan.callee))
        for source, target, size in plan.arguments:
            own.copy(target, own, source, size)
            if machine.memory_terms is not None:
                machine.memory_terms.left(own, target, machine.memory_terms.taken(own, source, size))
    group.frames, group.at = frames, plan.callee.start


def back(machine: Machine, warp: Warp, group: LaneGroup, lanes: Lanes, plans: Sequence[CallPlan]) -> None:
    """The group goes on after the call."""
    plan = next(candidate for candidate in plans if candidate.callee.start <= group.at < candidate.callee.end)
    recursive = _active(plan.callee, group.frames)
    for lane in lanes:
        own = _private(machine, warp, lane)
        warp.stacked[lane] = warp.stacks[lane].pop()
        results = [(target, _piece(own, source, size)) for source, target, size in plan.results]
        memory = machine.memory_terms
        terms = [] if memory is None else [memory.taken(own, source, size) for source, _, size in plan.results]
        if recursive:
            kept = warp.aside[lane].pop()
            _restore(warp, lane, own, plan.callee, kept)
            for at, data, _ in () if memory is None else kept.memory:
                note_access(machine, warp, lane, (own, at), len(data), group.at, put=True)
        for target, piece in results:
            _put(own, target, *piece)
        for (target, _), cells in zip(results, terms, strict=False):
            if memory is not None:
                memory.left(own, target, cells)
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
    plan = next((candidate for candidate in plans if candidate.address == first), None)
    if plan is None:
        raise Faulty("undefined-instruction", "no function with these parameters has the address that is called")
    others = [lane for lane in lanes if through[lane] != first]
    if others:
        warp.groups.append(LaneGroup(group.at, others, frames=group.frames))
        group.lanes = [lane for lane in group.lanes if lane not in others]
    return plan, [lane for lane in lanes if lane not in others]


HEAP = ("malloc", "free")
ASSERTION_CALL = "__assertfail"
"""The function by which an assertion ends the kernel."""

SYSTEM_CALLS = ("vprintf", *HEAP, ASSERTION_CALL)
"""Functions of the system that are known. The first one touches no memory of the kernel."""


def call_plans(
    op: CallFunction, callees: Mapping[str, Callee], surroundings: Surroundings, instruction: PtxInstruction
) -> tuple[CallPlan, ...]:
    """The functions that an instruction may call: the one that it names, or all that have as many parameters and
    results; none if it is one of the system. Raises Refused.
    """
    if op.through is None and op.name not in callees:
        if op.name not in SYSTEM_CALLS:
            raise Refused(f"the call of {op.name} is not known", instruction.span)
        return ()
    named = callees if op.through is not None else {op.name: callees[op.name]}
    counts = len(op.arguments), len(op.results)
    plans = []
    for name, callee in named.items():
        if (len(callee.params), len(callee.results)) == counts:
            arguments = _moves(surroundings, op.arguments, callee.params, instruction)
            results = _moves(surroundings, op.results, callee.results, instruction)
            returned = tuple((source, target, size) for target, source, size in results)
            plans.append(CallPlan(callee, arguments, returned, surroundings.memory.symbols[name][1]))
        elif op.through is None:
            message = f"{name} has {len(callee.params)} parameters and {len(callee.results)} results"
            raise Refused(f"{message}, and {counts[0]} and {counts[1]} are given", instruction.span)
    return tuple(plans)


def _moves(
    surroundings: Surroundings, actual: Sequence[str], formal: Sequence[ModuleVariable], instruction: PtxInstruction
) -> tuple[tuple[int, int, int], ...]:
    """The places of the variables of a call and of the parameters of the function, and their sizes."""
    symbols = surroundings.memory.symbols
    moves = []
    for name, variable in zip(actual, formal, strict=True):
        (space, outside), (own, inside) = (symbols.get(each, (None, 0)) for each in (name, variable.name))
        if space is not Space.PARAM or own is not Space.PARAM:
            raise Refused(f"{name} is no variable in .param, or {variable.name} is none", instruction.span)
        moves.append((outside - PRIVATE_START, inside - PRIVATE_START, variable.size or 8))
    return tuple(moves)


def system_call(machine: Machine, warp: Warp, lanes: Lanes, op: CallFunction, call: PtxInstruction) -> None:
    """A call of a function of the system: malloc, free, or one that touches no memory of the kernel and whose result is
    not known.
    """
    symbols = machine.memory.symbols
    variables = (*op.results, *op.arguments)
    for lane in lanes:
        places = (machine.addressing.private(warp, lane, symbols[name][1], 1) for name in variables)
        own = [place for place in places if place is not None]
        if op.name == "malloc" and len(own) == 2:
            (block, at), (_, argument_at) = own
            size = block.load(argument_at, 8)
            if size is None:
                machine.unknown("how many bytes malloc is asked for", call)
            machine.run.assumed.setdefault(
                f"line {call.line}: malloc returns memory, and not null", "a buffer of the launch"
            )
            block.store(at, 8, machine.memory.allocate(size))
            note_access(machine, warp, lane, own[0], 8, call.number, put=True)
        elif op.name == "free" and len(own) == 1:
            _free(machine, warp, lane, own[0][0].load(own[0][1], 8), call)
        else:
            for block, at in own[: len(op.results)]:
                block.forget(at, 8)
                note_access(machine, warp, lane, (block, at), 8, call.number, put=True)


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


def on_stack(interpreter: Interpreter, op: OnStack) -> Blocking:
    """Memory is taken from the stack of each lane, or given back, or its end is asked for."""
    instruction = interpreter.instruction
    slot = None if op.register is None else interpreter.slot(op.register)
    sizes, ends = (None if expr is None else interpreter.value(expr) for expr in (op.size, op.end))

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        top = PRIVATE_START + machine.memory.private_size
        size_row, end_row = None if sizes is None else sizes(warp), None if ends is None else ends(warp)
        for lane in lanes:
            size = 0 if size_row is None else size_row[lane]
            end = top - warp.stacked[lane] if end_row is None else end_row[lane]
            if size is None or end is None:
                machine.unknown("the size of the stack", instruction)
            end = (end - size) // op.alignment * op.alignment
            if not 0 <= top - end <= STACK:
                message = f"{instruction.opcode}: a stack of more than {STACK:,} bytes is not known"
                raise Refused(message, instruction.span)
            warp.stacked[lane] = top - end
            if slot is not None:
                warp.own(slot)[lane] = end
        return True

    return run


def _private(machine: Machine, warp: Warp, lane: int) -> Block:
    place = machine.addressing.private(warp, lane, PRIVATE_START, 0)
    assert place is not None
    return place[0]


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
    params = [variable for variable in callee.variables if variable.space is Space.PARAM]
    places = ((machine.memory.symbols[param.name][1] - PRIVATE_START, param.size or 8) for param in params)
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
