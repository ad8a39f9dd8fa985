"""Loops around a load that polls a word: the values that lead back to the load, and what a round leaves.

In: entry, load, value. Out: whether it is read again, what the loop looks at, where it ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from memmodel.isa.lowered import body_of
from memmodel.kernel.flow.known_values import Known, State, constants, following
from memmodel.kernel.flow.liveness import liveness
from memmodel.kernel.flow.paths import MAX_STATES, doomed, failing
from memmodel.ptx.module.syntax import PtxFunction

MAX_LOOKED_AT = 16


def looked_at(entry: PtxFunction, load: int) -> tuple[int, ...]:
    """The registers that instructions without effect read after a load, on the way back to it; at most a few."""
    body = body_of(entry)
    waiting, seen, slots = [load + 1], set[int](), dict[int, None]()
    while waiting and len(slots) <= MAX_LOOKED_AT:
        at = waiting.pop()
        if at in seen or at == load or at >= len(body) or not body[at].without_effect:
            continue
        seen.add(at)
        slots |= dict.fromkeys(body[at].sources)
        waiting += body[at].follows
    return tuple(slots) if any(load in body[at].follows for at in seen) else ()


def reads_again(entry: PtxFunction, load: int, value: int, around: Known = ()) -> bool:
    """True if a load that returned this value leads back to itself, and leaves nothing that is read later.

    `around`: known values of other registers. Those that the loop writes have another value in another round.
    """
    return _round(entry, load, value, around) is not None


class PollRound(NamedTuple):
    """The instructions on the paths back to a load, the registers written there, where the loop is left."""

    inside: frozenset[int]
    changed: frozenset[int]
    behind: int
    around: Known


def _round(entry: PtxFunction, load: int, value: int, around: Known) -> PollRound | None:
    """The round after a load that returned this value, if it leads back to the load and leaves nothing."""
    body = body_of(entry)
    result, address = body[load].writes, set(body[load].sources)
    if len(result) != 1 or body[load].instruction.guard is not None or result[0] in address:
        return None
    while True:
        visited: set[int] = set()
        why, written = failing(body, load, result[0], visited, value, around)
        changed = written - constants(entry)
        if why is not None or not changed & {slot for slot, _ in around}:
            break
        around = tuple((slot, known) for slot, known in around if slot not in changed)
    after = {later for at in visited for later in body[at].follows}
    if why is not None or changed & address or load not in after:
        return None
    ways = after - visited - {load}
    ways = {at for at in ways if doomed(body, at) is None}
    if len(ways) != 1 or any(changed & liveness(entry)[after] for after in ways):
        return None
    return PollRound(frozenset(visited), frozenset(changed), ways.pop(), around)


def read_inside(entry: PtxFunction, slot: int, load: int, value: int, around: Known = ()) -> bool:
    """True if a register is read only in a loop that continues with this value of its load."""
    polling = _round(entry, load, value, around)
    return polling is not None and all(
        at in polling.inside for at, does in enumerate(body_of(entry)) if slot in does.reads
    )


def ends_alike(entry: PtxFunction, load: int, on: Iterable[int], ends: Iterable[int], around: Known = ()) -> bool:
    """True if a loop that continues with the values `on` of its load ends with each of `ends` at one instruction, where
    neither the value nor a register that the loop writes is live.
    """
    body = body_of(entry)
    result = body[load].writes[0]
    rounds = {_round(entry, load, value, around) for value in on}
    if len(rounds) != 1:
        return False
    polling = rounds.pop()
    if polling is None or (polling.changed | {result}) & liveness(entry)[polling.behind]:
        return False
    for value in ends:
        state: State = load + 1, tuple(sorted({**dict(polling.around), result: value}.items()))
        for _ in range(MAX_STATES):
            if state[0] not in polling.inside:
                break
            ways = following(body, state)
            if len(ways) != 1:
                return False
            state = ways[0]
        if state[0] != polling.behind:
            return False
    return True
