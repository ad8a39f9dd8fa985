"""What of a run a hang needs: who waits for ever, what has come to the barrier or to the phase, who else is held up.

In: RunJudge, KernelFinding. Out: `CutStory`. Settled here: of arrivals by one instruction in one phase or generation
one is kept, and of those that did not come one. A thread that came in the phase before, and waits for ever elsewhere,
is told with that wait, and what it did then stands behind it. Source: PTX ISA "mbarrier", "bar, barrier",
"barrier.cluster", "bar.warp.sync".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from memmodel.base.labels import Action, Barrier, Domain, Half, Mark, Marker, Mbarrier, Signal
from memmodel.base.points import BarrierId
from memmodel.kernel.cut.story import CutStory, Deed, Lack, NotCut, add_deed
from memmodel.kernel.judge.events import AwaitedPhase, ObjectStep, StuckLanes, TraceEvent, TraceThread
from memmodel.kernel.judge.judging import RunJudge
from memmodel.kernel.judge.verdict import KernelFinding

TOGETHER = ("shfl", "vote", "match", "redux", "elect")
"""Instructions with a member mask, whose lanes wait for one another as at bar.warp.sync."""
MISSED = 2
"""Phases by which a thread that waits by parity is late: it takes the present one for the one that it waits for."""
BYTES = (Action.EXPECT_TX, Action.COMPLETE_TX)


def hang(made: RunJudge, finding: KernelFinding, *, bare: bool) -> CutStory:
    """The story of a hang. `bare`: one wait, and what came to its phase; not where the others are held up."""
    at = finding.sides[0].instruction.number if finding.sides else -1
    first = next((one for one in made.run.stuck if one.at == at), None)
    if first is None:
        raise NotCut("nobody waits there where the run ends")
    told = _HangStory(made, finding, bare=bare)
    told.tell(first)
    return told.found


class _HangStory:
    """Tells one wait after the other."""

    def __init__(self, made: RunJudge, finding: KernelFinding, *, bare: bool) -> None:
        self.made, self.run, self.bare = made, made.run, bare
        self.found = CutStory(made, finding)
        self.stuck = {thread: one for one in made.run.stuck for thread in one.threads}
        self._waiting: list[StuckLanes] = []

    def tell(self, first: StuckLanes) -> None:
        """All that is needed for the lanes to wait for ever."""
        if first.awaits is not None and not first.awaits.live:
            self.found.asked = "undefined"  # a test of an object that nothing initialises
        self._waiting.append(first)
        known = set()
        for one in self._waiting:  # grows
            place = None if one.awaits is None else one.awaits[:2]
            if (key := (one.at, place, one.awaits is None and self.run.threads[one.threads[0]].place.cta_id)) in known:
                continue
            known.add(key)
            self._wait(one)
        self._clusters()
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
        if not self.bare and awaits.phase - seen >= MISSED and (awaits.phase - seen) % 2 == 0:
            self.found.joined[place] = awaits.phase - MISSED
            for phase in range(awaits.phase - MISSED, awaits.phase):
                self._came(steps, phase)
        self._came(steps, awaits.phase)
        later = self._later(steps, awaits, thread) if not self.bare else []
        actions = {_action(event) for one in later for event in (one, *one.signals)}
        lacks = int(awaits.pending > 0 and Action.ARRIVE not in actions)
        tx = 0 if Action.COMPLETE_TX in actions else (awaits.tx > 0) - (awaits.tx < 0)
        self.found.lacks[(*place, awaits.phase)] = Lack(lacks, tx, live=awaits.live)

    def _came(self, steps: list[ObjectStep], phase: int) -> None:
        """What came to a phase."""
        came: dict[int, dict[int, TraceEvent]] = {}
        for step in steps:
            if step.update and step.before == phase and _counts(step.event):
                came.setdefault(step.event.at, {}).setdefault(step.event.thread, step.event)
        for events in came.values():
            self._do(events[self._of(events)])

    def _later(self, steps: list[ObjectStep], awaits: AwaitedPhase, thread: TraceThread) -> list[TraceEvent]:
        """What came to the phase before from threads that wait for ever elsewhere, as if they had gone on."""
        came = {(step.event.thread, step.event.at) for step in steps if step.update and step.before == awaits.phase}
        found: dict[int, TraceEvent] = {}
        for step in steps:
            event = step.event
            other = self.stuck.get(event.thread)
            before = step.update and step.before == awaits.phase - 1 and _counts(event)
            same = other is not None and other.awaits is not None and other.awaits[:2] == awaits[:2]
            if before and other is not None and not same and (event.thread, event.at) not in came:
                found.setdefault(event.at, event)
        made = []
        for event in found.values():
            whole = event if event.issue is None else event.issue
            again = replace(whole, signals=[replace(event)] if whole is not event else [])
            for one in (again, *again.signals):
                self.found.phases[id(one)] = awaits.phase
            made.append(again)
            self._made(self.run.threads[whole.thread], whole.at, again, later=1 + (whole.order or 0))
            self._waiting.append(self.stuck[whole.thread])
        return made

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
        later = 0
        for number in absent.values():
            self._waiting.append(replace_lanes(self.stuck[number], number))
            if number in before:
                again = replace(before[number], generation=meeting.generation)
                self._made(self.run.threads[number], again.at, again, later=1)
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

    def _clusters(self) -> None:
        """A barrier of a cluster asks for every thread that has not exited: what those of the story did there."""
        meetings = {
            (event.barrier, event.generation)
            for one in self.found.deeds()
            if (event := one.event) is not None and _domain(event) is Domain.CLUSTER
        }
        for number in list(self.found.threads) if meetings else ():
            for event in self.run.threads[number].events:
                exits = isinstance(event.label, Mark) and event.label.what is Marker.EXIT
                if exits or ((event.barrier, event.generation) in meetings and _arrives(event)):
                    self._do(event)


def replace_lanes(one: StuckLanes, thread: int) -> StuckLanes:
    """The same, with a thread of it in front."""
    return one._replace(threads=(thread, *one.threads))


def _action(event: TraceEvent) -> Action | None:
    label = event.label
    return label.action if isinstance(label, Mbarrier | Signal) else None


def _counts(event: TraceEvent) -> bool:
    """Is it counted in a phase: an arrival, or bytes?"""
    return _action(event) in (Action.ARRIVE, *BYTES)


def _domain(event: TraceEvent) -> Domain | None:
    return event.label.domain if isinstance(event.label, Barrier) else None


def _arrives(event: TraceEvent) -> bool:
    return isinstance(event.label, Barrier) and event.label.half is Half.ARRIVE


__all__ = ["hang"]
