"""What a thread does with the result of an instruction until nothing depends on it any more.

In: PtxFunction, an instruction with one result. Out: `does_alike`, whether the thread does the same with each of some
results; `read_beside`, the registers that have to be known for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from memmodel.isa.lowered import LoweredInstruction, body_of
from memmodel.kernel.flow.known_values import Known, State, following
from memmodel.kernel.flow.liveness import liveness
from memmodel.kernel.flow.paths import MAX_STATES
from memmodel.ptx.module.syntax import PtxFunction

MAX_BESIDE = 16
"""Registers of which the values are kept."""


class _Lockstep(NamedTuple):
    """A thread at one instruction, with each of several results. `differing`: the registers that may differ."""

    states: tuple[State, ...]
    differing: frozenset[int]

    @property
    def at(self) -> int:
        return self.states[0][0]


def does_alike(entry: PtxFunction, number: int, results: Sequence[int], around: Known) -> bool:
    """True if a thread executes the same, and leaves the same in registers that are used, whichever of these results
    an instruction has. `around`: known values of other registers.
    """
    body, live, result = body_of(entry), liveness(entry), body_of(entry)[number].writes
    if len(result) != 1 or body[number].instruction.guard is not None:
        return False
    others = {slot: value for slot, value in around if slot != result[0]}
    states = tuple((number + 1, tuple(sorted({**others, result[0]: value}.items()))) for value in results)
    waiting, seen = [_Lockstep(states, frozenset(result))], set[_Lockstep]()
    while waiting:
        step = waiting.pop()
        if step in seen or step.differing.isdisjoint(live[step.at]):
            continue
        seen.add(step)
        does, ways = body[step.at], [following(body, state) for state in step.states]
        decides = not step.differing.isdisjoint(does.reads)
        if decides and (does.notes_written or not (does.computes or does.jumps) or len(ways[0]) > 1):
            return False
        if len({tuple(at for at, _ in way) for way in ways}) > 1 or len(seen) > MAX_STATES:
            return False
        for after in zip(*ways, strict=True):
            waiting.append(_Lockstep(after, _differing(step, does, after, decides=decides)))
    return True


def _differing(
    step: _Lockstep, does: LoweredInstruction, after: Sequence[State], *, decides: bool
) -> frozenset[int]:  # fmt: skip
    """The registers that may differ behind an instruction. `decides`: it reads one that does."""
    differing = set(step.differing)
    for slot in does.writes:
        values = {dict(known).get(slot) for _, known in after}
        if len(values) == 1 and None not in values:
            differing.discard(slot)
        elif decides:
            differing.add(slot)
        elif does.instruction.guard is None:
            differing.discard(slot)
    return frozenset(differing)


@lru_cache(maxsize=64)
def read_beside(entry: PtxFunction, number: int) -> tuple[int, ...]:
    """The registers that computing instructions read as long as something depends on the result of an instruction;
    none if these are too many.
    """
    body, live = body_of(entry), liveness(entry)
    waiting, seen = [(number + 1, frozenset(body[number].writes))], set[tuple[int, frozenset[int]]]()
    slots = dict[int, None]()
    while waiting:
        at, depends = state = waiting.pop()
        if state in seen or depends.isdisjoint(live[at]):
            continue
        seen.add(state)
        does = body[at]
        slots |= dict.fromkeys(sorted(does.reads - depends) if does.computes or does.jumps else ())
        if len(slots) > MAX_BESIDE or len(seen) > MAX_STATES:
            return ()
        depends |= set() if depends.isdisjoint(does.reads) else set(does.writes)
        waiting += ((following, depends) for following in does.follows)
    return tuple(slots)
