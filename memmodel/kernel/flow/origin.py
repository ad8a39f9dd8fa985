"""Where an unknown value comes from: the loads and special registers that an instruction depends on.

In: entry, what was refused. Out: a clause for the message. It names what may reach the instruction through registers.
"""

from __future__ import annotations

from memmodel.errors import InputError
from memmodel.kernel.flow.registers import read_slots, reads, written
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import JumpTarget, Special

SOURCES = ("ld", "ldu", "atom", "ldmatrix", "mma", "wgmma", "tcgen05", "activemask", "clusterlaunchcontrol", "multimem")
SHOWN = 3
MAX_STATES = 200_000


def unwritten(entry: PtxFunction, error: InputError) -> PtxInstruction | None:
    """The instruction that could not be decided, if it reads a register that no instruction writes."""
    body = entry.body or ()
    at = _place(body, error)
    if at is None:
        return None
    slots = reads(at)
    defined = {slot for instruction in body for slot in written(instruction)}
    return at if slots - defined else None


def place_of(entry: PtxFunction, error: InputError) -> PtxInstruction | None:
    """The instruction whose value is not known."""
    return _place(entry.body or (), error)


def _place(body: tuple[PtxInstruction, ...], error: InputError) -> PtxInstruction | None:
    """The instruction whose value is not known."""
    span = error.span
    if span is None or "depends on a value" not in error.message:
        return None
    start = span.line, span.start
    return next((instruction for instruction in body if (instruction.span.line, instruction.span.start) == start), None)


def come_from(entry: PtxFunction, error: InputError) -> str:
    """`; it comes from ld.global.u32 at line 12`, or nothing."""
    body = entry.body or ()
    at = _place(body, error)
    sources = [] if at is None else origins(body, at)
    if not sources:
        return ""
    more = f" and {len(sources) - SHOWN} more" if len(sources) > SHOWN else ""
    return "; it comes from " + ", ".join(sources[:SHOWN]) + more


def origins(body: tuple[PtxInstruction, ...], at: PtxInstruction) -> list[str]:
    """What the guard of an instruction, or its operands if it has none, depend on."""
    before = _predecessors(body)
    slots = {at.guard.slot} if at.guard is not None else read_slots(at)
    waiting = [(previous, slot) for previous in before[at.number] for slot in slots]
    seen: set[tuple[int, int]] = set()
    sources: dict[str, None] = {}
    while waiting and len(seen) < MAX_STATES:
        state = waiting.pop()
        if state in seen:
            continue
        seen.add(state)
        number, slot = state
        instruction = body[number]
        if slot in written(instruction):
            if instruction.words[0] in SOURCES and "param" not in instruction.words:
                sources[f"{instruction.opcode} at line {instruction.line}"] = None
            else:
                for operand in instruction.operands:
                    if isinstance(operand, Special) and operand.name.startswith(("%clock", "%globaltimer", "%smid")):
                        sources[f"{operand.name} at line {instruction.line}"] = None
                waiting += [(previous, other) for previous in before[number] for other in read_slots(instruction)]
            if instruction.guard is None:
                continue
        waiting += [(previous, slot) for previous in before[number]]
    return sorted(sources, key=lambda text: int(text.rsplit(" ", 1)[1]))


def _predecessors(body: tuple[PtxInstruction, ...]) -> list[list[int]]:
    before: list[list[int]] = [[] for _ in range(len(body) + 1)]
    for instruction in body:
        head = instruction.words[0]
        if head == "bra" and isinstance(instruction.operands[0], JumpTarget):
            before[instruction.operands[0].at].append(instruction.number)
        if head not in ("ret", "exit", "trap", "bra", "brx") or instruction.guard is not None:
            before[instruction.number + 1].append(instruction.number)
    return before
