"""What of a run a hang needs: who waits for ever, what has come to the barrier or to the phase, who else is held up.

In: RunJudge, KernelFinding. Out: `CutStory`. Settled here: of arrivals by one instruction in one phase or generation
one is kept, and of those that did not come one. A thread that came in the phase before, and waits for ever elsewhere,
is told with that wait, and what it did then stands behind it. Source: PTX ISA "mbarrier", "bar, barrier",
"barrier.cluster", "bar.warp.sync".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from memmodel.base.labels import Access, Action, Allocates, Allocation, Barrier, Domain, Half, Mbarrier, Side
from memmodel.base.points import BarrierId
from memmodel.kernel.export.story import (
    COUNTED,
    CutStory,
    Deed,
    Lack,
    NotCut,
    action_of,
    add_deed,
    meet_in_clusters,
    tell_phase,
)
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.order.verdict import KernelFinding
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.objects import AwaitedPhase, ObjectStep
from memmodel.kernel.trace.stuck import StuckLanes
from memmodel.kernel.trace.threads import TraceThread

TOGETHER = ("shfl", "vote", "match", "redux", "elect")
"""Instructions with a member mask, whose lanes wait for one another as at bar.warp.sync."""
ALLOCATIONS = {
    "alloc": Allocation.ALLOC,
    "dealloc": Allocation.DEALLOC,
    "relinquish_alloc_permit": Allocation.RELINQUISH,
}
MISSED = 2
"""Phases by which a thread that waits by parity is late: it takes the present one for the one that it waits for."""


def hang(made: RunJudge, finding: KernelFinding, *, missed: bool = True, bare: bool = False) -> CutStory:
    """The story of a hang. `missed`: with the phases that a thread missed before it waits; `bare`: one wait, and what
    came to its phase, not where the others are held up.
    """
    at = finding.sides[0].instruction.number if finding.sides else -1
    first = next((one for one in made.run.stuck if one.at == at), None)
    if first is None:
        raise NotCut("nobody waits there where the run ends")
    told = _HangStory(made, finding, missed=missed and not bare, bare=bare)
    told.tell(first)
    return told.found


class _HangStory:
    """Tells one wait after the other."""

    def __init__(self, made: RunJudge, finding: KernelFinding, *, missed: bool, bare: bool) -> None:
        self.made, self.run, self.missed, self.bare = made, made.run, missed, bare
        self.found = CutStory(made, finding)
        self.stuck = {thread: one for one in made.run.stuck for thread in one.threads}
        self._waiting: list[StuckLanes] = []
        self._again: dict[int, TraceEvent] = {}
        """What threads would have done again, by what they did."""

    def tell(self, first: StuckLanes) -> None:
        """All that is needed for the lanes to wait for ever."""
        if first.awaits is not None and not first.awaits.live:
            # A test of an object that nothing initialises.
            self.found.asked, self.found.flag = "undefined", "undefined-mbarrier"
        self._waiting.append(first)
        known = set()
        for one in self._waiting:  # grows
            place = None if one.awaits is None else one.awaits[:2]
            if (key := (one.at, place, one.awaits is None and self.run.threads[one.threads[0]].place.cta_id)) in known:
                continue
            known.add(key)
            self._wait(one)
        meet_in_clusters(self.found, exits=True)
        for deeds in self.found.threads.values():
            deeds.sort(key=lambda one: one.order)

    def _wait(self, one: StuckLanes) -> None:
        thread = self.run.threads[self._of(one.threads)]
        instruction = self.made.body[one.at]
        words, last = instruction.words, thread.events[-1] if thread.events else None
        if one.awaits is not None:
            self._test(thread, one.at, one.awaits)
        elif words[:2] == ("barrier", "cluster") and "wait" in words:
            arrived = (event for event in reversed(thread.events) if _domain(event) is Domain.CLUSTER)
            if (meeting := next(arrived, None)) is not None:
                self._do(meeting)
                wait = Barrier(Half.WAIT, Domain.CLUSTER)
                self._made(thread, one.at, replace(meeting, at=one.at, label=wait))
                self._meet(meeting, thread)
        elif last is not None and last.at == one.at and isinstance(last.label, Barrier):
            self._do(last)
            self._meet(last, thread)
        elif words[0] in TOGETHER and "sync" in words:
            label = Barrier(Half.ARRIVE, Domain.WARP)
            barrier = BarrierId(Domain.WARP, (thread.place.cta_id, thread.warp), (one.at,))
            self._made(thread, one.at, event := TraceEvent(thread.number, 0, one.at, label, barrier=barrier))
            self._meet(event, thread)
        elif words[0] == "tcgen05" and words[1] in ALLOCATIONS and "cta_group::2" in words:
            self._pair(thread, one.at, ALLOCATIONS[words[1]])
        elif last is not None and last.at == one.at and _reads(last):
            self._poll(last)
        else:
            raise NotCut(f"it waits at {instruction.opcode}, which waits for nothing in a test")

    def _of(self, threads: Iterable[int]) -> int:
        """The thread of some that do the same: one that is told of already, if any is."""
        some = list(threads)
        return next((one for one in some if one in self.found.threads), some[0])

    def _do(self, event: TraceEvent) -> None:
        whole = event if event.issue is None else event.issue
        add_deed(self.found, whole.thread, Deed(self.made.body[whole.at], float(whole.order or 0), whole))

    def _made(self, thread: TraceThread, at: int, event: TraceEvent, later: int = 0) -> None:
        """Something that the thread did not come to do."""
        event.order = len(thread.events) + later
        add_deed(self.found, thread.number, Deed(self.made.body[at], float(event.order), event))

    # ---- mbarrier objects ------------------------------------------------------------------------------------

    def _test(self, thread: TraceThread, at: int, awaits: AwaitedPhase) -> None:
        """A test that never returns true, what came to its phase, and what did not."""
        place = awaits.block, awaits.first
        log = self.run.objects.get(place, []) if awaits.live else []
        steps = [step for step in log if step.life == log[-1].life]
        event = TraceEvent(thread.number, 0, at, Mbarrier(Action.TEST), *place, 8)
        self.found.phases[id(event)] = awaits.phase
        self._made(thread, at, event)
        seen = max((step.seen for step in steps if not step.update and step.event.thread == thread.number), default=0)
        if self.missed and awaits.phase - seen >= MISSED and (awaits.phase - seen) % 2 == 0:
            self.found.joined[place] = awaits.phase - MISSED
            for phase in range(awaits.phase - MISSED, awaits.phase):
                tell_phase(self.found, steps, phase)
        tell_phase(self.found, steps, awaits.phase)
        later = self._later(steps, awaits, thread) if not self.bare else []
        actions = {action_of(event) for one in later for event in (one, *one.signals)}
        lacks = int(awaits.pending > 0 and Action.ARRIVE not in actions)
        tx = 0 if Action.COMPLETE_TX in actions else (awaits.tx > 0) - (awaits.tx < 0)
        self.found.lacks[(*place, awaits.phase)] = Lack(lacks, tx, live=awaits.live)

    def _later(self, steps: list[ObjectStep], awaits: AwaitedPhase, thread: TraceThread) -> list[TraceEvent]:
        """What came to the phase before from threads that wait for ever elsewhere, as if they had gone on."""
        came = {(step.event.thread, step.event.at) for step in steps if step.update and step.before == awaits.phase}
        found: dict[int, TraceEvent] = {}
        for step in steps:
            event = step.event
            other = self.stuck.get(event.thread)
            before = step.update and step.before == awaits.phase - 1 and action_of(event) in COUNTED
            same = other is not None and other.awaits is not None and other.awaits[:2] == awaits[:2]
            if before and other is not None and not same and (event.thread, event.at) not in came:
                found.setdefault(event.at, event)
        made = []
        for event in found.values():
            whole = event if event.issue is None else event.issue
            again = self._again.get(id(whole))
            if again is None:
                again = self._again[id(whole)] = replace(whole, signals=())
                self._made(self.run.threads[whole.thread], whole.at, again, later=1 + (whole.order or 0))
                self._waiting.append(self.stuck[whole.thread])
            if whole is not event:
                again.signals += (replace(event),)
                self.found.signals.append(again.signals[-1])
            self.found.phases[id(again.signals[-1] if again.signals else again)] = awaits.phase
            made.append(again)
        return made

    # ---- words that are polled -------------------------------------------------------------------------------

    def _poll(self, last: TraceEvent) -> None:
        """A load that finds the same value again and again, and the store that left it."""
        stores = (one for thread in self.run.threads for one in thread.strong() if _writes(one, last))
        for one in (max(stores, key=lambda one: one.time, default=None), last):
            if one is not None:
                self._do(one if one.partner is None else min(one, one.partner, key=lambda each: each.order or 0))
        self.found.polls.add(id(last))

    # ---- pairs of CTAs ---------------------------------------------------------------------------------------

    def _pair(self, thread: TraceThread, at: int, what: Allocation) -> None:
        """What CTAs of a pair do together, and the peer CTA does not: somebody there is held up, or nobody is left."""
        event = TraceEvent(thread.number, 0, at, Allocates(what, 2))
        self._made(thread, at, event)
        mine, rank = thread.place, thread.place.cta ^ 1
        there = [one for one in self.run.threads if one.place.cluster == mine.cluster and one.place.cta == rank]
        if what is Allocation.DEALLOC:
            both = [one for each in (thread, *there) for one in each.events if isinstance(one.label, Allocates)]
            first = {self.run.threads[one.thread].cta: one for one in reversed(both) if one.owners}
            for one in first.values():
                self._do(one)
        absent = next((one for one in there if one.number in self.stuck), None)
        if absent is not None and not self.bare:
            self._waiting.append(replace_lanes(self.stuck[absent.number], absent.number))
        elif there:
            self.found.threads.setdefault(there[0].number, [])

    # ---- barriers --------------------------------------------------------------------------------------------

    def _meet(self, meeting: TraceEvent, thread: TraceThread) -> None:
        """Who came to a generation of a barrier, and where those are held up who did not."""
        there = {event.thread: event for event in self._arrivals(meeting, meeting.generation)}
        came: dict[int, dict[int, TraceEvent]] = {}
        for number, event in there.items():
            came.setdefault(event.at, {})[number] = event
        for events in came.values():
            self._do(events[self._of([*([thread.number] if thread.number in events else []), *events])])
        before = {event.thread: event for event in self._arrivals(meeting, meeting.generation - 1)}
        absent: dict[object, int] = {}
        for number, one in self.stuck.items() if not self.bare else ():
            away = number not in there and self.stuck.get(thread.number) is not one
            if away and self._belongs(number, meeting, thread) and (meeting.count is None or number in before):
                absent.setdefault((one.at, before[number].at if number in before else None), number)
        if self.bare and _domain(meeting) is Domain.CLUSTER:  # somebody who never comes
            some = (number for number in self.stuck if number not in there and self._belongs(number, meeting, thread))
            self.found.threads.setdefault(next(some, thread.number), [])
        later = 0
        for number in absent.values():
            self._waiting.append(replace_lanes(self.stuck[number], number))
            if number in before:
                again = replace(before[number], generation=meeting.generation)
                self._made(self.run.threads[number], again.at, again, later=1 + (again.order or 0))
                later += 1
        assert meeting.barrier is not None
        self.found.absent[meeting.barrier, meeting.generation] = 0 if later else 1

    def _arrivals(self, meeting: TraceEvent, generation: int) -> Iterator[TraceEvent]:
        for thread in self.run.threads:
            for event in thread.events:
                if event.barrier == meeting.barrier and event.generation == generation and _arrives(event):
                    yield event

    def _belongs(self, number: int, meeting: TraceEvent, thread: TraceThread) -> bool:
        """Is a thread of the CTA, cluster or warp that meets?"""
        other, domain = self.run.threads[number], _domain(meeting)
        if domain is Domain.CLUSTER:
            return other.place.cluster_id == thread.place.cluster_id
        return other.cta == thread.cta and (domain is Domain.CTA or other.warp == thread.warp)


def replace_lanes(one: StuckLanes, thread: int) -> StuckLanes:
    """The same, with a thread of it in front."""
    return one._replace(threads=(thread, *one.threads))


def _reads(event: TraceEvent) -> bool:
    label = event.label
    return isinstance(label, Access) and label.side is Side.READ and event.partner is None


def _writes(event: TraceEvent, read: TraceEvent) -> bool:
    """Does an event leave what a later read finds?"""
    label = event.label
    same = event.block is read.block and event.first == read.first and event.time < read.time
    return same and isinstance(label, Access) and label.side is Side.WRITE


def _domain(event: TraceEvent) -> Domain | None:
    return event.label.domain if isinstance(event.label, Barrier) else None


def _arrives(event: TraceEvent) -> bool:
    return isinstance(event.label, Barrier) and event.label.half is Half.ARRIVE


__all__ = ["hang"]
