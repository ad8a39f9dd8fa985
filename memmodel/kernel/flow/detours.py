"""Branches whose two sides only compute: what may differ after them, whichever side a thread took.

In: the instructions of a function, which of them only compute. Out: `Detour`. The sides of a branch meet at its nearest
post-dominator. If everything before that only computes, no other thread can observe which side was taken: the registers
that are written there are unknown afterwards, and the run continues. (The slow path of a logarithm is such a side.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from memmodel.base.graphs import has_cycle, reached
from memmodel.isa.lowered import Body

MOST = 3_000
"""Instructions that are looked at behind a branch."""


@dataclass(frozen=True, slots=True)
class Detour:
    """`join`: where the sides meet. `slots`: the registers that may differ. `loops`: there is a loop on the way.
    `stores`: local memory may differ. `calls`, `inside`: the calls and all instructions on the way.
    """

    join: int
    slots: tuple[int, ...]
    loops: bool
    stores: bool
    calls: tuple[int, ...] = ()
    inside: tuple[int, ...] = ()


def detour(body: Body, branch: int, computes: Callable[[int], bool]) -> Detour | None:
    """Where the sides of a branch meet, if both only compute."""
    follows = _reached(body, branch, computes)
    join = _meeting(follows, branch)
    if join is None:
        return None
    inside = reached(follows[branch], lambda at: () if at == join else follows[at]) - {join}
    if not all(at == branch or computes(at) or body[at].target is not None for at in inside):
        return None
    among = {at: [successor for successor in follows[at] if successor in inside] for at in inside}
    slots = {slot for at in inside for slot in body[at].writes}
    calls = tuple(at for at in inside if body[at].calls)
    stores = bool(calls) or any(body[at].stores for at in inside)
    return Detour(join, tuple(sorted(slots)), has_cycle(among), stores, calls, tuple(sorted(inside)))


def _reached(body: Body, branch: int, computes: Callable[[int], bool]) -> dict[int, list[int]]:
    """The successors of each instruction that is reached; none for an instruction that does more than compute."""
    follows: dict[int, list[int]] = {}
    waiting = deque([branch])
    while waiting:
        at = waiting.popleft()
        if at in follows:
            continue
        goes_on = body[at].target is not None or (computes(at) and len(follows) < MOST)
        follows[at] = [behind for behind in reversed(body[at].follows) if behind < len(body)] if goes_on else []
        waiting += follows[at]
    return follows


def _meeting(follows: dict[int, list[int]], branch: int) -> int | None:
    """The nearest instruction on all paths from the branch."""
    number = {at: place for place, at in enumerate(follows)}
    everything = (1 << len(number)) - 1
    after = {at: everything if follows[at] else 1 << number[at] for at in follows}
    changed = True
    while changed:
        changed = False
        for at in sorted(follows, reverse=True):
            if follows[at]:
                common = everything
                for successor in follows[at]:
                    common &= after[successor]
                common |= 1 << number[at]
                changed |= common != after[at]
                after[at] = common
    left = after[branch] & ~(1 << number[branch])
    meetings = [at for at in follows if left >> number[at] & 1]
    return max(meetings, key=lambda at: after[at].bit_count(), default=None)
