"""Branches whose two sides only compute: what may differ after them, whichever side a thread took.

In: the instructions of a function, which of them only compute. Out: `Detour`. The sides of a branch meet at its nearest
post-dominator. If everything before that only computes, no other thread can observe which side was taken: the registers
that are written there are unknown afterwards, and the run continues. (The slow path of a logarithm is such a side.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from memmodel.base.graphs import has_cycle, reached
from memmodel.isa.lowered import Body
from memmodel.ptx.operands import Special

MOST = 3_000
"""The most instructions that are looked at after a branch."""

MOST_LOOPS = 200
"""The most ways to stay in loops that are looked at. In others the rounds are taken to end, as the verdict says."""


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
    before: dict[int, list[int]] = {}
    for at in inside:
        for successor in follows[at]:
            before.setdefault(successor, []).append(at)
    if not inside <= reached([join], lambda at: before.get(at, ())):
        return None  # a side stays in a loop for ever
    among = {at: [successor for successor in follows[at] if successor in inside] for at in inside}
    loops = _loops(among) if has_cycle(among) else []
    if not all(_may_end(body, follows, loop) for loop in loops):
        return None
    slots = {slot for at in inside for slot in body[at].writes}
    calls = tuple(at for at in inside if body[at].calls)
    stores = bool(calls) or any(body[at].stores for at in inside)
    return Detour(join, tuple(sorted(slots)), bool(loops), stores, calls, tuple(sorted(inside)))


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


def _loops(among: Mapping[int, Sequence[int]]) -> list[Mapping[int, Sequence[int]]]:
    """The ways in which a thread may go round for ever, each with where its instructions lead then: strongly connected
    parts, and those that are left in them where a branch always takes the same side.
    """
    loops: dict[frozenset[tuple[int, int]], Mapping[int, Sequence[int]]] = {}
    waiting = [among]
    while waiting and len(loops) < MOST_LOOPS:
        for loop in _connected(waiting.pop()):
            edges = frozenset((at, successor) for at, successors in loop.items() for successor in successors)
            if edges not in loops:
                loops[edges] = loop
                branches = [at for at, successors in loop.items() if len(successors) > 1]
                waiting += [{**loop, at: [side]} for at in branches for side in loop[at]]
    return list(loops.values())


def _connected(among: Mapping[int, Sequence[int]]) -> Iterator[Mapping[int, Sequence[int]]]:
    """The parts of a graph in which each instruction leads to all others of its part."""
    before: dict[int, list[int]] = {}
    for at, successors in among.items():
        for successor in successors:
            before.setdefault(successor, []).append(at)
    left = set(among)
    while left:
        at = left.pop()
        later = reached(among[at], lambda place: among[place])
        earlier = reached([at], lambda place: before.get(place, []))
        part = later & earlier
        left -= part
        if part:
            yield {place: [successor for successor in among[place] if successor in part] for place in part}


def _may_end(body: Body, follows: Mapping[int, Sequence[int]], loop: Mapping[int, Sequence[int]]) -> bool:
    """True if something that the rounds of a loop change decides whether it goes on."""
    sources: dict[int, set[int]] = {}
    changes: set[int] = set()
    for at in loop:
        does = body[at]
        special = any(isinstance(operand, Special) for operand in does.instruction.operands)
        if does.loads or special:  # what a function returns is loaded
            changes.update(does.writes)
        for slot in does.writes:
            sources.setdefault(slot, set()).update(does.reads)
    for slot in sources:
        if slot in _behind(sources, sources[slot]):
            changes.add(slot)
    read = {slot for at in loop if len(loop[at]) < len(follows[at]) for slot in body[at].reads}
    return not changes.isdisjoint(_behind(sources, read))


def _behind(sources: Mapping[int, set[int]], slots: Iterable[int]) -> set[int]:
    """Registers from which others are computed, these included."""
    return reached(slots, lambda slot: sources.get(slot, set()))


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
