"""Loops that poll a word with a load: the values that repeat the loop, and the registers that outlive a round.

In: entry, load, value. Out: whether the value repeats the loop, the registers that decide it, and where the loop ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from memmodel.base import graphs
from memmodel.isa.lowered import LoweredInstruction, body_of
from memmodel.kernel.flow.known_values import Known, State, constants, following
from memmodel.kernel.flow.liveness import liveness
from memmodel.kernel.flow.paths import MAX_STATES, doomed, failing, reached
from memmodel.ptx.module.syntax import PtxFunction

MAX_LOOKED_AT = 16
"""`looked_at` stops when it has more registers than this."""


def looked_at(entry: PtxFunction, load: int) -> tuple[int, ...]:
    """The registers that instructions without effect read on the paths from a load back to it; none if no path leads
    back.
    """
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


def reads_again(entry: PtxFunction, load: int, value: int, around: Known = (), *, fences: bool = False) -> bool:
    """True if the loop repeats its load after this value, and no register that a round writes is read after the loop.

    `around`: known values of other registers. What is known of a register that the loop writes is not used. `fences`:
    the round may have fences.
    """
    return _round(entry, load, value, around, fences=fences) is not None


def reads_vector_again(entry: PtxFunction, load: int, result: int, value: int, around: Known) -> bool:
    """The same of a load of several elements, if one register receives this value, whatever the others receive. The
    round may have fences.
    """
    results = body_of(entry)[load].writes
    known = tuple((slot, value) for slot, value in around if slot not in results)
    return results.count(result) == 1 and _round_of(entry, load, result, value, known, fences=True) is not None


class PollRound(NamedTuple):
    """One round of a loop that polls."""

    inside: frozenset[int]
    """The instructions on the paths from the load back to it."""
    changed: frozenset[int]
    """The registers that these instructions write, constants aside."""
    exit: int
    """The instruction at which the loop is left."""
    around: Known
    """The known values of registers that the loop does not write."""


def _round(
    entry: PtxFunction, load: int, value: int, around: Known, *, fences: bool = False
) -> PollRound | None:  # fmt: skip
    """The round after a load of this value, if it leads back to the load and writes no register that is read later."""
    result = body_of(entry)[load].writes
    return _round_of(entry, load, result[0], value, around, fences=fences) if len(result) == 1 else None


def _round_of(
    entry: PtxFunction, load: int, result: int, value: int, around: Known, *, fences: bool
) -> PollRound | None:  # fmt: skip
    """The round after a load of which this register receives this value."""
    body = body_of(entry)
    address = set(body[load].sources)
    if body[load].instruction.guard is not None or not address.isdisjoint(body[load].writes):
        return None
    while True:
        visited: set[int] = set()
        why, written = failing(body, load, result, visited, value, around, fences=fences)
        changed = written - constants(entry)
        if why is not None:
            return None
        after = {later for at in visited for later in body[at].follows}
        exits = {at for at in after - visited - {load} if doomed(body, at) is None}
        # What a round writes is not known of all rounds. A counter that has reached its bound may only be written in
        # rounds before this one, on a path that this one leaves aside.
        loses = changed if len(exits) == 1 else changed | _written_around(entry, load)
        if loses.isdisjoint(slot for slot, _ in around):
            break
        around = tuple((slot, known) for slot, known in around if slot not in loses)
    if changed & address or load not in after or len(exits) != 1 or any(changed & liveness(entry)[at] for at in exits):
        return None
    return PollRound(frozenset(visited), frozenset(changed), exits.pop(), around)


def _written_around(entry: PtxFunction, load: int) -> set[int]:
    """The registers that are written on paths without effect from a load back to it."""
    body = body_of(entry)
    ahead = reached(body, [load + 1], lambda does: does.without_effect and does.instruction.number != load)
    before: dict[int, list[int]] = {}
    for at in ahead:
        for successor in body[at].follows if body[at].without_effect else ():
            before.setdefault(successor, []).append(at)
    back = graphs.reached([load], lambda at: before.get(at, ()))
    return {slot for at in back - {load} for slot in body[at].writes}


def comes_back_alike(entry: PtxFunction, load: int, value: int, around: Known = ()) -> bool:
    """True if a thread may come back to a load of this value while all loads of the same word return it. If not, no
    thread stays in the loop for ever where this value is the last one.
    """
    body = body_of(entry)
    word, result = body[load], body[load].writes
    waiting: list[State] = [(load + 1, tuple(sorted({**dict(around), result[0]: value}.items())))]
    seen = set[State]()
    while waiting:
        at, known = state = waiting.pop()
        if at == load or len(seen) > MAX_STATES:
            return True
        if state in seen or at >= len(body):
            continue
        seen.add(state)
        does = body[at]
        if not word.sources or not set(word.sources).isdisjoint(does.writes):
            return True
        if _loads_like(does, word):
            known = tuple(sorted({**dict(known), does.writes[0]: value}.items()))
            waiting.append((at + 1, known))
        elif does.without_effect or does.fences:
            waiting += following(body, state)
    return False


def _loads_like(does: LoweredInstruction, other: LoweredInstruction) -> bool:
    """True if two instructions load one word, into one register each, with nothing between word and register."""
    mine, its = does.instruction, other.instruction
    same = mine.guard is None and mine.operands[1:] == its.operands[1:] and len(does.writes) == 1
    alike = does.row is other.row and does.type == other.type and does.window == other.window
    return same and alike and does.loads


def read_inside(entry: PtxFunction, slot: int, load: int, value: int, around: Known = ()) -> bool:
    """True if a register is read only in a loop that continues with this value of its load."""
    polling = _round(entry, load, value, around)
    return polling is not None and all(
        at in polling.inside for at, does in enumerate(body_of(entry)) if slot in does.reads
    )


def ends_alike(entry: PtxFunction, load: int, repeats: Iterable[int], ends: Iterable[int], around: Known = ()) -> bool:
    """True if a loop that repeats after the values `repeats` ends after all values `ends` at the same instruction.

    There neither the register of the load nor one that the loop writes may be live.
    """
    body = body_of(entry)
    result = body[load].writes[0]
    rounds = {_round(entry, load, value, around) for value in repeats}
    if len(rounds) != 1:
        return False
    polling = rounds.pop()
    if polling is None or (polling.changed | {result}) & liveness(entry)[polling.exit]:
        return False
    for value in ends:
        state: State = load + 1, tuple(sorted({**dict(polling.around), result: value}.items()))
        for _ in range(MAX_STATES):
            if state[0] not in polling.inside:
                break
            successors = following(body, state)
            if len(successors) != 1:
                return False
            state = successors[0]
        if state[0] != polling.exit:
            return False
    return True
