"""Tests of mbarrier objects that are not the head of a polling loop that ends by success and changes nothing.

In: Function, the numbers of tests that ran. Out: what is wrong, for each test. From a test that failed, every path must
lead back to the same test through instructions without effect, or to a trap; no register that is written on the way may
be read after the loop. A branch on the result itself is followed with the value that the result has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

from memmodel.isa.lowered import registers
from memmodel.kernel.flow.known_values import Known, following
from memmodel.kernel.flow.paths import PURE, failing
from memmodel.kernel.flow.registers import ENDS, liveness, written
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import (
    JumpTarget,
    Special,
)


def complaints(
    entry: PtxFunction, tests: Iterable[int], awaits: Mapping[int, frozenset[int]] | None = None
) -> list[tuple[PtxInstruction, str]]:
    """The tests that head no such loop, and why. `awaits`: the tests of `looking_ahead`."""
    body = entry.body or ()
    live: list[set[int]] | None = None
    complaints = []
    ahead = {number for peeks in (awaits or {}).values() for number in peeks}
    for number in sorted(set(tests) - ahead):
        test = body[number]
        result = written(test)
        if len(result) != 1:
            complaints.append((test, "its result is not one register"))
            continue
        why, changed = failing(body, number, result[0])
        changed -= computed_again(entry, number, changed, result[0])
        asked = {slot for operand in test.operands[1:] for slot in registers(operand)}
        if why is None and changed & asked:
            why = "the loop changes what it tests"
        if why is None:
            live = live if live is not None else liveness(entry)
            behind = _succeeding(body, number, result[0])
            left = [after for after in behind if changed & live[after] - set(result)]
            if left:
                why = "a register that the loop changes is used behind it"
        if why is not None:
            complaints.append((test, why))
    return complaints


def computed_again(entry: PtxFunction, test: int, changed: set[int], result: int) -> set[int]:
    """The registers that a polling loop writes in each round with the same value.

    Such a register is written once in the whole function, unguarded, right before the test, and no jump leads between
    the two. Its sources are of this kind, or not written in the loop. So every round computes the same, and every path
    to the test passes the instruction. (Addresses and parities of inline assembly are computed so.)
    """
    body = entry.body or ()
    ends, counts = _blocks(entry)
    first = test
    while first > 0 and first not in ends and body[first - 1].words[0] in PURE:
        first -= 1
    steady: set[int] = set()
    for instruction in body[first:test]:
        sources = {slot for operand in instruction.operands[1:] for slot in registers(operand)}
        varies = any(isinstance(operand, Special) for operand in instruction.operands)
        slots = written(instruction)
        if instruction.guard is None and not varies and result not in sources and sources & changed <= steady:
            steady |= {slot for slot in slots if counts[slot] == 1}
    return steady


@lru_cache(maxsize=8)
def _blocks(entry: PtxFunction) -> tuple[set[int], Counter[int]]:
    """The instructions at which basic blocks begin, and the number of writers of each register."""
    body = entry.body or ()
    ends = {at for listed in entry.tables.values() for at in listed}
    ends |= {instruction.start for instruction in entry.callees.values()}
    ends |= {
        instruction.operands[0].at
        for instruction in body
        if instruction.operands and isinstance(instruction.operands[0], JumpTarget)
    }
    ends |= {at + 1 for at in range(len(body)) if body[at].words[0] in ("brx", "bra", "call", *ENDS)}
    return ends, Counter(slot for instruction in body for slot in written(instruction))


def time_outs(entry: PtxFunction, tests: Iterable[int]) -> list[tuple[PtxInstruction, PtxInstruction]]:
    """The tests after whose failure a thread may stop the kernel, each with the trap."""
    body = entry.body or ()
    traps = []
    for number in sorted(set(tests)):
        visited: set[int] = set()
        if len(written(body[number])) == 1:
            failing(body, number, written(body[number])[0], visited)
        traps += [(body[number], body[trap]) for trap in _traps(body, visited)[:1]]
    return traps


def _traps(body: tuple[PtxInstruction, ...], visited: set[int]) -> list[int]:
    return [number for number in sorted(visited) if number < len(body) and body[number].words[0] == "trap"]


def _succeeding(body: tuple[PtxInstruction, ...], test: int, slot: int) -> set[int]:
    """The first instructions after the test at which its result is no longer read."""
    waiting: list[tuple[int, Known]] = [(test + 1, ((slot, 1),))]
    seen: set[tuple[int, Known]] = set()
    ends: set[int] = set()
    while waiting:
        state = waiting.pop()
        if state in seen or state[0] >= len(body):
            continue
        seen.add(state)
        instruction = body[state[0]]
        if instruction.words[0] not in PURE or len(seen) > 64:
            ends.add(state[0])
            continue
        ways = following(body, state)
        if instruction.words[0] == "bra" and len(ways) == 1 and instruction.guard is not None:
            ends.add(ways[0][0])
        elif instruction.words[0] == "bra" and instruction.guard is not None:
            ends.add(state[0])
        else:
            waiting += ways
    return ends
