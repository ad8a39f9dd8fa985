"""Where an unknown value comes from: the loads and special registers that an instruction depends on.

In: entry, what was refused. Out: a clause for the message. It names what may reach the instruction through registers.
`from_memory`: the registers that such values reach.
"""

from __future__ import annotations

from memmodel.errors import InputError
from memmodel.isa.lowered import LoweredInstruction, body_of, lowered
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import Special
from memmodel.ptx.vocabulary import Window

SHOWN = 3
MAX_STATES = 200_000


def unwritten(entry: PtxFunction, error: InputError) -> PtxInstruction | None:
    """The instruction that could not be decided, if it reads a register that no instruction writes."""
    at = place_of(entry, error)
    written = {slot for does in body_of(entry) for slot in does.writes}
    return at if at is not None and not lowered(at).reads <= written else None


UNSTEADY = ("%clock", "%globaltimer", "%smid")
"""Beginnings of special registers that differ from run to run."""


def place_of(entry: PtxFunction, error: InputError) -> PtxInstruction | None:
    """The instruction whose value is not known."""
    body, span = entry.body or (), error.span
    if span is None or "depends on a value" not in error.message:
        return None
    start = span.line, span.start
    return next((instruction for instruction in body if (instruction.span.line, instruction.span.start) == start), None)


def come_from(entry: PtxFunction, error: InputError) -> str:
    """`; it comes from ld.global.u32 at line 12`, or nothing."""
    at = place_of(entry, error)
    sources = [] if at is None else origins(entry, at.number)
    if not sources:
        return ""
    more = f" and {len(sources) - SHOWN} more" if len(sources) > SHOWN else ""
    return "; it comes from " + ", ".join(sources[:SHOWN]) + more


def origins(entry: PtxFunction, at: int) -> list[str]:
    """What the guard of an instruction, or its operands if it has none, depend on."""
    body, before = body_of(entry), _predecessors(entry)
    guard = body[at].instruction.guard
    slots = body[at].sources if guard is None else (guard.slot,)
    waiting = [(previous, slot) for previous in before[at] for slot in slots]
    seen: set[tuple[int, int]] = set()
    sources: dict[str, None] = {}
    while waiting and len(seen) < MAX_STATES:
        state = waiting.pop()
        if state in seen:
            continue
        seen.add(state)
        number, slot = state
        does = body[number]
        if slot in does.writes and _is_source(does):
            sources[does.instruction.at_line] = None
        elif slot in does.writes:
            sources.update(dict.fromkeys(_unsteady(does.instruction)))
            waiting += [(previous, other) for previous in before[number] for other in does.sources]
        if slot not in does.writes or does.instruction.guard is not None:
            waiting += [(previous, slot) for previous in before[number]]
    return sorted(sources, key=lambda text: int(text.rsplit(" ", 1)[1]))


def from_memory(entry: PtxFunction) -> frozenset[int]:
    """The registers whose value may come from memory, or from what other threads do, through registers."""
    body = body_of(entry)
    reached = {slot for does in body if _is_source(does) for slot in does.writes}
    grown = True
    while grown:
        before = len(reached)
        for does in body:
            if not reached.isdisjoint(does.sources):
                reached.update(does.writes)
        grown = len(reached) > before
    return frozenset(reached)


def _is_source(does: LoweredInstruction) -> bool:
    """True if its result does not follow from its operands: lanes pass their operands on, parameters are known."""
    follows = does.computes or does.exchanges or does.window in (Window.PARAM, Window.ANY_PARAM)
    return not (follows or does.tests_phase)


def _unsteady(instruction: PtxInstruction) -> list[str]:
    """The special registers that an instruction reads and that differ from run to run, each with its line."""
    names = (operand.name for operand in instruction.operands if isinstance(operand, Special))
    return [f"{name} at line {instruction.line}" for name in names if name.startswith(UNSTEADY)]


def _predecessors(entry: PtxFunction) -> list[list[int]]:
    before: list[list[int]] = [[] for _ in range(len(entry.body or ()) + 1)]
    for at, does in enumerate(body_of(entry)):
        for later in does.follows:
            before[later].append(at)
    return before
