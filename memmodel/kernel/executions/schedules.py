"""The schedules that are explored where something depends on the schedule.

In: Schedule, LaunchTrace of one run, the instructions on whose results runs depend. Out: Schedules, the most different
first, and whether they are all there are.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice, product
from math import factorial, prod

from memmodel.base.labels import Side, side_of
from memmodel.kernel.flow.paths import comes_back
from memmodel.kernel.machine.choices.schedule import FIRST, LAST, Order, Schedule
from memmodel.kernel.order.last_writes import stores_matter
from memmodel.kernel.trace.launch import ChoiceKind, LaunchTrace
from memmodel.ptx.module.syntax import PtxFunction

POLLED = 3
"""Loads that poll for which a schedule is made in which they find nothing; atomic operations for which one is made in
which they find a word taken."""

MOST_OPERATIONS = 24
"""Atomic operations at one place of which all orders may be explored."""

POLLING = (ChoiceKind.LOAD, ChoiceKind.ATOMIC)
"""Kinds of choices with which a loop may poll."""

ALL = 24
"""Schedules that are explored if they are all there are."""


def complete(run: LaunchTrace, real: set[int], wanted: int) -> bool:
    """True if schedules differ only in the order of atomic operations, and all of these orders are within the bound."""
    size = prod(_count(threads) for threads in _orders(run, real).values())
    return _orders_alone(run, real) and size <= max(ALL, wanted)


def ordered_place(run: LaunchTrace, real: set[int]) -> tuple[str, int] | None:
    """The place of atomic operations whose order is the only difference between schedules; None if there is none."""
    places = _orders(run, real)
    alone = (
        _orders_alone(run, real)
        and not run.cancels
        and not any(kind is ChoiceKind.LAST_WRITE and number in real for kind, number in run.choices)
    )
    return next(iter(places)) if alone and len(places) == 1 else None


def _orders_alone(run: LaunchTrace, real: set[int]) -> bool:
    """True if schedules differ only in the order of atomic operations."""
    only = all(kind in (ChoiceKind.ATOMIC, ChoiceKind.LAST_WRITE) for kind, number in run.choices if number in real)
    atomic = not stores_matter(run, real)
    # What asynchronous instructions do has no place in these orders.
    atomic &= real <= {event.at for events in run.atomics.values() for event in events}
    return only and atomic and not run.elected


def schedules(entry: PtxFunction, base: Schedule, run: LaunchTrace, real: set[int], wanted: int) -> Iterator[Schedule]:
    """Schedules that make the choices `real` otherwise, the most different first. `real` may grow meanwhile."""
    orders = _orders(run, real)
    if complete(run, real, wanted):
        for chosen in product(*(list(_interleavings(threads)) for threads in orders.values())):
            yield replace(base, order=tuple(zip(orders, chosen, strict=True)))
        return
    yield from sampled(entry, base, run, real, wanted)


def sampled(entry: PtxFunction, base: Schedule, run: LaunchTrace, real: set[int], wanted: int) -> Iterator[Schedule]:
    """Some schedules, where those are not all that differ in the order of atomic operations: some poll again, or give
    up.
    """
    orders = _orders(run, real)
    yield replace(base, backwards=True)
    for late in _unseen_writers(entry, run, real):
        yield replace(base, late=late, starves=True)
    for number in _taken(entry, run, real):
        yield replace(base, holding=frozenset([number]), starves=True)
        if _by_lanes(run, number):
            yield replace(base, holding=frozenset([number]), starves=True, parts_lanes=True)
    looks = [FIRST, LAST, *map(str, range(wanted))]
    looks = looks if any(kind is ChoiceKind.LOAD and number in real for kind, number in run.choices) else [""]
    looked = frozenset(real)
    lonely = any(kind is ChoiceKind.ACTIVE_LANES and number in real for kind, number in run.choices)
    if lonely:
        yield replace(base, split=True)
    shuffle = random.Random(0)
    how: list[Callable[[list[int]], list[int]]] = [lambda threads: threads[::-1]]
    how += [lambda threads: _together(run, shuffle.sample(threads, len(threads)))] * wanted
    how = how if looks == [""] else [list, *how]
    for number, change in enumerate(how if orders or looks != [""] else ()):
        order: tuple[Order, ...] = tuple((place, tuple(change(threads))) for place, threads in orders.items())
        split, looking = lonely and number % 2 == 1, looks[number % len(looks)]
        yield replace(base, order=order, split=split, looks=looking, looked=looked)


def _together(run: LaunchTrace, drawn: list[int]) -> list[int]:
    """An order of operations that warps can make: lanes make those of one instruction one after the other, in an order
    of their own, and no other warp comes between them. Warps of one lane come as drawn.
    """
    warps: dict[tuple[int, int], list[int]] = {}
    for place, number in enumerate(drawn):
        warps.setdefault((run.threads[number].cta, run.threads[number].warp), []).append(place)
    turns: list[tuple[int, list[int]]] = []
    for places in warps.values():
        left = Counter(drawn[place] for place in places)
        for place in places:
            if lanes := [number for number in left if left[number]]:
                turns.append((place, lanes))
                left.subtract(lanes)
    return [number for _, lanes in sorted(turns) for number in lanes]


def with_stores(
    entry: PtxFunction, base: Schedule, run: LaunchTrace, real: set[int], wanted: int
) -> Iterator[Schedule]:
    """Schedules where only another schedule than the first makes stores to the places of atomic operations, so that the
    orders of these operations are not all: others come between an operation and the store.
    """
    for number in _taken(entry, run, real):
        yield replace(base, holding=frozenset([number]), starves=True, backwards=True)
    yield from islice(schedules(entry, base, run, real, wanted), wanted)


@dataclass(slots=True)
class DrawnSchedules:
    """The schedules to look at, drawn one by one while their runs show what matters.

    `first`: the run of `base`. `wanted`: how many schedules, if these are not all. `matter`: the instructions on whose
    results runs depend, as far as that is known. `all_executions`: True as long as the runs stand for all executions.
    """

    entry: PtxFunction
    base: Schedule
    first: LaunchTrace
    wanted: int
    matter: set[int]
    all_executions: bool = field(init=False)
    _storing: list[LaunchTrace] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.all_executions = complete(self.first, self.matter, self.wanted)

    def __iter__(self) -> Iterator[Schedule]:
        entry, base, first, matter, wanted = self.entry, self.base, self.first, self.matter, self.wanted
        bound = max(ALL, wanted) if self.all_executions else wanted
        yield from islice(schedules(entry, base, first, matter, wanted), bound)
        for run in self._storing:  # which grows
            yield from with_stores(entry, base, run, matter, wanted)
        if complete(first, matter, wanted) and not self.all_executions and not self._storing:
            yield from islice(sampled(entry, base, first, matter, wanted), wanted)

    def note(self, run: LaunchTrace, chosen: frozenset[int]) -> None:
        """Take in what the run of a schedule shows. `chosen`: the instructions that matter in it."""
        self.matter |= chosen
        same = atomics(run, self.matter) == atomics(self.first, self.matter)
        self.all_executions &= not run.infeasible and run.choices.keys() <= self.first.choices.keys() and same
        if self.all_executions and stores_matter(run, self.matter):
            self._storing.append(run)
            self.all_executions = False


def _taken(entry: PtxFunction, run: LaunchTrace, real: set[int]) -> list[int]:
    """Atomic operations after which a thread may be held back, those in loops first."""
    taken = sorted(number for kind, number in run.choices if kind is ChoiceKind.ATOMIC and number in real)
    return sorted(taken, key=lambda at: not comes_back(entry, at))[:POLLED]


def _unseen_writers(entry: PtxFunction, run: LaunchTrace, real: set[int]) -> Iterator[tuple[tuple[int, int], ...]]:
    """For loads and atomic operations in loops, the warps that write what the first warp polls with another
    instruction: if they come late, the loop may give up. Those of other CTAs alone come late first: the loop may end
    with what its own CTA writes, as where a CTA arrives more often than once at a barrier of the grid.
    """
    loads = sorted(
        (kind is ChoiceKind.ATOMIC, number) for kind, number in run.choices if kind in POLLING and number in real
    )
    events = [(thread, event) for thread in run.threads for event in thread.strong()]
    for _, load in islice((key for key in loads if comes_back(entry, key[1])), POLLED):
        polls = [(thread, event) for thread, event in events if event.at == load and side_of(event.label) is Side.READ]
        if not polls:
            continue
        words = {(event.block, event.first) for thread, event in polls}
        first = polls[0][0].cta, polls[0][0].warp
        writers = (
            (thread.cta, thread.warp)
            for thread, event in events
            if side_of(event.label) is Side.WRITE and event.at != load and (event.block, event.first) in words
        )
        late = tuple(warp for warp in dict.fromkeys(writers) if warp != first)
        elsewhere = tuple(warp for warp in late if warp[0] != first[0])
        yield from (warps for warps in dict.fromkeys((elsewhere, late)) if warps)


def _by_lanes(run: LaunchTrace, number: int) -> bool:
    """True if lanes of one warp make an atomic operation at one place."""
    for events in run.atomics.values():
        warps = [
            (run.threads[event.thread].cta, run.threads[event.thread].warp) for event in events if event.at == number
        ]
        threads = {event.thread for event in events if event.at == number}
        if len(threads) > len(set(warps)):
            return True
    return False


def atomics(run: LaunchTrace, real: set[int]) -> Counter[tuple[str, int, int, int]]:
    """The atomic operations at places where their order matters, with the threads that make them, counted."""
    return Counter(
        (block.instance.name, at, event.thread, event.at)
        for (block, at), events in run.atomics.items()
        if any(event.at in real for event in events)
        for event in events
    )


def _count(threads: list[int]) -> int:
    """The orders in which threads can make their operations."""
    if len(threads) > MOST_OPERATIONS:
        return factorial(MOST_OPERATIONS)
    return factorial(len(threads)) // prod(map(factorial, Counter(threads).values()))


def _interleavings(threads: list[int]) -> Iterator[tuple[int, ...]]:
    """These orders: a thread may have several operations, which it makes one after the other."""
    left = Counter(threads)
    if not threads:
        yield ()
    for first in left:
        others = list(threads)
        others.remove(first)
        yield from ((first, *order) for order in _interleavings(others))


def _orders(run: LaunchTrace, real: set[int]) -> dict[tuple[str, int], list[int]]:
    """The threads that make atomic operations whose order matters, by location, as they were made."""
    orders: dict[tuple[str, int], list[int]] = {}
    for (block, at), events in run.atomics.items():
        if len(events) > 1 and any(event.at in real for event in events):
            orders[block.instance.name, at] = [event.thread for event in events]
    return orders
