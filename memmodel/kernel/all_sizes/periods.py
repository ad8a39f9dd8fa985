"""Where the rounds of loops repeat in a run: the period, and the cuts between which it is carried out.

In: trace, visits of the loops that a parameter decides. Out: `LoopRun`, `Site`: for each thread the visits at which one
period ends and the next one begins. Source: docs/kernels-theorem.md, "Any trip count".
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from memmodel.base.labels import Access, Side
from memmodel.kernel.all_sizes.drift import Drift
from memmodel.kernel.all_sizes.following import Moved, RoundEnd
from memmodel.kernel.trace.accesses import LaneAccesses, WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.vocabulary import Space


class Cuts(NamedTuple):
    """Three visits of a thread, among all of its visits: two periods of rounds lie between them."""

    first: int
    second: int
    third: int


Site = Mapping[int, Cuts]
"""By thread: where its rounds repeat."""


class RoundKeys:
    """What threads do in each round, as a number: the same for the same events and accesses.

    Where in global memory an access lies counts in some blocks only, those that are `fixed`.
    """

    def __init__(self, run: LaunchTrace, visits: Mapping[int, Sequence[RoundEnd]], fixed: Container[Block]) -> None:
        self._run, self._fixed = run, fixed
        self._tested = {
            id(step.event): step.seen % 2 for steps in run.objects.values() for step in steps if not step.update
        }
        self._visits = visits
        self._accesses: dict[int, list[list[int]]] = {}
        self._collect()

    def _collect(self) -> None:
        """The weak accesses of each thread, by the visit before which they lie."""
        ends = {
            thread: ([one.single for one in seen], [one.many for one in seen]) for thread, seen in self._visits.items()
        }
        for thread, seen in self._visits.items():
            self._accesses[thread] = [[] for _ in range(len(seen) + 1)]
        for n, one in enumerate(self._run.single):
            if one.thread in ends:
                self._accesses[one.thread][bisect_right(ends[one.thread][0], n)].append(self._access(one, one.first))
        for n, row in enumerate(self._run.lanes):
            for thread, first in zip(row.threads, row.firsts, strict=True):
                if thread in ends:
                    self._accesses[thread][bisect_right(ends[thread][1], n)].append(self._access(row, first))

    def _access(self, one: WeakAccess | LaneAccesses, first: int) -> int:
        part = one.part if isinstance(one, WeakAccess) else 0
        return hash((one.at, one.label, one.size, one.scalar, part, *self._place(one.block, first)))

    def _place(self, block: Block | None, first: int) -> tuple[object, ...]:
        if block is None:
            return ()
        fixed = block in self._fixed or block.instance.space is Space.SHARED
        return (id(block), first) if fixed else (id(block),)

    def _event(self, one: TraceEvent) -> int:
        done = [other.order for other in one.completes if other.order is not None and other.thread == one.thread]
        behind = (one.order or 0) - max(done) if done else None
        place = self._place(one.block, one.first)
        named = None if one.range is None else (id(one.range[0]), *one.range[1:])
        told = tuple((other.label, other.count, *self._place(other.block, other.first)) for other in one.signals)
        return hash((one.at, one.label, one.size, one.count, one.barrier, *place, named, told, behind,
                     self._tested.get(id(one))))  # fmt: skip

    def of(self, thread: int, visit: int, following: int) -> int:
        """What a thread does between two visits."""
        begun, ended = self._visits[thread][visit], self._visits[thread][following]
        events = [self._event(one) for one in self._run.threads[thread].events[begun.events : ended.events]]
        accesses = [one for listed in self._accesses[thread][visit + 1 : following + 1] for one in sorted(listed)]
        return hash((tuple(events), tuple(accesses)))


def written_blocks(run: LaunchTrace) -> frozenset[Block]:
    """The memory that is written in a run."""
    weak = {one.block for one in run.single if _writes(one)} | {one.block for one in run.lanes if _writes(one)}
    strong = {one.block for thread in run.threads for one in thread.strong() if one.block is not None and _writes(one)}
    return frozenset(weak | strong)


class Left(NamedTuple):
    """What a weak access writes: first byte, the one behind, who, and the value, if that is known."""

    first: int
    end: int
    thread: int
    at: int
    value: int | None


def left_in(
    run: LaunchTrace, visits: Mapping[int, Sequence[RoundEnd]], site: Site
) -> dict[Block, tuple[list[Left], list[Left]]]:  # fmt: skip
    """What threads write in each of the two periods."""
    cuts = {thread: [visits[thread][n] for n in mine] for thread, mine in site.items()}
    found: dict[Block, tuple[list[Left], list[Left]]] = {}

    def note(block: Block, made: Left, places: Sequence[int], place: int) -> None:
        part = sum(place >= cut for cut in places)
        if part in (1, 2):
            found.setdefault(block, ([], []))[part - 1].append(made)

    for n, one in enumerate(run.single):
        if _writes(one) and one.thread in cuts:
            made = Left(one.first, one.first + one.size, one.thread, one.at, one.value)
            note(one.block, made, [cut.single for cut in cuts[one.thread]], n)
    for n, row in enumerate(run.lanes):
        for each in row.each() if _writes(row) else ():
            if each.thread in cuts:
                made = Left(each.first, each.first + each.size, each.thread, each.at, each.value)
                note(each.block, made, [cut.many for cut in cuts[each.thread]], n)
    return found


def order_in(left: Sequence[Left], first: int, size: int) -> dict[int, list[Left]]:
    """What each thread leaves in some bytes, in its order."""
    found: dict[int, list[Left]] = {}
    for one in left:
        if one.first < first + size and first < one.end:
            found.setdefault(one.thread, []).append(one)
    return found


def _writes(one: WeakAccess | LaneAccesses | TraceEvent) -> bool:
    return isinstance(one.label, Access) and one.label.side is Side.WRITE


def instances(seen: Sequence[RoundEnd], heads: frozenset[int]) -> list[list[int]]:
    """The visits of a thread, by the times it ran one of these loops, in their order."""
    found: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for number, one in enumerate(seen):
        if one.head in heads:
            found.setdefault((one.head, one.within), []).append(number)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class LoopRun:
    """One time that threads run the loops. `rounds`: by thread its visits; `done`: what it does between two of them."""

    rounds: Mapping[int, Sequence[int]]
    done: Mapping[int, Sequence[int]]

    @property
    def least(self) -> int:
        """Visits of the thread with the fewest."""
        return min(map(len, self.rounds.values()))

    def cut(self, length: int, third: int, shifts: Mapping[int, int]) -> Site | None:
        """Two periods of so many rounds up to a visit, in some threads a few rounds later; None if they differ."""
        found = {}
        for thread, mine in self.rounds.items():
            last = third + shifts.get(thread, 0)
            first, second, done = last - 2 * length, last - length, self.done[thread]
            if first < 0 or last >= len(mine) or done[first:second] != done[second:last]:
                return None
            found[thread] = Cuts(mine[first], mine[second], mine[last])
        return found

    def repeats(self, length: int) -> bool:
        """May a period of so many rounds show twice?"""
        return any(self.cut(length, third, {}) is not None for third in self.thirds(length))

    def thirds(self, length: int) -> range:
        """The visits up to which there may be two periods, the last ones first."""
        return range(self.least - 1, 2 * length - 1, -1)


def turns(
    run: LaunchTrace, visits: Mapping[int, Sequence[RoundEnd]], heads: frozenset[int], fixed: Container[Block]
) -> list[LoopRun]:
    """Each time that threads run some loops; none if some do so more often than others. `fixed`: as in `RoundKeys`."""
    ran = {thread: listed for thread, seen in visits.items() if (listed := instances(seen, heads))}
    if len({len(listed) for listed in ran.values()}) != 1:
        return []
    keys, found = RoundKeys(run, {thread: visits[thread] for thread in ran}, fixed), []
    for number in range(len(next(iter(ran.values())))):
        rounds = {thread: listed[number] for thread, listed in ran.items()}
        done = {thread: [keys.of(thread, *pair) for pair in pairwise(mine)] for thread, mine in rounds.items()}
        found.append(LoopRun(rounds, done))
    return found


def repeated(
    run: LaunchTrace, visits: Mapping[int, Sequence[RoundEnd]], sites: Sequence[Site], fixed: Container[Block]
) -> bool:
    """Do threads do the same in both periods, also where some blocks are concerned?"""
    keys = RoundKeys(run, {thread: visits[thread] for thread in sites[0]}, fixed)
    return all(
        keys.of(thread, cuts.first, cuts.second) == keys.of(thread, cuts.second, cuts.third)
        for site in sites
        for thread, cuts in site.items()
    )


def apart(run: LaunchTrace, block: Block, moved: Mapping[Moved, int], rate: Fraction) -> bool:
    """Does each period touch bytes of a block of its own, behind those of the one before it?

    `moved`: how many accesses there are whose addresses drift. Those of the period that stands for all more lie further
    by a step in each; those behind it by as many steps as there are periods more; and the bytes of a period reach no
    further than a step. All others lie before those of the period.
    """
    if any(one.block is block for thread in run.threads for one in thread.strong()):
        return False
    still = Counter((one.first, one.size) for one in run.weak((block,)))
    for one, count in moved.items():
        still[one.first, one.size] -= count
    steps = {one.drift.moves for one in moved if one.drift is not None and one.drift.moves}
    step = next(iter(steps), 0)
    period = [one for one in moved if one.drift == Drift(Fraction(0), step)]
    after = [one for one in moved if one.drift is not None and one.drift == Drift(step / rate, 0)]
    if len(steps) != 1 or step < 0 or len(period) + len(after) < len(moved):
        return False
    begin, end = min(one.first for one in period), max(one.first + one.size for one in period)
    before = all(first + size <= begin for (first, size), count in still.items() if count)
    return before and end - begin <= step and all(end <= one.first for one in after)
