"""What a hang needs of a run: the threads that wait for ever, what has come to the barrier or the phase, and the other
threads that are blocked.

In: RunJudge, KernelFinding. Out: `FindingStory`. Settled here: of the arrivals by one instruction in one phase or
generation one is kept, and one of those that are missing. A thread that arrived in the phase before and is blocked
elsewhere is added with that wait; its missing arrival follows the wait. Source: PTX ISA "mbarrier", "bar, barrier",
"barrier.cluster", "bar.warp.sync".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from memmodel.base.labels import (
    Action,
    Allocates,
    Allocation,
    Barrier,
    Domain,
    Half,
    Mbarrier,
    is_read,
    is_write,
)
from memmodel.base.points import BarrierId
from memmodel.kernel.export.story import (
    COUNTED,
    FindingStory,
    Lack,
    NotExported,
    StoryInstruction,
    action_of,
    add_event,
    add_instruction,
    add_phase,
    first_half,
    meet_in_clusters,
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
"""Phases by which a thread that waits by parity is late: by its parity it cannot tell them apart."""


def hang(judge: RunJudge, finding: KernelFinding, *, missed: bool = True, bare: bool = False) -> FindingStory:
    """The story of a hang. `missed`: with the phases that a thread missed before it waits; `bare`: one wait, and what
    came to its phase, without the other blocked threads.
    """
    at = finding.sides[0].instruction.number if finding.sides else -1
    first = next((lanes for lanes in judge.run.stuck if lanes.at == at), None)
    if first is None:
        raise NotExported("nobody waits there where the run ends")
    hanging = _HangStory(judge, finding, missed=missed and not bare, bare=bare)
    hanging.tell(first)
    return hanging.story


class _HangStory:
    """Builds the story of a hang, one wait after the other."""

    def __init__(self, judge: RunJudge, finding: KernelFinding, *, missed: bool, bare: bool) -> None:
        self.judge, self.run, self.missed, self.bare = judge, judge.run, missed, bare
        self.story = FindingStory(judge, finding)
        self.stuck = {thread: lanes for lanes in judge.run.stuck for thread in lanes.threads}
        self._waiting: list[StuckLanes] = []
        self._again: dict[int, TraceEvent] = {}
        """The missing arrivals, by the arrivals that threads did make."""

    def tell(self, first: StuckLanes) -> None:
        """Add all that is needed for the lanes to wait for ever."""
        if first.awaits is not None and not first.awaits.live:
            # A test of an object that nothing initialises.
            self.story.asked, self.story.flag = "undefined", "undefined-mbarrier"
        self._waiting.append(first)
        known = set()
        for lanes in self._waiting:  # grows
            place = None if lanes.awaits is None else lanes.awaits[:2]
            if (
                key := (lanes.at, place, lanes.awaits is None and self.run.threads[lanes.threads[0]].place.cta_id)
            ) in known:
                continue
            known.add(key)
            self._wait(lanes)
        meet_in_clusters(self.story, exits=True)
        self.story.sort()

    def _wait(self, lanes: StuckLanes) -> None:
        thread = self.run.threads[self._of(lanes.threads)]
        instruction = self.judge.body[lanes.at]
        words, last = instruction.words, thread.events[-1] if thread.events else None
        if lanes.awaits is not None:
            self._test(thread, lanes.at, lanes.awaits)
        elif words[:2] == ("barrier", "cluster") and "wait" in words:
            arrived = (event for event in reversed(thread.events) if _domain(event) is Domain.CLUSTER)
            if (meeting := next(arrived, None)) is not None:
                add_event(self.story, meeting)
                wait = Barrier(Half.WAIT, Domain.CLUSTER)
                self._add_missing(thread, lanes.at, replace(meeting, at=lanes.at, label=wait))
                self._meet(meeting, thread)
            else:  # it has never arrived, and waits for itself
                barrier = BarrierId.of(Domain.CLUSTER, (0,), thread.place, thread.number)
                label = Barrier(Half.WAIT, Domain.CLUSTER)
                self._add_missing(thread, lanes.at, TraceEvent(thread.number, 0, lanes.at, label, barrier=barrier))
        elif last is not None and last.at == lanes.at and isinstance(last.label, Barrier):
            add_event(self.story, last)
            self._meet(last, thread)
        elif words[0] in TOGETHER and "sync" in words:
            label = Barrier(Half.ARRIVE, Domain.WARP)
            barrier = BarrierId(Domain.WARP, (thread.place.cta_id, thread.warp), (lanes.at,))
            self._add_missing(thread, lanes.at, event := TraceEvent(thread.number, 0, lanes.at, label, barrier=barrier))
            self._meet(event, thread)
        elif words[0] == "tcgen05" and words[1] in ALLOCATIONS and "cta_group::2" in words:
            self._pair(thread, lanes.at, ALLOCATIONS[words[1]])
        elif last is not None and last.at == lanes.at and _reads(last):
            self._poll(last)
        else:
            raise NotExported(f"it waits at {instruction.opcode}, which waits for nothing in a test")

    def _of(self, threads: Iterable[int]) -> int:
        """One of some threads that do the same, of the story if one is."""
        candidates = list(threads)
        return next((thread for thread in candidates if thread in self.story.threads), candidates[0])

    def _add_missing(self, thread: TraceThread, at: int, event: TraceEvent, later: int = 0) -> None:
        """Add an event that did not happen in the run."""
        event.order = len(thread.events) + later
        add_instruction(self.story, thread.number, StoryInstruction(self.judge.body[at], float(event.order), event))

    # ---- mbarrier objects ------------------------------------------------------------------------------------

    def _test(self, thread: TraceThread, at: int, awaits: AwaitedPhase) -> None:
        """Add a test that never returns true, what came to its phase, and what did not."""
        place = awaits.block, awaits.first
        log = self.run.objects.get(place, []) if awaits.live else []
        steps = [step for step in log if step.life == log[-1].life]
        event = TraceEvent(thread.number, 0, at, Mbarrier(Action.TEST), *place, 8)
        self.story.phases[id(event)] = awaits.phase
        self._add_missing(thread, at, event)
        seen = max(
            (step.seen_by_tests for step in steps if not step.update and step.event.thread == thread.number), default=0
        )
        if self.missed and awaits.phase - seen >= MISSED and (awaits.phase - seen) % 2 == 0:
            self.story.joined[place] = awaits.phase - MISSED
            for phase in range(awaits.phase - MISSED, awaits.phase):
                add_phase(self.story, steps, phase)
        add_phase(self.story, steps, awaits.phase)
        later = self._later(steps, awaits) if not self.bare else []
        actions = {action_of(event) for issue in later for event in (issue, *issue.signals)}
        lacks = int(awaits.pending > 0 and Action.ARRIVE not in actions)
        tx = 0 if Action.COMPLETE_TX in actions else (awaits.tx > 0) - (awaits.tx < 0)
        self.story.lacks[(*place, awaits.phase)] = Lack(lacks, tx, live=awaits.live)

    def _later(self, steps: list[ObjectStep], awaits: AwaitedPhase) -> list[TraceEvent]:
        """Add the arrivals of threads that are blocked elsewhere, as they made them in the phase before."""
        came = {(step.event.thread, step.event.at) for step in steps if step.update and step.before == awaits.phase}
        arrivals: dict[int, TraceEvent] = {}
        for step in steps:
            event = step.event
            other = self.stuck.get(event.thread)
            before = step.update and step.before == awaits.phase - 1 and action_of(event) in COUNTED
            same = other is not None and other.awaits is not None and other.awaits[:2] == awaits[:2]
            if before and other is not None and not same and (event.thread, event.at) not in came:
                arrivals.setdefault(event.at, event)
        repeated = []
        for event in arrivals.values():
            whole = event if event.issue is None else event.issue
            repeat = self._again.get(id(whole))
            if repeat is None:
                repeat = self._again[id(whole)] = replace(whole, signals=())
                self._add_missing(self.run.threads[whole.thread], whole.at, repeat, later=1 + (whole.order or 0))
                self._waiting.append(self.stuck[whole.thread])
            if whole is not event:
                repeat.signals += (replace(event),)
                self.story.signals.append(repeat.signals[-1])
            self.story.phases[id(repeat.signals[-1] if repeat.signals else repeat)] = awaits.phase
            repeated.append(repeat)
        return repeated

    # ---- words that are polled -------------------------------------------------------------------------------

    def _poll(self, last: TraceEvent) -> None:
        """Add a load that returns the same value in every round, and the store that it reads from."""
        stores = (store for thread in self.run.threads for store in thread.strong() if _writes(store, last))
        for store in (max(stores, key=lambda store: store.time, default=None), last):
            if store is not None:
                add_event(self.story, first_half(store))
        self.story.polls.add(id(last))

    # ---- pairs of CTAs ---------------------------------------------------------------------------------------

    def _pair(self, thread: TraceThread, at: int, what: Allocation) -> None:
        """Add an instruction that CTAs of a pair execute together and the peer CTA does not: a thread of the peer is
        blocked, or all have exited.
        """
        event = TraceEvent(thread.number, 0, at, Allocates(what, 2))
        self._add_missing(thread, at, event)
        mine, rank = thread.place, thread.place.cta ^ 1
        peers = [
            event_ for event_ in self.run.threads if event_.place.cluster == mine.cluster and event_.place.cta == rank
        ]
        if what is Allocation.DEALLOC:
            both = [
                event_ for each in (thread, *peers) for event_ in each.events if isinstance(event_.label, Allocates)
            ]
            first = {self.run.threads[event_.thread].cta: event_ for event_ in reversed(both) if event_.owners}
            for event_ in first.values():
                add_event(self.story, event_)
        absent = next((event_ for event_ in peers if event_.number in self.stuck), None)
        if absent is not None and not self.bare:
            self._waiting.append(replace_lanes(self.stuck[absent.number], absent.number))
        elif peers:
            self.story.threads.setdefault(peers[0].number, [])

    # ---- barriers --------------------------------------------------------------------------------------------

    def _meet(self, meeting: TraceEvent, thread: TraceThread) -> None:
        """Add the arrivals of a generation of a barrier, and the threads that are blocked elsewhere."""
        arrived = {event.thread: event for event in self._arrivals(meeting, meeting.generation)}
        came: dict[int, dict[int, TraceEvent]] = {}
        for number, event in arrived.items():
            came.setdefault(event.at, {})[number] = event
        for events in came.values():
            add_event(self.story, events[self._of([*([thread.number] if thread.number in events else []), *events])])
        before = {event.thread: event for event in self._arrivals(meeting, meeting.generation - 1)}
        absent: dict[object, int] = {}
        for number, lanes in self.stuck.items() if not self.bare else ():
            away = number not in arrived and self.stuck.get(thread.number) is not lanes
            if away and self._belongs(number, meeting, thread) and (meeting.count is None or number in before):
                absent.setdefault((lanes.at, before[number].at if number in before else None), number)
        if self.bare and _domain(meeting) is Domain.CLUSTER:  # a thread that never arrives
            some = (number for number in self.stuck if number not in arrived and self._belongs(number, meeting, thread))
            self.story.threads.setdefault(next(some, thread.number), [])
        later = 0
        for number in absent.values():
            self._waiting.append(replace_lanes(self.stuck[number], number))
            if number in before:
                again = replace(before[number], generation=meeting.generation)
                self._add_missing(self.run.threads[number], again.at, again, later=1 + (again.order or 0))
                later += 1
        assert meeting.barrier is not None
        self.story.absent[meeting.barrier, meeting.generation] = 0 if later else 1

    def _arrivals(self, meeting: TraceEvent, generation: int) -> Iterator[TraceEvent]:
        for thread in self.run.threads:
            for event in thread.events:
                if event.barrier == meeting.barrier and event.generation == generation and _arrives(event):
                    yield event

    def _belongs(self, number: int, meeting: TraceEvent, thread: TraceThread) -> bool:
        """True if a thread is in the CTA, cluster or warp of the barrier."""
        other, domain = self.run.threads[number], _domain(meeting)
        if domain is Domain.CLUSTER:
            return other.place.cluster_id == thread.place.cluster_id
        return other.cta == thread.cta and (domain is Domain.CTA or other.warp == thread.warp)


def replace_lanes(lanes: StuckLanes, thread: int) -> StuckLanes:
    """The same lanes, with one of their threads in front."""
    return lanes._replace(threads=(thread, *lanes.threads))


def _reads(event: TraceEvent) -> bool:
    return is_read(event.label) and event.partner is None


def _writes(event: TraceEvent, read: TraceEvent) -> bool:
    """True if an event writes the place of a later read."""
    same = event.block is read.block and event.first == read.first and event.time < read.time
    return same and is_write(event.label)


def _domain(event: TraceEvent) -> Domain | None:
    return event.label.domain if isinstance(event.label, Barrier) else None


def _arrives(event: TraceEvent) -> bool:
    return isinstance(event.label, Barrier) and event.label.half is Half.ARRIVE
