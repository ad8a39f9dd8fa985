"""Is every test of an mbarrier object the head of a polling loop that ends by success and changes nothing?

In: Function, the numbers of tests that ran. Out: what is wrong, for each test. From a test that failed, every path
leads back to the same test through instructions without effect, or to a trap; no register that is written on the way
is read behind the loop. What a branch on the result itself does is followed with the value that it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

from memmodel.kernel.flow.known_values import Known, following
from memmodel.kernel.flow.paths import PURE, failing
from memmodel.kernel.flow.registers import ENDS, liveness, registers, written
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import (
    JumpTarget,
    Special,
)


def complaints(
    entry: PtxFunction, tests: Iterable[int], awaits: Mapping[int, frozenset[int]] | None = None
) -> list[tuple[PtxInstruction, str]]:
    """The tests that are no such loop, and why. `awaits`: what `looking_ahead` found."""
    body = entry.body or ()
    live: list[set[int]] | None = None
    found = []
    ahead = {number for peeks in (awaits or {}).values() for number in peeks}
    for number in sorted(set(tests) - ahead):
        test = body[number]
        result = written(test)
        if len(result) != 1:
            found.append((test, "its result is not one register"))
            continue
        why, changed = failing(body, number, result[0])
        changed -= computed_again(entry, number, changed, result[0])
        asked = {slot for operand in test.operands[1:] for slot in registers(operand)}
        if why is None and changed & asked:
            why = "the loop changes what it tests"
        if why is None:
            live = live if live is not None else liveness(entry)
            behind = _succeeding(body, number, result[0])
            left = [one for one in behind if changed & live[one] - set(result)]
            if left:
                why = "a register that the loop changes is used behind it"
        if why is not None:
            found.append((test, why))
    return found


def computed_again(entry: PtxFunction, test: int, changed: set[int], result: int) -> set[int]:
    """The registers that a polling loop writes in each round with the value that they have had since the first one.

    Such a register is written once in the whole function, unguarded, right before the test: between the two no jump
    leads in. What it is computed from is of this kind, or not written in the loop. So every round computes the same,
    and no way leads to the test that has not passed the instruction. (Addresses and parities of inline assembly.)
    """
    body = entry.body or ()
    ends, counts = _blocks(entry)
    first = test
    while first > 0 and first not in ends and body[first - 1].words[0] in PURE:
        first -= 1
    steady: set[int] = set()
    for one in body[first:test]:
        sources = {slot for operand in one.operands[1:] for slot in registers(operand)}
        told = any(isinstance(operand, Special) for operand in one.operands)
        slots = written(one)
        if one.guard is None and not told and result not in sources and sources & changed <= steady:
            steady |= {slot for slot in slots if counts[slot] == 1}
    return steady


@lru_cache(maxsize=8)
def _blocks(entry: PtxFunction) -> tuple[set[int], Counter[int]]:
    """Where a new block of instructions begins; how many instructions write each register."""
    body = entry.body or ()
    ends = {at for listed in entry.tables.values() for at in listed}
    ends |= {one.start for one in entry.callees.values()}
    ends |= {one.operands[0].at for one in body if one.operands and isinstance(one.operands[0], JumpTarget)}
    ends |= {at + 1 for at in range(len(body)) if body[at].words[0] in ("brx", "bra", "call", *ENDS)}
    return ends, Counter(slot for one in body for slot in written(one))


def time_outs(entry: PtxFunction, tests: Iterable[int]) -> list[tuple[PtxInstruction, PtxInstruction]]:
    """The tests after whose failure a thread may stop the kernel, each with the trap."""
    body = entry.body or ()
    found = []
    for number in sorted(set(tests)):
        visited: set[int] = set()
        if len(written(body[number])) == 1:
            failing(body, number, written(body[number])[0], visited)
        found += [(body[number], body[trap]) for trap in _traps(body, visited)[:1]]
    return found


def _traps(body: tuple[PtxInstruction, ...], visited: set[int]) -> list[int]:
    return [number for number in sorted(visited) if number < len(body) and body[number].words[0] == "trap"]


def _succeeding(body: tuple[PtxInstruction, ...], test: int, slot: int) -> set[int]:
    """The first instructions behind the test at which its result is no longer looked at."""
    waiting: list[tuple[int, Known]] = [(test + 1, ((slot, 1),))]
    seen: set[tuple[int, Known]] = set()
    found: set[int] = set()
    while waiting:
        state = waiting.pop()
        if state in seen or state[0] >= len(body):
            continue
        seen.add(state)
        one = body[state[0]]
        if one.words[0] not in PURE or len(seen) > 64:
            found.add(state[0])
            continue
        ways = following(body, state)
        if one.words[0] == "bra" and len(ways) == 1 and one.guard is not None:
            found.add(ways[0][0])
        elif one.words[0] == "bra" and one.guard is not None:
            found.add(state[0])
        else:
            waiting += ways
    return found
