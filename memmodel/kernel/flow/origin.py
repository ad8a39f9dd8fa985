"""Where an unknown value comes from: the loads and special registers that an instruction depends on.

In: entry, what was refused. Out: a clause for the message. It names what may reach the instruction through registers.
"""

from __future__ import annotations

from memmodel.errors import InputError
from memmodel.kernel.flow.registers import registers, written
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
    slots = read_slots(at) | ({at.guard.slot} if at.guard is not None else set())
    defined = {slot for one in body for slot in written(one)}
    return at if slots - defined else None


def place_of(entry: PtxFunction, error: InputError) -> PtxInstruction | None:
    """The instruction whose value is not known."""
    return _place(entry.body or (), error)


def _place(body: tuple[PtxInstruction, ...], error: InputError) -> PtxInstruction | None:
    """The instruction whose value is not known."""
    span = error.span
    if span is None or "depends on a value" not in error.message:
        return None
    return next((one for one in body if one.span.line == span.line and one.span.start == span.start), None)


def come_from(entry: PtxFunction, error: InputError) -> str:
    """`; it comes from ld.global.u32 at line 12`, or nothing."""
    body = entry.body or ()
    at = _place(body, error)
    found = [] if at is None else origins(body, at)
    if not found:
        return ""
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return "; it comes from " + ", ".join(found[:SHOWN]) + more


def origins(body: tuple[PtxInstruction, ...], at: PtxInstruction) -> list[str]:
    """What the guard of an instruction, or its operands if it has none, depend on."""
    before = _predecessors(body)
    slots = {at.guard.slot} if at.guard is not None else read_slots(at)
    waiting = [(one, slot) for one in before[at.number] for slot in slots]
    seen: set[tuple[int, int]] = set()
    found: dict[str, None] = {}
    while waiting and len(seen) < MAX_STATES:
        state = waiting.pop()
        if state in seen:
            continue
        seen.add(state)
        number, slot = state
        one = body[number]
        if slot in written(one):
            if one.words[0] in SOURCES and "param" not in one.words:
                found[f"{one.opcode} at line {one.line}"] = None
            else:
                for operand in one.operands:
                    if isinstance(operand, Special) and operand.name.startswith(("%clock", "%globaltimer", "%smid")):
                        found[f"{operand.name} at line {one.line}"] = None
                waiting += [(previous, other) for previous in before[number] for other in read_slots(one)]
            if one.guard is None:
                continue
        waiting += [(previous, slot) for previous in before[number]]
    return sorted(found, key=lambda text: int(text.rsplit(" ", 1)[1]))


def _predecessors(body: tuple[PtxInstruction, ...]) -> list[list[int]]:
    before: list[list[int]] = [[] for _ in range(len(body) + 1)]
    for one in body:
        head = one.words[0]
        if head == "bra" and isinstance(one.operands[0], JumpTarget):
            before[one.operands[0].at].append(one.number)
        if head not in ("ret", "exit", "trap", "bra", "brx") or one.guard is not None:
            before[one.number + 1].append(one.number)
    return before


def read_slots(one: PtxInstruction) -> set[int]:
    """The registers that the operands of an instruction read."""
    first = [] if written(one) else one.operands[:1]
    return {slot for operand in (*first, *one.operands[1:]) for slot in registers(operand)}
