"""Which barrier halves meet.

In: the barrier halves that the threads executed. Out: every way they can meet, as pairs arrive -> wait (`syncbar`),
and who meets in over-subscribed generations. Settled here: generations, arrival counts, who is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise, product

from memmodel.enumeration.traces import Half, Reduction, Resource
from memmodel.errors import InternalError

Groups = dict[tuple[Resource, int], frozenset[int]]
"""For each over-subscribed generation (resource, number): the threads that meet."""


@dataclass(frozen=True, slots=True)
class BarrierEvent:
    """A barrier half as an event of the execution."""

    event: int
    thread: int
    half: Half


@dataclass(frozen=True, slots=True)
class Company:
    """The threads of a test in one domain instance: how many, and which of them have exited."""

    size: int
    exited: frozenset[int] = frozenset()


@dataclass(slots=True)
class _Generation:
    """The halves of one generation by thread; each thread has at most one arrive and one wait in it."""

    company: Company
    arrives: dict[int, int] = field(default_factory=dict)
    waits: dict[int, int] = field(default_factory=dict)
    asked: int = -1

    @property
    def gone(self) -> frozenset[int]:
        """If too few arrive, and all others have exited: those others. Nobody waits for them."""
        gone = self.company.exited.difference(self.arrives)
        everyone = len(self.arrives) + len(gone) == self.company.size
        return gone if len(self.arrives) < self.count <= self.company.size and everyone else frozenset()

    @property
    def complete(self) -> bool:
        return bool(self.arrives) and len(self.arrives) + len(self.gone) >= self.count

    @property
    def count(self) -> int:
        """How many arrivals complete it. If no member states a number, those that arrive are enough."""
        return len(self.arrives) if self.asked < 0 else self.asked


def generations(
    halves: Sequence[BarrierEvent], sizes: Mapping[Resource, Company]
) -> dict[tuple[Resource, int], _Generation]:
    """Sort halves into generations: the k-th arrive and the k-th wait of a thread on a resource belong to the k-th."""
    seen: dict[tuple[int, str, Resource], int] = {}
    found: dict[tuple[Resource, int], _Generation] = {}
    for one in halves:
        key = (one.thread, one.half.half, one.half.resource)
        number = seen.get(key, 0)
        seen[key] = number + 1
        generation = found.setdefault((one.half.resource, number), _Generation(sizes[one.half.resource]))
        if one.half.half == "arrive":
            generation.arrives[one.thread] = one.event
            generation.asked = max(generation.asked, one.half.count or sizes[one.half.resource].size)
        else:
            generation.waits[one.thread] = one.event
    return found


def meetings(
    halves: Sequence[BarrierEvent], sizes: Mapping[Resource, Company], standing: Sequence[tuple[int, Half]] = ()
) -> Iterator[tuple[Groups, list[tuple[int, int]]]]:
    """Every way the barriers can complete: the groups chosen, and syncbar. Nothing if some wait can never end.

    `sizes`: the threads of the test that share each resource's domain instance. `halves` are in order of event number.
    `standing`: threads that stand in front of a wait half for good: nothing if one of these could end.
    """
    found = generations(halves, sizes)
    for thread, half in standing:
        came, needed = arrivals(halves, sizes, thread, half)
        if came and came >= needed:
            return
    if any(not one.complete for one in found.values() if one.waits) or any(not one.arrives for one in found.values()):
        return
    exits = [(thread, wait) for one in found.values() for thread in one.gone for wait in one.waits.values()]
    crowded = [key for key, one in found.items() if len(one.arrives) > one.count]
    options = [list(combinations(sorted(found[key].arrives), found[key].count)) for key in crowded]
    for chosen in product(*options):
        groups: Groups = {key: frozenset(members) for key, members in zip(crowded, chosen, strict=True)}
        pairs: list[tuple[int, int]] = []
        for key, one in found.items():
            if not one.complete:
                continue
            members = groups.get(key)
            for arriver, arrive in one.arrives.items():
                for waiter, wait in one.waits.items():
                    if members is None or (arriver in members and waiter in members):
                        pairs.append((arrive, wait))
        if _can_end(halves, pairs, exits):
            yield groups, pairs


def arrivals(
    halves: Sequence[BarrierEvent], sizes: Mapping[Resource, Company], thread: int, half: Half
) -> tuple[int, int]:
    """How many have arrived, and have to, in the generation of the wait half that a thread stands in front of."""
    waits = [one for one in halves if one.thread == thread and one.half.half == "wait"]
    number = sum(one.half.resource == half.resource for one in waits)
    generation = generations(halves, sizes).get((half.resource, number))
    if generation is None or not generation.arrives:
        return 0, max(1, half.count or sizes[half.resource].size)
    return len(generation.arrives) + len(generation.gone), generation.count


def _can_end(
    halves: Sequence[BarrierEvent], pairs: Sequence[tuple[int, int]], exits: Sequence[tuple[int, int]]
) -> bool:
    """No wait ends before an arrival that it waits for, or the exit (thread, wait) of a thread that does not arrive."""
    thread = {one.event: one.thread for one in halves}
    after: dict[int, set[int]] = {one.event: set() for one in halves}
    for first, second in pairwise(halves):
        if first.thread == second.thread:
            after[first.event].add(second.event)
    for arrive, wait in pairs:
        if thread[arrive] != thread[wait]:
            after[arrive].add(wait)
    for gone, wait in exits:
        for one in halves:
            if one.thread == gone and thread[wait] != gone:
                after[one.event].add(wait)
    waiting = dict.fromkeys(after, 0)
    for successors in after.values():
        for event in successors:
            waiting[event] += 1
    ready = [event for event, count in waiting.items() if count == 0]
    ended = 0
    while ready:
        ended += 1
        for event in after[ready.pop()]:
            waiting[event] -= 1
            if waiting[event] == 0:
                ready.append(event)
    return ended == len(after)


def reductions_agree(reductions: Sequence[Reduction]) -> bool:
    """Is the result that each thread took from a barrier reduction the combination of what all members put in?"""
    values: dict[tuple[Resource, int], list[int]] = {}
    for one in reductions:
        values.setdefault((one.resource, one.generation), []).append(one.value)
    return all(one.result == combine(one.op, values[one.resource, one.generation]) for one in reductions)


def combine(op: str, values: Sequence[int]) -> int:
    """barrier.cta.red over predicates: how many are true (popc), whether all are (and), whether any is (or)."""
    true = sum(1 for value in values if value)
    if op == "popc":
        return true
    if op == "and":
        return int(true == len(values))
    if op == "or":
        return int(true > 0)
    raise InternalError(f"no barrier reduction '{op}'")
