"""Loops around a load that polls a word: which values lead back to the load, and what a round leaves behind.

In: entry, load, value. Out: whether it is read again, what the loop looks at, where it ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from memmodel.kernel.flow.known_values import Known, following
from memmodel.kernel.flow.paths import MAX_STATES, PURE, doomed, failing, stops
from memmodel.kernel.flow.registers import liveness, registers, written
from memmodel.ptx.module.syntax import PtxFunction

MAX_LOOKED_AT = 16


def looked_at(entry: PtxFunction, load: int) -> tuple[int, ...]:
    """The registers that instructions without effect read behind a load, on the way back to it: at most a few."""
    body = entry.body or ()
    waiting, seen, found = [load + 1], set[int](), dict[int, None]()
    while waiting and len(found) <= MAX_LOOKED_AT:
        at = waiting.pop()
        if at in seen or at == load or at >= len(body) or body[at].words[0] not in PURE:
            continue
        seen.add(at)
        one = body[at]
        found |= dict.fromkeys(slot for operand in one.operands[1:] for slot in registers(operand))
        waiting += [after for after, _ in following(body, (at, ()))]
    return tuple(found) if load in {after for at in seen for after, _ in following(body, (at, ()))} else ()


def reads_again(entry: PtxFunction, load: int, value: int, around: Known = ()) -> bool:
    """Does a load that returned this value lead back to itself, and leave nothing that is looked at later?

    `around`: what is known of other registers. Those that the loop writes have another value in another round.
    """
    return _round(entry, load, value, around) is not None


class PollRound(NamedTuple):
    """The instructions on the ways back to a load, the registers written there, where the loop is left."""

    inside: frozenset[int]
    changed: frozenset[int]
    behind: int
    around: Known


def _round(entry: PtxFunction, load: int, value: int, around: Known) -> PollRound | None:
    """The way back to a load that returned this value, if it leads there and leaves nothing."""
    body = entry.body or ()
    result = written(body[load])
    if len(result) != 1 or body[load].guard is not None or result[0] in registers(body[load].operands[1]):
        return None
    while True:
        visited: set[int] = set()
        why, changed = failing(body, load, result[0], visited, value, around)
        if why is not None or not changed & {slot for slot, _ in around}:
            break
        around = tuple((slot, known) for slot, known in around if slot not in changed)
    if why is not None or changed & set(registers(body[load].operands[1])):
        return None
    after_them = {at: [after for after, _ in following(body, (at, ()))] for at in visited if not stops(body[at])}
    back = any(load in after for after in after_them.values())
    if not back:
        return None
    ways = {at for after in after_them.values() for at in after if at not in visited and at != load}
    ways = {at for at in ways if doomed(body, at) is None}
    if len(ways) != 1 or any(changed & liveness(entry)[after] for after in ways):
        return None
    return PollRound(frozenset(visited), frozenset(changed), ways.pop(), around)


def read_inside(entry: PtxFunction, slot: int, load: int, value: int, around: Known = ()) -> bool:
    """Is a register read nowhere but in a loop that goes on with this value of its load?"""
    one = _round(entry, load, value, around)
    return one is not None and all(
        each.number in one.inside
        for each in entry.body or ()
        if slot in {s for operand in each.operands[written(each) != [] :] for s in registers(operand)}
        or (each.guard is not None and each.guard.slot == slot)
    )


def ends_alike(entry: PtxFunction, load: int, on: Iterable[int], ends: Iterable[int], around: Known = ()) -> bool:
    """Does a loop that goes on with some values of its load end with each of the others at one instruction, where
    neither the value nor a register that the loop writes is looked at?
    """
    body, result = entry.body or (), set(written((entry.body or ())[load]))
    rounds = {_round(entry, load, value, around) for value in on}
    if len(rounds) != 1:
        return False
    one = rounds.pop()
    if one is None or (one.changed | result) & liveness(entry)[one.behind]:
        return False
    for value in ends:
        state: tuple[int, Known] = (
            load + 1,
            tuple(sorted({**dict(one.around), written(body[load])[0]: value}.items())),
        )
        for _ in range(MAX_STATES):
            if state[0] not in one.inside:
                break
            ways = following(body, state)
            if len(ways) != 1:
                return False
            state = ways[0]
        if state[0] != one.behind:
            return False
    return True
