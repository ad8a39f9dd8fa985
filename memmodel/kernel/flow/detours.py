"""Branches whose two sides only compute: what may be different after them, whichever way a thread went.

In: the instructions of a function, which of them only compute. Out: `Detour`. The sides of a branch meet at its nearest
post-dominator. If everything before that only computes, nobody else sees which side was taken: the registers that are
written there are unknown afterwards, and the rest goes on. (Compilers put the slow path of a logarithm there.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from memmodel.kernel.flow.registers import written
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import JumpTarget

MOST = 3_000
"""Instructions that are looked at behind a branch."""


@dataclass(frozen=True, slots=True)
class Detour:
    """`join`: where the sides meet. `slots`: the registers that may differ. `loops`: is there a loop on the way?
    `stores`: may local memory differ? `calls`: the calls on the way.
    `inside`: the instructions on the way.
    """

    join: int
    slots: tuple[int, ...]
    loops: bool
    stores: bool
    calls: tuple[int, ...] = ()
    inside: tuple[int, ...] = ()


def detour(body: tuple[PtxInstruction, ...], branch: int, computes: Callable[[int], bool]) -> Detour | None:
    """Where the sides of a branch meet, if both only compute."""
    follows = _reached(body, branch, computes)
    join = _meeting(follows, branch)
    if join is None:
        return None
    inside: set[int] = set()
    waiting = list(follows[branch])
    while waiting:
        at = waiting.pop()
        if at != join and at not in inside:
            inside.add(at)
            waiting += follows[at]
    if not all(at == branch or computes(at) or _jump(body[at]) for at in inside):
        return None
    slots = {slot for at in inside for slot in written(body[at])}
    calls = tuple(at for at in inside if body[at].words[0] == "call")
    stores = bool(calls) or any(body[at].words[0] == "st" for at in inside)
    return Detour(join, tuple(sorted(slots)), _cyclic(follows, inside), stores, calls, tuple(sorted(inside)))


def _jump(one: PtxInstruction) -> bool:
    return one.words[0] == "bra" and bool(one.operands) and isinstance(one.operands[0], JumpTarget)


def _reached(body: tuple[PtxInstruction, ...], branch: int, computes: Callable[[int], bool]) -> dict[int, list[int]]:
    """What follows each instruction that is reached; nothing follows one that does more than compute."""
    follows: dict[int, list[int]] = {}
    waiting = deque([branch])
    while waiting:
        at = waiting.popleft()
        if at in follows:
            continue
        one, after = body[at], list[int]()
        target = one.operands[0] if _jump(one) else None
        if isinstance(target, JumpTarget):
            after = [target.at] if one.guard is None else [at + 1, target.at]
        elif computes(at) and len(follows) < MOST:
            after = [at + 1]
        follows[at] = [behind for behind in after if 0 <= behind < len(body)]
        waiting += follows[at]
    return follows


def _meeting(follows: dict[int, list[int]], branch: int) -> int | None:
    """The nearest instruction that is on all ways from the branch."""
    number = {at: place for place, at in enumerate(follows)}
    everything = (1 << len(number)) - 1
    after = {at: everything if follows[at] else 1 << number[at] for at in follows}
    changed = True
    while changed:
        changed = False
        for at in sorted(follows, reverse=True):
            if follows[at]:
                common = everything
                for one in follows[at]:
                    common &= after[one]
                common |= 1 << number[at]
                changed |= common != after[at]
                after[at] = common
    left = after[branch] & ~(1 << number[branch])
    found = [at for at in follows if left >> number[at] & 1]
    return max(found, key=lambda at: after[at].bit_count(), default=None)


def _cyclic(follows: dict[int, list[int]], inside: set[int]) -> bool:
    """Is there a cycle among these?"""
    left = {at: sum(one in inside for one in follows[at]) for at in inside}
    before: dict[int, list[int]] = {}
    for at in inside:
        for one in follows[at]:
            before.setdefault(one, []).append(at)
    ready = [at for at, count in left.items() if not count]
    done = 0
    while ready:
        at = ready.pop()
        done += 1
        for one in before.get(at, ()):
            left[one] -= 1
            if not left[one]:
                ready.append(one)
    return done < len(inside)
