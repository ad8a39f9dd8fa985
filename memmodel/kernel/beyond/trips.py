"""Does the verdict of a launch hold for any trip count? Or which loop stops that, and what decides how often it runs?

In: entry. Out: a sentence. It is yes only where the text shows that no loop which touches memory or orders something
can run more or less often.
"""

from __future__ import annotations

from memmodel.kernel.beyond.share import READS
from memmodel.kernel.text.origin import read_slots
from memmodel.kernel.text.polling import ENDS, registers, written
from memmodel.kernel.text.syntax import AddressOperand, JumpTarget, PtxFunction, PtxInstruction, Special, Symbol

TOUCHES = frozenset((
    "ld", "st", "atom", "red", "cp", "bar", "barrier", "mbarrier", "fence", "membar", "ldmatrix", "stmatrix", "wgmma",
    "tcgen05", "multimem", "discard", "suld", "sust", "sured", "call", "griddepcontrol", "tensormap",
    "clusterlaunchcontrol", "setmaxnreg",
))  # fmt: skip
"""The first words of instructions that touch memory or order something."""


def any_trips(entry: PtxFunction) -> str:
    """`yes: …` or `not shown: …`."""
    body = entry.body or ()
    for one in body:
        if (one.words[0] == "brx" and _back(entry, one)) or (one.words[0] == "call" and _again(entry, one)):
            return f"not shown: where {_at(one)} goes was not followed"
    loops = [(begin, one) for one in body if one.words[0] == "bra" and (begin := _begin(one)) <= one.number]
    if not loops:
        return "yes: there is no loop"
    given = _given(body)
    for begin, one in loops:
        inside = body[begin : one.number + 1]
        if not any(step.words[0] in TOUCHES for step in inside):
            continue  # it only computes
        slots = [slot for step in inside if _leaves(step, begin, one.number) for slot in _decides(step)]
        if _waits(body[begin]) and set(slots) <= set(written(body[begin])):
            continue  # a wait ends when its phase does
        chosen = next((slot for slot in slots if slot in given), None)
        if chosen is not None:
            loop = f"how often the loop from line {body[begin].line} to line {one.line} runs"
            term = _origin(body, chosen)
            return f"not shown: {loop} depends on {term}; its state was not compared between rounds"
    return "yes: no trip count depends on a parameter"


def _back(entry: PtxFunction, jump: PtxInstruction) -> bool:
    """Does an indexed jump lead back, or to labels that are not known from the text?"""
    names = [one.name for one in jump.operands if isinstance(one, Symbol | JumpTarget) and one.name in entry.tables]
    return not names or any(at <= jump.number for name in names for at in entry.tables[name])


def _again(entry: PtxFunction, call: PtxInstruction) -> bool:
    """Does a call lead back, or to a function that is not known from the text?"""
    named = [one.name for one in call.operands if isinstance(one, Symbol) and one.name in entry.callees]
    return not named or any(entry.callees[name].start <= call.number for name in named)


def _begin(jump: PtxInstruction) -> int:
    """Where a jump goes; behind it, if that is not known."""
    operand = jump.operands[0] if jump.operands else None
    return operand.at if isinstance(operand, JumpTarget) and operand.at >= 0 else jump.number + 1


def _leaves(step: PtxInstruction, begin: int, end: int) -> bool:
    """May a loop be left here, or begun again?"""
    if step.words[0] == "bra":
        return not begin < _begin(step) <= end
    return step.words[0] in (*ENDS, "brx")


def _decides(step: PtxInstruction) -> list[int]:
    """The registers that decide where an instruction leads."""
    guard = [] if step.guard is None else [step.guard.slot]
    return [*guard, *registers(step.operands[0])] if step.words[0] == "brx" and step.operands else guard


def _waits(one: PtxInstruction) -> bool:
    return one.words[0] == "mbarrier" and one.words[1] in ("try_wait", "test_wait")


def _origin(body: tuple[PtxInstruction, ...], slot: int) -> str:
    """The first load, backwards through the text, that a register comes from."""
    waiting, seen = [slot], {slot}
    while waiting:
        wanted = waiting.pop(0)
        for one in body:
            if wanted not in written(one):
                continue
            if one.words[0] in ("ld", "atom"):
                place = one.operands[1] if len(one.operands) > 1 else None
                base = place.base if isinstance(place, AddressOperand) else None
                name = f"the parameter {base.name}, " if isinstance(base, Symbol) and "param" in one.words else ""
                return f"{name}{one.opcode} at line {one.line}"
            guard = set() if one.guard is None else {one.guard.slot}
            new = (read_slots(one) | guard) - seen
            seen |= new
            waiting += sorted(new)
    return "a parameter"


def _given(body: tuple[PtxInstruction, ...]) -> set[int]:
    """The registers that may depend on parameters, on memory or on the size of the grid."""
    writers: dict[int, list[int]] = {}
    for one in body:
        for slot in written(one):
            writers.setdefault(slot, []).append(one.number)
    found: set[int] = set()
    while True:
        before = len(found)
        for one in body:
            origin = one.words[0] in READS or any(
                isinstance(operand, Special) and operand.name.startswith("%nctaid") for operand in one.operands
            )
            guarded = one.guard is not None and one.guard.slot in found
            if origin or guarded or read_slots(one) & found:
                found.update(written(one))
            if guarded and one.words[0] == "bra" and body[min(_begin(one), len(body) - 1)].words[0] not in ENDS:
                first, last = sorted((one.number, _begin(one)))
                found |= {s for s, at in writers.items() if len(at) > 1 and any(first < n < last for n in at)}
        if len(found) == before:
            return found


def _at(one: PtxInstruction) -> str:
    return f"{one.opcode} at line {one.line}"
