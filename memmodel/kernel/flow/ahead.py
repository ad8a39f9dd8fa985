"""Tests of mbarrier objects that only look ahead: their answer decides whether a wait is executed, or nothing.

In: Function. Out: by the number of a wait the tests that can make it unnecessary. CUTLASS asks for the next stage
before it works on this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from memmodel.isa.lowered import Body, LoweredInstruction, body_of
from memmodel.kernel.flow.known_values import Known, State, following
from memmodel.kernel.flow.liveness import liveness
from memmodel.kernel.flow.paths import failing
from memmodel.ptx.module.syntax import PtxFunction

NOBODY = -1
"""In place of a wait, for tests whose answer decides nothing."""

MOST_STATES = 200
"""Instructions that are followed from a test."""


@lru_cache(maxsize=8)
def looking_ahead(entry: PtxFunction) -> Mapping[int, frozenset[int]]:
    """Tests whose answer only decides whether a wait is executed, by the number of the wait.

    Only branches depend on the answer, and one side of each is a polling loop that leads to the other side and changes
    nothing that is used there. If that side does nothing at all, the answer decides nothing: such tests of a parity are
    listed under NOBODY.
    """
    body = body_of(entry)
    tests = [at for at, does in enumerate(body) if does.tests_phase and len(does.writes) == 1]
    loops = {test for test in tests if failing(body, test, body[test].writes[0])[0] is None}
    peeks: dict[int, set[int]] = {}
    for test in tests:
        branches = None if test in loops else _decided(body, test)
        if branches is None:
            continue
        live = liveness(entry)
        if body[test].tests_parity:
            branches = [branch for branch in branches if not _same_sides(body, branch, live)]
            if not branches:
                peeks.setdefault(NOBODY, set()).add(test)
        waits = {_saved(body, branch, loops, live) for branch in branches}
        if all(wait is not None and _same_meaning(body[test], body[wait]) for wait in waits):
            for wait in waits:
                if wait is not None:
                    peeks.setdefault(wait, set()).add(test)
    return {wait: frozenset(numbers) for wait, numbers in peeks.items()}


def _same_meaning(first: LoweredInstruction, second: LoweredInstruction) -> bool:
    """True if two tests acquire in the same way."""
    tests = [(test.label, test.parity is None) for test in (first.phase_test, second.phase_test) if test is not None]
    return len(tests) == 2 and tests[0] == tests[1]


def _decided(body: Body, test: int) -> list[int] | None:
    """The branches that depend on the answer of a test; None if anything else does."""
    tainted, branches = set(body[test].writes), set[int]()
    changed = True
    while changed:
        changed = False
        for at, does in enumerate(body):
            if at == test or does.reads.isdisjoint(tainted):
                continue
            if does.jumps:
                branches.add(at)
            elif not does.computes:
                return None
            elif not tainted.issuperset(does.writes):
                tainted.update(does.writes)
                changed = True
    return sorted(branches)


def _saved(body: Body, branch: int, loops: set[int], live: list[set[int]]) -> int | None:
    """The wait on one side of a branch, if that side does nothing else before it meets the other side."""
    for begin, other in _sides(body, branch):
        wait, changed = _until_wait(body, begin, loops)
        if wait is None:
            continue
        after, more = _meeting(body, wait, other)
        if after and not (changed | more) & live[other]:
            return wait
    return None


def _sides(body: Body, branch: int) -> tuple[tuple[int, int], ...]:
    """Where each side of a branch begins, with the beginning of the other one."""
    target = body[branch].target
    return () if target is None else ((branch + 1, target), (target, branch + 1))


def _same_sides(body: Body, branch: int, live: list[set[int]]) -> bool:
    """True if one side of a branch leads to the other side, without a loop, an effect or a value that is used there."""
    for begin, other in _sides(body, branch):
        at, known, changed, seen = begin, Known(), set[int](), set[int]()
        while at != other and at < len(body) and at not in seen and body[at].without_effect:
            seen.add(at)
            changed.update(body[at].writes)
            ways = following(body, (at, known))
            at, known = ways[0] if len(ways) == 1 else (len(body), known)
        if at == other and not changed & live[other]:
            return True
    return False


def _until_wait(body: Body, at: int, loops: set[int]) -> tuple[int | None, set[int]]:
    """The wait that a straight line of instructions without effect leads to, and the registers written on it."""
    changed: set[int] = set()
    for _ in range(MOST_STATES):
        if at >= len(body):
            break
        does = body[at]
        if at in loops and does.instruction.guard is None:
            return at, changed
        if not does.without_effect or len(does.follows) != 1:
            break
        changed.update(does.writes)
        (at,) = does.follows
    return None, changed


def _meeting(body: Body, wait: int, other: int) -> tuple[bool, set[int]]:
    """True if every path from a wait that succeeded leads to `other` without an effect, and the registers written on
    the way.
    """
    result = body[wait].writes
    waiting: list[State] = [(wait + 1, ((result[0], 1),))]
    seen: set[State] = set()
    changed = set(result)
    while waiting:
        state = waiting.pop()
        if state in seen or state[0] == other:
            continue
        seen.add(state)
        if len(seen) > MOST_STATES or state[0] >= len(body) or not body[state[0]].without_effect:
            return False, changed
        changed.update(body[state[0]].writes)
        waiting += following(body, state)
    return True, changed
