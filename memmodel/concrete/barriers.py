"""Which arrivals make a generation of a barrier, and which waits they release (docs/executions.md, "Barriers").

In: the barrier halves that the threads executed, in program order. Out: every way in which they can meet, that is, the
generation of each arrive half and the relations that follow; none if some wait ended that could not have ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from memmodel.base.graphs import has_cycle
from memmodel.base.labels import BETWEEN_GRIDS, OF_TENSOR_MEMORY, Barrier, Domain, Half
from memmodel.base.points import BarrierId
from memmodel.base.rows import bits, mask_of
from memmodel.concrete.records import BarrierRecord, Contribution, End, Trace
from memmodel.errors import InternalError
from memmodel.program.automata import BarrierCounts
from memmodel.program.lowered import LoweredTest

Generations = dict[int, int]
"""Event number of an arrive half -> number of its generation."""


@dataclass(frozen=True, slots=True)
class HalfEvent:
    """A barrier half as an event. `instruction`: a number that the halves of one instruction share."""

    event: int
    thread: int
    instruction: int
    record: BarrierRecord


def _ends(arrival: HalfEvent) -> bool:
    """True if this arrival is the end of a thread."""
    return isinstance(arrival.record.label, Barrier) and arrival.record.label.ends


@dataclass(frozen=True, slots=True)
class WaitsFor:
    """A thread that waits for ever.

    It waits for the generation of the arrive half `arrive`, or for the one of that number.
    """

    thread: int
    arrive: int | None
    generation: int | None


@dataclass(frozen=True, slots=True)
class Meeting:
    """One way in which the halves can meet. Pairs of event numbers."""

    generations: Generations
    syncbar: list[tuple[int, int]]
    samegen: list[tuple[int, int]]
    genbefore: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class ThreadsOf:
    """The threads in the domain of a barrier, and those of them that have exited, as masks."""

    all: int
    exited: int

    @staticmethod
    def barrier(lowered: LoweredTest, traces: Sequence[Trace], barrier: BarrierId) -> ThreadsOf:
        inside = [
            number
            for number, thread in enumerate(lowered.test.threads)
            if barrier.of_thread(thread.place, number)
            and (barrier.domain not in BETWEEN_GRIDS or thread.place.grid == barrier.key[0])
        ]
        return ThreadsOf.of(inside, [number for number in inside if traces[number].ending.end is End.EXIT])

    @staticmethod
    def of(inside: Iterable[int], exited: Iterable[int]) -> ThreadsOf:
        """The same by the numbers of the threads."""
        return ThreadsOf(mask_of(inside), mask_of(exited))


class BarrierUses:
    """The uses of a barrier in one execution."""

    def __init__(self, barrier: BarrierId, halves: Sequence[HalfEvent], threads: ThreadsOf) -> None:
        self.barrier = barrier
        self.threads = threads
        self.arrives = [half for half in halves if half.record.half is Half.ARRIVE]
        self.waits = [half for half in halves if half.record.half is Half.WAIT]
        self._awaited = {(half.thread, half.instruction) for half in self.waits}

    # ---- generations ---------------------------------------------------------------------------------------

    def assignments(self) -> Iterator[Generations]:
        """Every choice of generations that the arrivals allow."""
        if self.barrier.domain is Domain.LAUNCH:
            yield from self._first_launches()
            return
        if self._by_number():
            seen: dict[int, int] = {}
            generations: Generations = {}
            for arrival in self.arrives:
                generations[arrival.event] = seen.get(arrival.thread, 0)
                seen[arrival.thread] = generations[arrival.event] + 1
            yield generations
            return
        for assignment in self._extend(0, {}):
            if self._first_come(assignment):
                yield assignment

    def _first_launches(self) -> Iterator[Generations]:
        """Generation 0 is the first launch of the CTA, by any of its threads; without one, the ends of all of them."""
        launches = [arrival for arrival in self.arrives if not _ends(arrival)]
        first: dict[int, HalfEvent] = {}
        for arrival in launches:
            first.setdefault(arrival.thread, arrival)
        for chosen in first.values():
            yield {arrival.event: int(arrival is not chosen) for arrival in self.arrives}
        if not launches:
            yield {arrival.event: 0 for arrival in self.arrives}

    def _by_number(self) -> bool:
        """True if the k-th arrival of each thread is in generation k: everyone has to arrive; or as many threads as a
        generation takes use the barrier, and each of them waits whenever it arrives; or a grid ends, or a pair of CTAs
        acts together, or an alloc waits for columns."""
        if self.barrier.domain in (Domain.GRID, *OF_TENSOR_MEMORY):
            return True
        counts = {arrival.record.count for arrival in self.arrives}
        if counts <= {None} or all(count is not None and count < 0 for count in counts):
            return True
        return counts == {len({arrival.thread for arrival in self.arrives})} and all(
            (arrival.thread, arrival.instruction) in self._awaited for arrival in self.arrives
        )

    def _extend(self, at: int, chosen: Generations) -> Iterator[Generations]:
        """Assign generations to the arrivals from number `at` on, thread by thread.

        An arrival is in no earlier generation than its thread's previous one; after a wait, it is in a later one.
        """
        if at == len(self.arrives):
            yield dict(chosen)
            return
        arrival = self.arrives[at]
        before = [other for other in self.arrives[:at] if other.thread == arrival.thread]
        least = 0
        if before:
            least = chosen[before[-1].event] + any(
                wait.thread == arrival.thread and before[-1].event < wait.event < arrival.event for wait in self.waits
            )
        for number in range(least, len(self.arrives)):
            chosen[arrival.event] = number
            yield from self._extend(at + 1, chosen)
        chosen.pop(arrival.event, None)

    def _first_come(self, assignment: Generations) -> bool:
        """No generation has more arrivals than it asks for, and none begins before the one before it is complete."""
        last = max(assignment.values(), default=-1)
        for number in range(last + 1):
            generation = self.generation(assignment, number)
            if generation.overfull(self.threads.all):
                return False
            if number < last and not self.complete(assignment, number):
                return False
        return True

    def members(self, assignment: Generations, number: int) -> list[HalfEvent]:
        """The arrivals of a generation."""
        return [arrival for arrival in self.arrives if assignment[arrival.event] == number]

    def generation(self, assignment: Generations, number: int) -> BarrierCounts:
        """What a generation has counted when all its arrivals are made. Each of them counts once."""
        counts = BarrierCounts(number)
        for arrival in self.members(assignment, number):
            counts = counts.after(1 << arrival.thread, 1, arrival.record.count)
        return counts

    def exited(self, assignment: Generations, number: int) -> int:
        """The threads that have exited without arriving: in this generation or, before they exit, in a later one."""
        return self.threads.exited & ~mask_of(
            arrival.thread for arrival in self.arrives if assignment[arrival.event] >= number
        )

    def complete(self, assignment: Generations, number: int) -> bool:
        """True if a generation is full, or if it is for all threads of its domain and every other has exited."""
        return self.generation(assignment, number).complete(self.threads.all, self.exited(assignment, number))

    def awaited(self, assignment: Generations, wait: HalfEvent) -> int | None:
        """The generation that a wait half waits for: that of its instruction, or in a cluster the one of its number."""
        if self.barrier.domain in BETWEEN_GRIDS:
            return 0
        if self.barrier.domain is Domain.CLUSTER:
            earlier = [other for other in self.waits if other.thread == wait.thread and other.event < wait.event]
            return len(earlier)
        own = [other for other in self.arrives if (other.thread, other.instruction) == (wait.thread, wait.instruction)]
        return assignment[own[0].event] if own else None

    # ---- who is released -------------------------------------------------------------------------------------

    def released(self, assignment: Generations, waiting: Sequence[WaitsFor]) -> bool:
        """True if all waits that ended wait for a complete generation, and those that never end do not."""
        for wait in self.waits if self.barrier.domain is not Domain.PAIR else ():
            number = self.awaited(assignment, wait)
            if number is None or not self.complete(assignment, number):
                return False
        for stuck in waiting:
            number = stuck.generation if stuck.arrive is None else assignment.get(stuck.arrive)
            if number is not None and self.complete(assignment, number):
                return False
        return True

    def exits(self, assignment: Generations) -> list[tuple[int, int]]:
        """(thread, event): that wait, which `released` lets end, is released by the exit of that thread, which does not
        arrive: exits complete a generation without a count only.
        """
        if self.barrier.domain in (*BETWEEN_GRIDS, *OF_TENSOR_MEMORY):
            return []
        pairs = []
        for wait in self.waits:
            number = self.awaited(assignment, wait)
            if number is None:
                continue
            if self.generation(assignment, number).needed is None:
                pairs += [(thread, wait.event) for thread in bits(self.exited(assignment, number))]
        return pairs

    def text(self, assignment: Generations, waiting: WaitsFor) -> str:
        """What a thread waits for that waits for ever."""
        if self.barrier.domain is Domain.LAUNCH:
            grid, cta = self.barrier.key
            return f"{self.barrier.text}: CTA {cta} of grid {grid} neither launches nor ends"
        if self.barrier.domain is Domain.COLUMNS:
            return f"{self.barrier.text}: not as many are left as the alloc asks for"
        number = waiting.generation if waiting.arrive is None else assignment[waiting.arrive]
        generation = self.generation(assignment, number or 0)
        gone = self.exited(assignment, number or 0) if generation.needed is None else 0
        came = generation.arrived + gone.bit_count()
        return f"{self.barrier.text}: {came} of {generation.size(self.threads.all)} arrivals"


def barriers_of(
    lowered: LoweredTest,
    traces: Sequence[Trace],
    halves: Sequence[HalfEvent],
    waiting: Sequence[tuple[BarrierId, WaitsFor]],
) -> dict[BarrierId, BarrierUses]:
    """The barriers that an execution uses."""
    halves_of: dict[BarrierId, list[HalfEvent]] = {barrier: [] for barrier, _ in waiting}
    for half in halves:
        halves_of.setdefault(half.record.barrier, []).append(half)
    return {
        barrier: BarrierUses(barrier, members, ThreadsOf.barrier(lowered, traces, barrier))
        for barrier, members in halves_of.items()
    }


def meetings(
    barriers: dict[BarrierId, BarrierUses], halves: Sequence[HalfEvent], waiting: Sequence[tuple[BarrierId, WaitsFor]]
) -> Iterator[Meeting]:
    """Every way in which all halves can meet."""
    options = []
    for barrier, uses in barriers.items():
        stuck = [who for where, who in waiting if where == barrier]
        options.append([chosen for chosen in uses.assignments() if uses.released(chosen, stuck)])
    for choice in product(*options):
        meeting = meet(list(barriers.values()), choice)
        exits = [pair for uses, chosen in zip(barriers.values(), choice, strict=True) for pair in uses.exits(chosen)]
        if _can_end(halves, meeting, exits):
            yield meeting


def meet(barriers: Sequence[BarrierUses], choice: Sequence[Generations]) -> Meeting:
    """What follows from generations."""
    meeting = Meeting({}, [], [], [])
    for uses, chosen in zip(barriers, choice, strict=True):
        meeting.generations.update(chosen)
        if uses.barrier.domain in OF_TENSOR_MEMORY:
            continue
        for wait in uses.waits:
            number = uses.awaited(chosen, wait)
            meeting.syncbar.extend(
                (arrive.event, wait.event) for arrive in uses.arrives if chosen[arrive.event] == number
            )
        for first in uses.arrives:
            for second in uses.arrives:
                if first is second:
                    continue
                if chosen[first.event] == chosen[second.event]:
                    meeting.samegen.append((first.event, second.event))
                elif chosen[first.event] < chosen[second.event]:
                    meeting.genbefore.append((first.event, second.event))
    return meeting


def mixed(barriers: Sequence[BarrierUses]) -> list[tuple[int, int]]:
    """barmix: arrive halves on one barrier that ask for different counts, or of which only one belongs to a .red."""
    return [
        (first.event, second.event)
        for uses in barriers
        if uses.barrier.domain not in (*BETWEEN_GRIDS, *OF_TENSOR_MEMORY)
        for first in uses.arrives
        for second in uses.arrives
        if first is not second
        and (first.record.count, first.record.reduces) != (second.record.count, second.record.reduces)
    ]


def _can_end(halves: Sequence[HalfEvent], meeting: Meeting, exits: Sequence[tuple[int, int]]) -> bool:
    """True if there is an order of the halves in which every wait can end.

    A wait ends after the arrivals that it waits for and after the exits of threads that do not arrive. The arrivals of
    a generation come after those of earlier generations.
    """
    thread = {half.event: half.thread for half in halves}
    after: dict[int, set[int]] = {half.event: set() for half in halves}
    for first in halves:
        for second in halves:
            if first.thread == second.thread and first.event < second.event:
                after[first.event].add(second.event)
    for a, b in (*meeting.syncbar, *meeting.genbefore):
        if thread[a] != thread[b]:
            after[a].add(b)
    for gone, wait in exits:
        for half in halves:
            if half.thread == gone and thread[wait] != gone:
                after[half.event].add(wait)
    return not has_cycle(after)


def reductions_agree(
    contributions: Sequence[tuple[int, Contribution]], barriers: dict[BarrierId, BarrierUses], meeting: Meeting
) -> bool:
    """True if what each thread took from a barrier reduction is the combination of what its generation put in.

    `contributions`: each with the event of its arrive half.
    """
    values = {event: contribution.value for event, contribution in contributions}
    for event, contribution in contributions:
        number = meeting.generations[event]
        home = next(b for b in barriers.values() if any(arrive.event == event for arrive in b.arrives))
        inputs = [values.get(arrive.event, 0) for arrive in home.arrives if meeting.generations[arrive.event] == number]
        if contribution.result != combined(contribution.op, inputs):
            return False
    return True


def combined(op: str, values: Sequence[int]) -> int:
    """barrier.cta.red over predicates: how many are true (popc), whether all are (and), whether any is (or)."""
    true = sum(1 for value in values if value)
    match op:
        case "popc":
            return true
        case "and":
            return int(true == len(values))
        case "or":
            return int(true > 0)
    raise InternalError(f"no barrier reduction '{op}'")
