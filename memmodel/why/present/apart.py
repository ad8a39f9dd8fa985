"""Synchronization that is there and does not order two accesses: it is not about one thing, or in the wrong place.

In: an execution, two accesses of two threads. Out: `Apart`, `Misplaced`. Settled here: a release and an acquire are
apart only if no release of the first thread is about what an acquire of the second one is about. What orders other
accesses, or would wait for itself elsewhere, stands where it has to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from memmodel.base.labels import Access, Action, Barrier, Domain, Fence, Half, Mbarrier, Side, Signal, scope_of
from memmodel.base.rows import bits, pairs_of
from memmodel.concrete.execution import Execution
from memmodel.concrete.records import AccessRecord, BarrierRecord, ObjectRecord
from memmodel.ptx.vocabulary import Sem
from memmodel.why.flow import Between, Flow

RELEASES = (Sem.RELEASE, Sem.ACQ_REL, Sem.SC)
ACQUIRES = (Sem.ACQUIRE, Sem.ACQ_REL, Sem.SC)


Thing = tuple[Any, ...]
"""An object, a barrier, or the bytes of a location, each with its instance, its first byte and its end."""


NAME = "name"
"""What two accesses of one location share that observe each other."""


@dataclass(frozen=True, slots=True)
class Apart:
    """The two events. `what`: what they would have to share. `overlap`: they share a part of it."""

    release: int
    acquire: int
    what: str
    overlap: bool = False


def apart(execution: Execution, flow: Flow, first: int, second: int) -> Apart | None:
    """A release after `first` and an acquire before `second` that are about two things of one kind."""
    if flow.in_po(first) != first or flow.in_po(second) != second or flow.thread(first) == flow.thread(second):
        return None
    releases = list(_flags(execution, first, after=True))
    acquires = list(_flags(execution, second, after=False))
    same = [(a, b) for a, kind, key in releases for b, its, other in acquires if (kind, key) == (its, other)]
    if same and all(execution.events[a].point.name != execution.events[b].point.name for a, b in same):
        return Apart(*same[0], NAME)
    other_name = _by_another_name(execution, releases, second)
    if other_name is not None and not same:
        return other_name
    for what in ("location", "mbarrier object", "barrier"):
        mine = [(event, key) for event, kind, key in releases if kind == what]
        its = [(event, key) for event, kind, key in acquires if kind == what]
        if mine and its and not {key for _, key in mine} & {key for _, key in its}:
            pairs = [(a, b, _overlap(what, thing, other)) for a, thing in mine for b, other in its]
            release, acquire, overlap = max(pairs, key=lambda pair: pair[2])
            by_others = partial(_used_elsewhere, execution, (first, second))
            passed_on = any(by_others(key, after=False) for _, key in mine)
            if what == "location":  # an object or barrier needs the arrivals of others in any case
                passed_on |= any(by_others(key, after=True) for _, key in its)
            if not passed_on:
                return Apart(release, acquire, what, overlap)
    return None


def _by_another_name(execution: Execution, releases: list[tuple[int, str, Thing]], second: int) -> Apart | None:
    """A release whose value a relaxed load before the second access reads by another name."""
    po, reads_from, events = execution.relation("po"), execution.relation("rf"), execution.events
    for release, kind, _ in releases:
        reads = bits(reads_from[release]) if kind == "location" else []
        name = events[release].point.name
        read = next((n for n in reads if po[n] >> second & 1 and events[n].point.name != name), None)
        if read is not None:
            return Apart(release, read, NAME)
    return None


def in_two_sizes(execution: Execution, first: int, second: int) -> Apart | None:
    """Two strong scalar accesses themselves, where they are of two sizes: in one size they would not race."""
    things: list[Thing] = []
    for number in (first, second):
        event, label = execution.events[number], execution.events[number].label
        record, cell = execution.frame.record_of(event), event.point.cell
        if not isinstance(label, Access) or label.sem is Sem.WEAK or label.asynchronous or cell is None:
            return None
        extents = record.footprint.extents if isinstance(record, AccessRecord) else ()
        things.append(tuple((it.instance, it.first, it.end) for it in extents if it.instance == cell.instance))
    return Apart(first, second, "location", True) if things[0] != things[1] and _overlap("location", *things) else None


@dataclass(frozen=True, slots=True)
class ThreadSide:
    """One side of a hand-over, as far as a thread has it. `event`: the release or the acquire.

    `fence`: one that would, but no strong write follows it, or no strong read stands before it.
    """

    event: int | None = None
    fence: int | None = None


def hand_over(execution: Execution, flow: Flow, event: int, other: int, *, after: bool) -> ThreadSide:
    """What a thread releases with after an event, or acquires with before it, by way of memory, the nearest to it; an
    arrival on an mbarrier object is a release.

    It reaches the thread of `other`, and no third thread uses it.
    """
    near, po, ends = flow.in_po(event), execution.relation("po"), (flow.in_po(event), flow.in_po(other))
    here, there = (execution.events[end].point.place for end in ends)

    def reaches(number: int) -> bool:
        scope = scope_of(execution.events[number].label)
        return here is None or there is None or scope is None or here.shares(scope, there)

    kinds = ("location", "mbarrier object") if after else ("location",)
    flags = ((n, thing) for n, what, thing in _flags(execution, near, after=after) if what in kinds and reaches(n))
    own = execution.frame.record_of(execution.events[other])
    if isinstance(own, ObjectRecord):  # order of what is done to an object does not come from a wait for it
        flags = ((n, thing) for n, thing in flags if thing != (own.object,))
    events = [n for n, thing in flags if not _used_elsewhere(execution, ends, thing, after=not after)]
    wanted = RELEASES if after else ACQUIRES
    others = bits(po[near]) if after else [n for n, row in enumerate(po) if row >> near & 1]
    labels = ((n, execution.events[n].label) for n in others)
    fences = [n for n, label in labels if isinstance(label, Fence) and label.sem in wanted and reaches(n)]

    def nearest(numbers: list[int]) -> int | None:
        in_order = sorted(numbers, key=lambda n: execution.events[n].point.order or 0, reverse=not after)
        return in_order[0] if in_order else None

    return ThreadSide(nearest(events), nearest(fences))


def synchronizes(execution: Execution, link: Between) -> bool:
    """True of a link that releases and acquires by itself."""
    first, second = execution.events[link.first].label, execution.events[link.second].label
    if isinstance(first, Access) and isinstance(second, Access):
        return first.sem in RELEASES and second.sem in ACQUIRES
    if isinstance(first, Barrier) and first.domain is Domain.LAUNCH:
        return False
    if isinstance(first, Signal):
        return first.action is Action.ARRIVE
    return isinstance(first, Barrier | Mbarrier) and isinstance(second, Barrier | Mbarrier)


@dataclass(frozen=True, slots=True)
class Misplaced:
    """An event that stands before (`early`) or after `beside`, and should stand on the other side of it.

    `passes_on`: it tells a third thread's news before that thread has them.
    """

    event: int
    beside: int
    early: bool
    passes_on: bool = False


def misplaced(execution: Execution, flow: Flow, first: int, second: int) -> Misplaced | None:
    """The one event that stands in the wrong place between two accesses, given by events in program order."""
    search = _WrongPlaces(execution, flow, first, second)
    passed_on = list(dict.fromkeys(search.passed_on_early()))
    if len(passed_on) == 1:
        return passed_on[0]
    beside = list(dict.fromkeys(search.beside_the_accesses()))
    return beside[0] if len(beside) == 1 else None


def siblings_seen(execution: Execution, first: int, second: int) -> tuple[tuple[int, int], ...]:
    """Parts of one instruction, of which one is an access of the two and another one the flag that tells of it: the
    first access and what the other thread reads of its instruction, the second access and what its thread reads."""
    reads_from, po = execution.relation("rf"), execution.relation("po")
    parts, others = _parts(execution, first), _parts(execution, second)
    after = po[first] | sum(1 << part for part in parts)
    before = [n for n, row in enumerate(po) if row >> second & 1] + others
    seen = [(flag, read) for read in before for flag in bits(after) if reads_from[flag] >> read & 1]
    flag_told = next((flag for flag, _ in seen if flag in parts), None)
    reads = next((read for _, read in seen if read in others), None)
    return tuple((access, part) for access, part in ((first, flag_told), (second, reads)) if part is not None)


def _parts(execution: Execution, event: int) -> list[int]:
    """The other accesses of the instruction of an access, as to the elements of a vector; none of an atomic one."""
    record, own = execution.frame.record_of(execution.events[event]), execution.events[event].point
    if not isinstance(record, AccessRecord) or own.issue is not None:
        return []
    return [
        number
        for number, other in enumerate(execution.events)
        if other.point.thread == own.thread
        and isinstance(label := other.label, Access)
        and not label.rmw
        and other.point.operation != own.operation
        and isinstance(mine := execution.frame.record_of(other), AccessRecord)
        and mine.instruction == record.instruction
    ]


def arrives_only(execution: Execution, first: int, second: int) -> int | None:
    """The arrive at a barrier of the CTA by the thread of the second access, before it and without a wait, where that
    of the first comes to the barrier after its access; None without one."""
    po = execution.relation("po")
    after = [record.barrier for n in bits(po[first]) if (record := _at_barrier(execution, n)) is not None]
    before = [n for n, row in enumerate(po) if row >> second & 1]
    mine = [(n, record) for n in before if (record := _at_barrier(execution, n)) is not None]
    waits = [record.barrier for _, record in mine if record.half is Half.WAIT]
    return next((n for n, record in mine if record.barrier in after and record.barrier not in waits), None)


def heard_late(execution: Execution, first: int, second: int) -> tuple[int, int] | None:
    """The one strong read behind the second access, by its thread, of a strong write behind the first one, by its
    thread; None without one, or with several."""
    po, labels = execution.relation("po"), [event.label for event in execution.events]
    heard = [
        (write, read)
        for write, read in pairs_of(execution.relation("rf"))
        if po[first] >> write & 1
        and po[second] >> read & 1
        and all(isinstance(label := labels[n], Access) and label.sem is not Sem.WEAK for n in (write, read))
    ]
    return heard[0] if len(heard) == 1 else None


def common_barrier(execution: Execution, flow: Flow, first: int, second: int | None) -> str:
    """The barrier at which the threads of two events may meet, in words; empty for threads of two clusters."""
    events = [execution.events[flow.in_po(event)] for event in (first, second) if event is not None]
    places = [event.point.place for event in events if event.point.place is not None]
    if len(places) < len(events):
        return ""
    if len({place.cta_id for place in places}) == 1:
        return "a barrier"
    return "a barrier of the cluster" if len({place.cluster_id for place in places}) == 1 else ""


def two_generations(execution: Execution, first: int, second: int) -> tuple[int, int] | None:
    """An arrival after the first access and a wait before the second one at one barrier of the CTA, of generations that
    other threads complete; None where two threads meet, or have met in the generation of that wait."""
    po, meets = execution.relation("po"), execution.relation("syncbar")
    records = {n: record for n in range(len(po)) if (record := _at_barrier(execution, n)) is not None}
    arrivals = [(n, it.barrier) for n, it in records.items() if po[first] >> n & 1 and it.half is Half.ARRIVE]
    waits = [(n, it.barrier) for n, it in records.items() if po[n] >> second & 1 and it.half is Half.WAIT]
    same = [(a, b) for a, barrier in arrivals for b, other in waits if barrier == other]
    if len(same) != 1:
        return None
    arrival, wait = same[0]
    mine = (n for n in records if po[n] >> arrival & 1 or n == arrival)
    return None if any(meets[n] >> wait & 1 for n in mine) else same[0]


def warp_barrier(execution: Execution, first: int, second: int) -> int | None:
    """A barrier of the lanes of a warp behind the first access, where one of another warp stands before the second."""
    po, meets = execution.relation("po"), execution.relation("syncbar")
    records = [execution.frame.record_of(event) for event in execution.events]
    lanes = [n for n, it in enumerate(records) if isinstance(it, BarrierRecord) and it.barrier.domain is Domain.WARP]
    behind, before = ([n for n in lanes if po[first] >> n & 1], [n for n in lanes if po[n] >> second & 1])
    if not behind or not before or any(meets[n] >> other & 1 for n in behind for other in before):
        return None
    return behind[0]


def _at_barrier(execution: Execution, number: int) -> BarrierRecord | None:
    record = execution.frame.record_of(execution.events[number])
    return record if isinstance(record, BarrierRecord) and record.barrier.domain is Domain.CTA else None


def grids_that_do_not_wait(execution: Execution, flow: Flow, first: int, second: int | None) -> list[int]:
    """The threads of the grids between those of two events that do not wait for the grid before theirs, where that of
    the second event waits for the one before its own."""
    if second is None:
        return []
    start, end = (flow.in_po(event) for event in (first, second))
    waits = [n for n, event in enumerate(execution.events) if _waits_for_grid(event.label)]
    grids = [place.grid for n in (start, end) if (place := execution.events[n].point.place) is not None]
    threads = execution.frame.lowered.test.threads
    if len(grids) < 2 or not any(execution.relation("po")[n] >> end & 1 for n in waits):
        return []
    waiting = {flow.thread(n) for n in waits}
    return [n for n, thread in enumerate(threads) if grids[0] < thread.place.grid < grids[1] and n not in waiting]


def _waits_for_grid(label: object) -> bool:
    return isinstance(label, Barrier) and label.domain is Domain.GRID and label.half is Half.WAIT


class _WrongPlaces:
    """`places`: the cells of the two accesses."""

    def __init__(self, execution: Execution, flow: Flow, first: int, second: int) -> None:
        self.execution, self.flow, self.po = execution, flow, execution.relation("po")
        self.first, self.second = first, second
        self.links = [link for link in flow.links if synchronizes(execution, link)]
        self.ends = flow.thread(first), flow.thread(second)
        self.places = {e.point.cell for n, e in enumerate(execution.events) if flow.in_po(n) in (first, second)} - {
            None
        }

    def _precedes(self, a: int, b: int) -> bool:
        return bool(self.po[a] >> b & 1)

    def passed_on_early(self) -> Iterator[Misplaced]:
        """The hand-overs of a third thread to the second that come before the third has seen the first."""
        for sees in self.links:
            if self.flow.thread(sees.first) != self.ends[0] or not self._precedes(self.first, sees.first):
                continue
            for tells in self.links:
                if self.flow.thread(tells.second) != self.ends[1] or not self._precedes(tells.second, self.second):
                    continue
                third = self.flow.thread(tells.first) not in self.ends and self._precedes(tells.first, sees.second)
                if third and not self._orders_others(tells.first):
                    yield Misplaced(tells.first, sees.second, early=True, passes_on=True)

    def beside_the_accesses(self) -> Iterator[Misplaced]:
        """One side of a link between the two threads that stands on the wrong side of its access."""
        for link in self.links:
            if self.ends != (self.flow.thread(link.first), self.flow.thread(link.second)):
                continue
            tells = self.flow.in_po(link.first)
            released, acquired = self._precedes(self.first, tells), self._precedes(link.second, self.second)
            if not released and acquired and self._movable(tells, self.first):
                yield Misplaced(tells, self.first, early=True)
            if released and not acquired and self._movable(link.second, self.second):
                yield Misplaced(link.second, self.second, early=False)

    def _movable(self, event: int, access: int) -> bool:
        """True if an event may stand on the other side of an access: it is no part of it, the other half of its barrier
        is not between the two, and it orders no others where it stands."""
        if self._instruction(event) == self._instruction(access):
            return False
        label = self.execution.events[event].label
        domain = label.domain if isinstance(label, Barrier) else None
        between = [
            number
            for number, other in enumerate(self.execution.events)
            if isinstance(other.label, Barrier)
            and other.label.domain is domain
            and self._instruction(number) != self._instruction(event)
            and (
                (self._precedes(event, number) and self._precedes(number, access))
                or (self._precedes(access, number) and self._precedes(number, event))
            )
        ]
        return not between and (self._only_tells(event, access) or not self._orders_others(event))

    def _only_tells(self, event: int, access: int) -> bool:
        """True of an event on which no wait of its thread before an access depends: what it tells others may be told
        behind that, and covers what it did before."""
        if any(link.second == event for link in self.links) or not self._precedes(event, access):
            return False
        waits = (link.second for link in self.links if self._precedes(event, link.second))
        told = [link.second for link in self.links if self.flow.in_po(link.first) == event]
        return not any(
            self._precedes(wait, access) and any(self.flow.leads(n, wait) for n in told) for wait in waits
        ) and not isinstance(self.execution.events[event].label, Barrier)

    def _orders_others(self, event: int) -> bool:
        """True if what stands at an event orders other accesses: of a barrier that the thread arrives at and waits for
        at once, to any place, otherwise others than the two to their place, by way of the links that it makes."""
        instruction = self._instruction(event)
        halves = [n for n in range(self.flow.count) if self._instruction(n) == instruction]
        accesses = {
            number: other.point.cell
            for number, other in enumerate(self.execution.events)
            if self.flow.thread(number) is not None and self.flow.is_memory(number)
            if len(halves) > 1
            or (other.point.cell in self.places and self.flow.in_po(number) not in (self.first, self.second))
        }
        told = [link.second for link in self.links if self.flow.in_po(link.first) == event]
        heard = [link.first for link in self.links if link.second == event]
        sources = heard if heard and not told and len(halves) == 1 else halves
        targets = told if told and not heard and len(halves) == 1 else halves
        before = [access for access in accesses if any(self.flow.leads(access, source) for source in sources)]
        later = [access for access in accesses if any(self.flow.leads(target, access) for target in targets)]
        written = self.execution.set("W")
        return any(
            (written >> a | written >> b) & 1 and self.flow.thread(a) != self.flow.thread(b)
            for a in before
            for b in later
            if accesses[a] == accesses[b]
        )

    def _instruction(self, event: int) -> tuple[int | None, int] | None:
        """The thread of an event, and the number of its instruction among those that the thread executes."""
        record = self.execution.frame.record_of(self.execution.events[event])
        return None if record is None else (self.flow.thread(event), record.instruction)


def _used_elsewhere(execution: Execution, ends: tuple[int, int], thing: Thing, *, after: bool) -> bool:
    """True if a third thread reads or waits for `thing`, and may pass on what it observes; `after`: or tells by it."""
    threads = {execution.events[end].point.thread for end in ends}
    for event in execution.events:
        if event.point.thread is None or event.point.thread in threads:
            continue
        kind_and_thing = _thing(execution, event.point.event, after=after)
        if kind_and_thing is not None and kind_and_thing[1] == thing:
            return True
    return False


def _thing(execution: Execution, number: int, *, after: bool) -> tuple[str, Thing] | None:
    """The thing that an event hands over by: what it writes or arrives on, or (not `after`) reads or waits for, with
    its kind.
    """
    label, record = execution.events[number].label, execution.frame.record_of(execution.events[number])
    match label, record:
        case Access(side=side), AccessRecord(footprint=footprint) if side is (Side.WRITE if after else Side.READ):
            cell = execution.events[number].point.cell
            mine = (it for it in footprint.extents if cell is None or it.instance == cell.instance)
            return "location", tuple((extent.instance, extent.first, extent.end) for extent in mine)
        case Mbarrier(action=action), ObjectRecord(object=cell) if action is (Action.ARRIVE if after else Action.TEST):
            return "mbarrier object", (cell,)
        case Barrier(half=half, domain=Domain.CTA), BarrierRecord(barrier=barrier):
            return ("barrier", (barrier,)) if half is (Half.ARRIVE if after else Half.WAIT) else None
    return None


def _overlap(what: str, thing: Thing, other: Thing) -> bool:
    """True if two locations that are not one share bytes."""
    return what == "location" and any(a[0] == b[0] and a[1] < b[2] and b[1] < a[2] for a in thing for b in other)


def _flags(execution: Execution, event: int, *, after: bool) -> Iterator[tuple[int, str, Thing]]:
    """What a thread releases after an event, or acquires before it: the event, the kind of thing, the thing."""
    po = execution.relation("po")
    others = bits(po[event]) if after else [n for n, row in enumerate(po) if row >> event & 1]
    wanted = RELEASES if after else ACQUIRES
    for number in others:
        kind_and_thing = _thing(execution, number, after=after)
        if kind_and_thing is None:
            continue
        label, record = execution.events[number].label, execution.frame.record_of(execution.events[number])
        if isinstance(label, Access):
            between = [n for n in others if (po[n] >> number if after else po[number] >> n) & 1]
            labels = [execution.events[n].label for n in between]
            fenced = any(isinstance(between_label, Fence) and between_label.sem in wanted for between_label in labels)
            if label.sem not in wanted and not (fenced and label.sem is not Sem.WEAK):
                continue
        if not after and isinstance(record, ObjectRecord) and not record.done:
            continue
        yield number, *kind_and_thing
