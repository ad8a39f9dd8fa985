"""Tests of mbarrier objects that only look ahead: their answer decides whether a wait is executed, or nothing.

In: Function. Out: by the number of a wait the tests that can make it unnecessary. CUTLASS asks for the next stage
before it works on this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from memmodel.isa.module import tests_phase, words_of
from memmodel.kernel.flow.known_values import Known, following
from memmodel.kernel.flow.paths import PURE, failing
from memmodel.kernel.flow.registers import liveness, reads, written
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import JumpTarget

NOBODY = -1
"""In place of a wait, for tests whose answer decides nothing."""


@lru_cache(maxsize=8)
def looking_ahead(entry: PtxFunction) -> Mapping[int, frozenset[int]]:
    """Tests whose answer only decides whether a wait is executed, by the number of the wait.

    Only branches depend on the answer, and one side of each is a polling loop that leads to the other side and changes
    nothing that is used there. If that side does nothing at all, the answer decides nothing: such tests of a parity are
    listed under NOBODY.
    """
    body = entry.body or ()
    tests = [test.number for test in body if tests_phase(test.opcode)]
    loops = {n for n in tests if len(written(body[n])) == 1 and failing(body, n, written(body[n])[0])[0] is None}
    live: list[set[int]] | None = None
    used = [reads(instruction) for instruction in body]
    peeks: dict[int, set[int]] = {}
    for number in tests:
        if number in loops or len(written(body[number])) != 1:
            continue
        branches = _decided(body, number, used)
        if branches is None:
            continue
        live = live if live is not None else liveness(entry)
        if "parity" in words_of(body[number].opcode):
            branches = [branch for branch in branches if not _same_sides(body, branch, live)]
            if not branches:
                peeks.setdefault(NOBODY, set()).add(number)
        if not branches:
            continue
        waits = {_saved(body, branch, loops, live) for branch in branches}
        if None not in waits and all(_same_meaning(body[number], body[wait]) for wait in waits if wait is not None):
            for wait in waits:
                if wait is not None:
                    peeks.setdefault(wait, set()).add(number)
    return {wait: frozenset(numbers) for wait, numbers in peeks.items()}


def _same_meaning(first: PtxInstruction, second: PtxInstruction) -> bool:
    """True if two tests acquire in the same way."""
    return words_of(first.opcode) == words_of(second.opcode)


def _decided(body: tuple[PtxInstruction, ...], test: int, used: list[set[int]]) -> list[int] | None:
    """The branches that depend on the answer of a test; None if anything else does. `used`: what instructions read."""
    tainted, branches = set(written(body[test])), set()
    changed = True
    while changed:
        changed = False
        for instruction, slots in zip(body, used, strict=True):
            if instruction.number == test or slots.isdisjoint(tainted):
                continue
            if instruction.words[0] not in PURE or instruction.words[0] == "nanosleep":
                return None
            if instruction.words[0] == "bra":
                branches.add(instruction.number)
            elif not set(written(instruction)) <= tainted:
                tainted |= set(written(instruction))
                changed = True
    return sorted(branches)


def _saved(body: tuple[PtxInstruction, ...], branch: int, loops: set[int], live: list[set[int]]) -> int | None:
    """The wait on one side of a branch, if that side does nothing else before it meets the other side."""
    target = body[branch].operands[0]
    if not isinstance(target, JumpTarget):
        return None
    for begin, other in ((branch + 1, target.at), (target.at, branch + 1)):
        wait, changed = _until_wait(body, begin, loops)
        if wait is None:
            continue
        after, more = _meeting(body, wait, other)
        if after and not (changed | more) & live[other]:
            return wait
    return None


def _same_sides(body: tuple[PtxInstruction, ...], branch: int, live: list[set[int]]) -> bool:
    """True if one side of a branch leads to the other side, without a loop, an effect or a value that is used there."""
    target = body[branch].operands[0]
    if not isinstance(target, JumpTarget):
        return False
    for begin, other in ((branch + 1, target.at), (target.at, branch + 1)):
        at, known, changed, seen = begin, Known(), set[int](), set[int]()
        while at != other and at < len(body) and at not in seen and body[at].words[0] in PURE:
            seen.add(at)
            changed |= set(written(body[at]))
            ways = following(body, (at, known))
            at, known = ways[0] if len(ways) == 1 else (len(body), known)
        if at == other and not changed & live[other]:
            return True
    return False


def _until_wait(body: tuple[PtxInstruction, ...], at: int, loops: set[int]) -> tuple[int | None, set[int]]:
    """The wait that a straight line of instructions without effect leads to."""
    changed: set[int] = set()
    for _ in range(200):
        if at >= len(body):
            break
        instruction = body[at]
        if at in loops and instruction.guard is None:
            return at, changed
        if instruction.words[0] not in PURE or (instruction.words[0] == "bra" and instruction.guard is not None):
            break
        changed |= set(written(instruction))
        target = instruction.operands[0] if instruction.words[0] == "bra" else None
        at = target.at if isinstance(target, JumpTarget) else at + 1
    return None, changed


def _meeting(body: tuple[PtxInstruction, ...], wait: int, other: int) -> tuple[bool, set[int]]:
    """Whether every path from a wait that succeeded leads to `other` without an effect; the registers written there."""
    result = written(body[wait])
    waiting: list[tuple[int, Known]] = [(wait + 1, ((result[0], 1),))]
    seen: set[tuple[int, Known]] = set()
    changed = set(result)
    while waiting:
        state = waiting.pop()
        if state in seen or state[0] == other:
            continue
        seen.add(state)
        if len(seen) > 200 or state[0] >= len(body) or body[state[0]].words[0] not in PURE:
            return False, changed
        changed |= set(written(body[state[0]]))
        waiting += following(body, state)
    return True, changed
