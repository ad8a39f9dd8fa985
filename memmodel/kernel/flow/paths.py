"""Paths through instructions without effect: where they lead, and what they write.

In: instructions. Out: `failing`, `doomed`, `comes_back`.
"""

from __future__ import annotations

from memmodel.kernel.flow.known_values import Known, following
from memmodel.kernel.flow.registers import written
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import (
    Sym,
)

MAX_STATES = 20_000


_COMPUTE = "mov add sub mul mad and or xor not shl shr setp set selp cvt cvta min max neg abs bfe bfi popc brev div rem"


_BITS = "clz lop3 shf prmt cnot sad slct bfind bmsk szext fns mul24 mad24 dp4a dp2a isspacep testp"


PURE = frozenset((*_COMPUTE.split(), *_BITS.split(), "bra", "nanosleep"))


def doomed(body: tuple[PtxInstruction, ...], at: int) -> int | None:
    """The trap that every path from an instruction leads to, if the paths only compute and print before it."""
    waiting, seen, trap = [at], set[int](), None
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        instruction = body[at] if at < len(body) else None
        if instruction is not None and instruction.words[0] == "trap":
            trap = at
            waiting += [] if instruction.guard is None else [at + 1]
        elif instruction is None or not (instruction.words[0] in PURE or _harmless(instruction)):
            return None
        else:
            waiting += [after for after, _ in following(body, (at, ()))]
    return trap


def stops(instruction: PtxInstruction) -> bool:
    return instruction.words[0] == "trap" and instruction.guard is None


def _harmless(instruction: PtxInstruction) -> bool:
    """True if it only touches memory of its thread, or prints."""
    if instruction.words[0] == "call":
        return any(isinstance(operand, Sym) and operand.name == "vprintf" for operand in instruction.operands)
    return instruction.words[0] in ("ld", "st") and bool(
        {"local", "param", "const"} & {w.split("::")[0] for w in instruction.words}
    )


def comes_back(entry: PtxFunction, at: int) -> bool:
    """True if a thread may come to an instruction again."""
    body = entry.body or ()
    waiting, seen = [at + 1], set[int]()
    while waiting:
        place = waiting.pop()
        if place in seen or place >= len(body):
            continue
        seen.add(place)
        if body[place].words[0] in ("brx", "call"):
            return True  # not followed
        if body[place].words[0] not in ("ret", "exit", "trap") or body[place].guard is not None:
            waiting += [after for after, _ in following(body, (place, ()))]
    return at in seen


def failing(
    body: tuple[PtxInstruction, ...],
    test: int,
    slot: int,
    visited: set[int] | None = None,
    value: int = 0,
    around: Known = (),
) -> tuple[str | None, set[int]]:
    """Follow the paths on which the test returned `value`, false at first, back to the test.

    Returns why they do not lead back, or None, and the registers written on them. `visited`: their instructions are
    added to it.
    """
    waiting: list[tuple[int, Known]] = [(test + 1, tuple(sorted({**dict(around), slot: value}.items())))]
    seen: set[tuple[int, Known]] = set()
    changed: set[int] = set()
    while waiting:
        state = waiting.pop()
        if state in seen or state[0] == test:
            continue
        seen.add(state)
        if len(seen) > MAX_STATES or state[0] >= len(body):
            return "the paths behind a failure do not lead back to it", changed
        instruction = body[state[0]]
        head = instruction.words[0]
        if visited is not None:
            visited.add(state[0])
        if head == "trap":
            waiting += [] if instruction.guard is None else following(body, state)
            continue
        if head not in PURE and (trap := doomed(body, state[0])) is not None:
            visited = set() if visited is None else visited
            visited.add(trap)
            continue
        if head in ("ret", "exit") or head not in PURE:
            return f"after a failure the thread may reach {instruction.opcode} at line {instruction.line}", changed
        changed |= set(written(instruction))
        waiting += following(body, state)
    return None, changed
