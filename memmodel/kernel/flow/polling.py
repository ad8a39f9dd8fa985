"""Which tests of mbarrier objects do not head a polling loop that changes nothing and ends when the test succeeds.

In: Function, the numbers of tests that ran. Out: what is wrong, for each such test. From a test that failed, every path
must lead back to the same test through instructions without effect, or to a trap. No register that is written on the
way may be read after the loop. A branch on the result itself is followed with the value that the result has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from memmodel.isa.lowered import Body, body_of
from memmodel.kernel.flow.known_values import State, following
from memmodel.kernel.flow.liveness import liveness
from memmodel.kernel.flow.paths import failing
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import Special

ANOTHER_TEST = "the loop changes what it tests"


def complaints(
    entry: PtxFunction, tests: Iterable[int], awaits: Mapping[int, frozenset[int]] | None = None
) -> list[tuple[PtxInstruction, str]]:
    """The tests that head no such loop, and why. `awaits`: the tests of `looking_ahead`."""
    body = body_of(entry)
    complaints = []
    ahead = {number for peeks in (awaits or {}).values() for number in peeks}
    for number in sorted(set(tests) - ahead):
        test = body[number]
        result = test.writes
        if len(result) != 1:
            complaints.append((test.instruction, "its result is not one register"))
            continue
        why, changed = failing(body, number, result[0])
        changed -= computed_again(entry, number, changed, result[0])
        if why is None and not changed.isdisjoint(test.sources):
            why = ANOTHER_TEST
        if why is None:
            behind = _succeeding(body, number, result[0])
            if any(changed & liveness(entry)[after] - set(result) for after in behind):
                why = "a register that the loop changes is used behind it"
        if why is not None:
            complaints.append((test.instruction, why))
    return complaints


def computed_again(entry: PtxFunction, test: int, changed: set[int], result: int) -> set[int]:
    """The registers that a polling loop writes in each round with the same value.

    Such a register is written once in the whole function, unguarded, right before the test, and no jump leads between
    the two. Its sources are of this kind, or not written in the loop. So every round computes the same, and every path
    to the test passes the instruction. (Addresses and parities of inline assembly are computed so.)
    """
    body = body_of(entry)
    ends, counts = basic_blocks(entry)
    first = test
    while first > 0 and first not in ends and body[first - 1].without_effect:
        first -= 1
    steady: set[int] = set()
    for does in body[first:test]:
        sources = set(does.sources)
        varies = any(isinstance(operand, Special) for operand in does.instruction.operands)
        if does.instruction.guard is None and not varies and result not in sources and sources & changed <= steady:
            steady |= {slot for slot in does.writes if counts[slot] == 1}
    return steady


@lru_cache(maxsize=8)
def basic_blocks(entry: PtxFunction) -> tuple[set[int], Counter[int]]:
    """The instructions at which basic blocks begin, and the number of writers of each register."""
    body = body_of(entry)
    begins = {callee.start for callee in entry.callees.values()}
    begins |= {target for does in body for target in does.targets}
    begins |= {at + 1 for at, does in enumerate(body) if does.changes_control}
    return begins, Counter(slot for does in body for slot in does.writes)


def time_outs(entry: PtxFunction, tests: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The tests after whose failure a thread may stop the kernel, each with the first trap."""
    body = body_of(entry)
    for test in sorted(set(tests)):
        visited: set[int] = set()
        if len(body[test].writes) == 1:
            failing(body, test, body[test].writes[0], visited)
        traps = [at for at in visited if body[at].traps]
        if traps:
            yield test, min(traps)


def _succeeding(body: Body, test: int, slot: int) -> set[int]:
    """The first instructions after the test at which its result is no longer read."""
    waiting: list[State] = [(test + 1, ((slot, 1),))]
    seen: set[State] = set()
    ends: set[int] = set()
    while waiting:
        state = waiting.pop()
        if state in seen or state[0] >= len(body):
            continue
        seen.add(state)
        does = body[state[0]]
        if not does.without_effect or len(seen) > 64:
            ends.add(state[0])
            continue
        ways = following(body, state)
        if does.jumps and does.instruction.guard is not None:
            ends.add(ways[0][0] if len(ways) == 1 else state[0])
        else:
            waiting += ways
    return ends
