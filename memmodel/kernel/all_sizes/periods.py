"""Where the rounds of loops repeat in a run: the period, and the cuts at its ends.

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

from memmodel.base.labels import is_write
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
    """What threads do in each round, as a number: equal for equal events and accesses.

    The place of an access in global memory counts only in the blocks that are `fixed`.
    """

    def __init__(self, run: LaunchTrace, visits: Mapping[int, Sequence[RoundEnd]], fixed: Container[Block]) -> None:
        self._run, self._fixed = run, fixed
        self._tested = {
            id(step.event): step.seen_by_tests % 2
            for steps in run.objects.values()
            for step in steps
            if not step.update
        }
        self._visits = visits
        self._accesses: dict[int, list[list[int]]] = {}
        self._collect()

    def _collect(self) -> None:
        """The weak accesses of each thread, by the visit before which they lie."""
        ends = {
            thread: ([visit.single for visit in seen], [visit.lanes for visit in seen])
            for thread, seen in self._visits.items()
        }
        for thread, seen in self._visits.items():
            self._accesses[thread] = [[] for _ in range(len(seen) + 1)]
        for number, visit in enumerate(self._run.single):
            if visit.thread in ends:
                self._accesses[visit.thread][bisect_right(ends[visit.thread][0], number)].append(
                    self._access(visit, visit.first)
                )
        for number, row in enumerate(self._run.lanes):
            for thread, first in zip(row.threads, row.firsts, strict=True):
                if thread in ends:
                    self._accesses[thread][bisect_right(ends[thread][1], number)].append(self._access(row, first))

    def _access(self, access: WeakAccess | LaneAccesses, first: int) -> int:
        part = access.part if isinstance(access, WeakAccess) else 0
        return hash((access.at, access.label, access.size, access.scalar, part, *self._place(access.block, first)))

    def _place(self, block: Block | None, first: int) -> tuple[object, ...]:
        if block is None:
            return ()
        fixed = block in self._fixed or block.instance.space is Space.SHARED
        return (id(block), first) if fixed else (id(block),)

    def _event(self, event: TraceEvent) -> int:
        done = [other.order for other in event.completes if other.order is not None and other.thread == event.thread]
        behind = (event.order or 0) - max(done) if done else None
        place = self._place(event.block, event.first)
        named = None if event.range is None else (id(event.range[0]), *event.range[1:])
        signals = tuple((other.label, other.count, *self._place(other.block, other.first)) for other in event.signals)
        return hash((event.at, event.label, event.size, event.count, event.barrier, *place, named, signals, behind,
                     self._tested.get(id(event))))  # fmt: skip

    def of(self, thread: int, visit: int, following: int) -> int:
        """A number that is equal for equal events and accesses of a thread between two visits."""
        begun, ended = self._visits[thread][visit], self._visits[thread][following]
        events = [self._event(event) for event in self._run.threads[thread].events[begun.events : ended.events]]
        accesses = [
            event for of_visit in self._accesses[thread][visit + 1 : following + 1] for event in sorted(of_visit)
        ]
        return hash((tuple(events), tuple(accesses)))


def written_blocks(run: LaunchTrace) -> frozenset[Block]:
    """The memory that is written in a run."""
    weak = {access.block for access in run.single if is_write(access.label)} | {
        access.block for access in run.lanes if is_write(access.label)
    }
    strong = {
        access.block
        for thread in run.threads
        for access in thread.strong()
        if access.block is not None and is_write(access.label)
    }
    return frozenset(weak | strong)


class PeriodWrite(NamedTuple):
    """What a weak access writes: first byte, the byte after the last, thread, instruction, the value if it is known."""

    first: int
    end: int
    thread: int
    at: int
    value: int | None


def writes_in(
    run: LaunchTrace, visits: Mapping[int, Sequence[RoundEnd]], site: Site
) -> dict[Block, tuple[list[PeriodWrite], list[PeriodWrite]]]:  # fmt: skip
    """What threads write in each of the two periods, weakly and strongly."""
    cuts = {thread: [visits[thread][number] for number in numbers] for thread, numbers in site.items()}
    writes: dict[Block, tuple[list[PeriodWrite], list[PeriodWrite]]] = {}

    def note(block: Block, write: PeriodWrite, places: Sequence[int], place: int) -> None:
        part = sum(place >= cut for cut in places)
        if part in (1, 2):
            writes.setdefault(block, ([], []))[part - 1].append(write)

    for number, access in enumerate(run.single):
        if is_write(access.label) and access.thread in cuts:
            write = PeriodWrite(access.first, access.first + access.size, access.thread, access.at, access.value)
            note(access.block, write, [cut.single for cut in cuts[access.thread]], number)
    for number, row in enumerate(run.lanes):
        for access in row.each() if is_write(row.label) else ():
            if access.thread in cuts:
                write = PeriodWrite(access.first, access.first + access.size, access.thread, access.at, access.value)
                note(access.block, write, [cut.lanes for cut in cuts[access.thread]], number)
    for thread, of_thread in cuts.items():
        for event in run.threads[thread].strong():
            if is_write(event.label) and event.block is not None and event.order is not None:
                value = event.number
                write = PeriodWrite(event.first, event.first + event.size, thread, event.at, value)
                note(event.block, write, [cut.events for cut in of_thread], event.order)
    return writes


def writes_by_thread(left: Sequence[PeriodWrite], first: int, size: int) -> dict[int, list[PeriodWrite]]:
    """The writes of each thread to some bytes, in its order."""
    by_thread: dict[int, list[PeriodWrite]] = {}
    for write in left:
        if write.first < first + size and first < write.end:
            by_thread.setdefault(write.thread, []).append(write)
    return by_thread


def instances(seen: Sequence[RoundEnd], heads: frozenset[int]) -> list[list[int]]:
    """The visits of a thread, one list for each time it ran one of these loops, in their order."""
    visits: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for number, visit in enumerate(seen):
        if visit.head in heads:
            visits.setdefault((visit.head, visit.within), []).append(number)
    return list(visits.values())


@dataclass(frozen=True, slots=True)
class LoopRun:
    """One time that threads run the loops. `rounds`: by thread its visits; `done`: what it does between them."""

    rounds: Mapping[int, Sequence[int]]
    done: Mapping[int, Sequence[int]]

    @property
    def least(self) -> int:
        """Visits of the thread with the fewest."""
        return min(map(len, self.rounds.values()))

    def cut(self, length: int, third: int, shifts: Mapping[int, int]) -> Site | None:
        """Two periods of `length` rounds that end at a visit, or in some threads rounds later; None if they differ."""
        site = {}
        for thread, visits in self.rounds.items():
            last = third + shifts.get(thread, 0)
            first, second, done = last - 2 * length, last - length, self.done[thread]
            if first < 0 or last >= len(visits) or done[first:second] != done[second:last]:
                return None
            site[thread] = Cuts(visits[first], visits[second], visits[last])
        return site

    def repeats(self, length: int) -> bool:
        """True if there may be two equal periods of `length` rounds."""
        return any(self.cut(length, third, {}) is not None for third in self.thirds(length))

    def thirds(self, length: int) -> range:
        """The visits at which two periods may end, the last ones first."""
        return range(self.least - 1, 2 * length - 1, -1)


def turns(
    run: LaunchTrace, visits: Mapping[int, Sequence[RoundEnd]], heads: frozenset[int], fixed: Container[Block]
) -> list[LoopRun]:
    """Each time that threads run some loops; none if threads run them differently often. `fixed`: as in `RoundKeys`."""
    ran = {thread: listed for thread, seen in visits.items() if (listed := instances(seen, heads))}
    if len({len(listed) for listed in ran.values()}) != 1:
        return []
    keys, loop_runs = RoundKeys(run, {thread: visits[thread] for thread in ran}, fixed), []
    for number in range(len(next(iter(ran.values())))):
        rounds = {thread: listed[number] for thread, listed in ran.items()}
        done = {
            thread: [keys.of(thread, *pair) for pair in pairwise(of_thread)] for thread, of_thread in rounds.items()
        }
        loop_runs.append(LoopRun(rounds, done))
    return loop_runs


def repeated(
    run: LaunchTrace, visits: Mapping[int, Sequence[RoundEnd]], sites: Sequence[Site], fixed: Container[Block]
) -> bool:
    """True if threads do the same in both periods. `fixed`: as in `RoundKeys`."""
    keys = RoundKeys(run, {thread: visits[thread] for thread in sites[0]}, fixed)
    return all(
        keys.of(thread, cuts.first, cuts.second) == keys.of(thread, cuts.second, cuts.third)
        for site in sites
        for thread, cuts in site.items()
    )


def in_own_bytes(run: LaunchTrace, block: Block, moved: Mapping[Moved, int], rate: Fraction) -> bool:
    """True if each period touches its own bytes of a block, after those of the period before.

    `moved`: how many accesses have addresses that drift. In each added period they lie further by a step; after the
    loop they lie further by as many steps as there are added periods; and the bytes of a period are not longer than a
    step. All other accesses lie before those of the period.
    """
    if any(access.block is block for thread in run.threads for access in thread.strong()):
        return False
    still = Counter((access.first, access.size) for access in run.weak((block,)))
    for access, count in moved.items():
        still[access.first, access.size] -= count
    steps = {access.drift.by_period for access in moved if access.drift is not None and access.drift.by_period}
    step = next(iter(steps), 0)
    period = [access for access in moved if access.drift == Drift(Fraction(0), step)]
    after = [access for access in moved if access.drift is not None and access.drift == Drift(step / rate, 0)]
    if len(steps) != 1 or step < 0 or len(period) + len(after) < len(moved):
        return False
    begin, end = min(access.first for access in period), max(access.first + access.size for access in period)
    before = all(first + size <= begin for (first, size), count in still.items() if count)
    return before and end - begin <= step and all(end <= access.first for access in after)
