"""Whether another period can be inserted between two periods of a run, so that all that is ordered stays ordered.

In: trace, visits, a `Site`. Out: why not, or None. Settled here: no wait before a cut depends on what comes after it;
the second period does what the first one did, with phases and generations further by a constant; what one period
leaves open, the next one closes; no thread waits for what the periods access strongly. Source: docs/kernels-theorem.md,
"Any trip count".
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import NamedTuple

from memmodel.base.labels import Access, Allocates, Barrier, Half
from memmodel.isa.lowered import lowered
from memmodel.kernel.all_sizes.following import RoundEnd
from memmodel.kernel.all_sizes.periods import Site
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.module.syntax import PtxInstruction

BEFORE, ONE, OTHER, AFTER = range(4)
"""The parts of a run: before the first cut, the first and the second period, after the third cut."""


class Rendezvous(NamedTuple):
    """A phase of an mbarrier object, or a generation of a barrier, at which threads meet."""

    what: object
    turn: int


class Participant(NamedTuple):
    """A thread at a meeting. `order`: the place of the event in its thread. `waits`: it waits, else it arrives;
    `hardware`: the arrival is made by an asynchronous instruction.
    """

    thread: int
    order: int
    waits: bool
    hardware: bool
    at: int


Meetings = Mapping[Rendezvous, Sequence[Participant]]

ObservedBytes = frozenset[tuple[Block, int]]
"""Bytes that some strong access reads on whose result the run depends: what a loop polls."""


def meetings_of(run: LaunchTrace) -> Meetings:
    """The participants of each meeting."""
    meetings: dict[Rendezvous, list[Participant]] = {}
    for meeting, participant in _participants(run):
        meetings.setdefault(meeting, []).append(participant)
    return meetings


def observed_bytes(run: LaunchTrace, deciding: Container[int]) -> ObservedBytes:
    """The bytes that instructions access strongly on whose results the run depends. `deciding`: their numbers."""
    return frozenset(
        (event.block, byte)
        for thread in run.threads
        for event in thread.strong()
        if event.at in deciding and event.block is not None
        for byte in range(event.first, event.first + event.size)
    )


class PeriodInsertion:
    """The meetings of a run, cut at a site. `observed`: as `observed_bytes` has them."""

    def __init__(
        self, run: LaunchTrace, meetings: Meetings, body: Sequence[PtxInstruction],
        visits: Mapping[int, Sequence[RoundEnd]], site: Site, observed: ObservedBytes = frozenset(),
    ) -> None:  # fmt: skip
        self._run, self._body, self.meetings, self._observed = run, body, meetings, observed
        self._cuts = {thread: tuple(visits[thread][n].events for n in cuts) for thread, cuts in site.items()}
        self._looping = frozenset(site)
        self._settle()

    def part(self, thread: int, order: int) -> int:
        """The part of the run that an event is in."""
        return sum(order >= cut for cut in self._cuts.get(thread, (0, 0, 0)))

    def _settle(self) -> None:
        """Cut threads that do not run the loops once: after all that others wait for before the third cut."""
        while any([self._cut_behind(sides) for sides in self.meetings.values()]):
            pass

    def _cut_behind(self, sides: Sequence[Participant]) -> bool:
        """Cut threads behind what others wait for before the third cut; True if that moves a cut."""
        if not any(side.waits and self.part(side.thread, side.order) < AFTER for side in sides):
            return False
        moved = False
        for side in sides:
            if not side.waits and side.thread not in self._looping and self.part(side.thread, side.order) == AFTER:
                self._cuts[side.thread] = (side.order + 1,) * 3
                moved = True
        return moved

    def late(self) -> tuple[set[int], str]:
        """The threads that arrive after a cut although others wait for them before it, and where these wait."""
        late_threads, at = set[int](), -1
        for sides in self.meetings.values():
            waits = [participant for participant in sides if participant.waits]
            first = min((self.part(participant.thread, participant.order) for participant in waits), default=AFTER)
            late = {
                participant.thread
                for participant in sides
                if not participant.waits and self.part(participant.thread, participant.order) > first
            }
            late_threads, at = late_threads | late, waits[0].at if late else at
        return late_threads, f"what threads wait for, {self._body[at].at_line}, comes in a later round"

    def why_not(self) -> str | None:
        """Why no period can be inserted between the second one and what follows it; None if one can."""
        for thread in self._looping:
            first, _, third = self._cuts[thread]
            for event in self._run.threads[thread].events[first:third]:
                signals = any(isinstance(part.label, Access) for part in event.signals)
                if isinstance(event.label, Allocates) or signals or self._is_observed(event):
                    return f"{self._body[event.at].at_line} may meet others in each round"
        shifts, why = self._shifts()
        return why or self._crossing(shifts)

    def _shifts(self) -> tuple[dict[object, int], str | None]:
        """By how many phases or generations each object and barrier advances in a period."""
        listed: dict[int, dict[int, list[tuple[Rendezvous, Participant]]]] = {}
        for meeting, sides in self.meetings.items():
            for participant in sides:
                part = self.part(participant.thread, participant.order)
                if part in (ONE, OTHER):
                    listed.setdefault(participant.thread, {}).setdefault(part, []).append((meeting, participant))
        shifts: dict[object, int] = {}
        for parts in listed.values():
            pairs = [sorted(parts.get(part, ()), key=lambda pair: pair[1].order) for part in (ONE, OTHER)]
            if len(pairs[0]) != len(pairs[1]):
                return {}, "threads meet at other places in each period"
            for (before, side), (after, _) in zip(*pairs, strict=True):
                shift = after.turn - before.turn
                if before.what != after.what or shifts.setdefault(before.what, shift) != shift:
                    return {}, f"threads meet at other places in each period, {self._body[side.at].at_line}"
        return shifts, None

    def _crossing(self, shifts: Mapping[object, int]) -> str | None:
        """Why a meeting forbids another period. A meeting may reach from one part only to the next one, and what
        hardware signals must be waited for in the loop by all threads that wait for it after the loop.
        """
        for meeting, sides in self.meetings.items():
            shift = shifts.get(meeting.what)
            if shift is None:
                continue
            parts = {self.part(participant.thread, participant.order) for participant in sides}
            comes = {self.part(participant.thread, participant.order) for participant in sides if not participant.waits}
            at = self._body[sides[0].at].at_line
            if shift == 0:
                if comes & {ONE, OTHER}:
                    return f"each round adds to one phase, {at}"
                continue
            if shift % 2 and any(self._by_parity(participant) for participant in sides):
                return f"the parity of a phase is another one in longer loops, {at}"
            if max(parts) - min(parts) > 1:
                return f"a phase lasts for more than a period, {at}"
            heard = {
                participant.thread
                for participant in sides
                if participant.waits and self.part(participant.thread, participant.order) == AFTER
            }
            if OTHER in comes and heard and any(participant.hardware for participant in sides):
                earlier = self.meetings.get(Rendezvous(meeting.what, meeting.turn - shift), ())
                if not heard <= {participant.thread for participant in earlier if participant.waits}:
                    return f"the end of a copy is waited for behind the loop only, {at}"
        return None

    def _by_parity(self, participant: Participant) -> bool:
        """True for a test of a parity after the loop."""
        return (
            participant.waits
            and lowered(self._body[participant.at]).tests_parity
            and self.part(participant.thread, participant.order) == AFTER
        )

    def _is_observed(self, event: TraceEvent) -> bool:
        """True for a strong access to what decides how a thread continues: it may give order in each round."""
        if not self._observed or not isinstance(event.label, Access) or event.block is None:
            return False
        return any((event.block, byte) in self._observed for byte in range(event.first, event.first + event.size))


def _participants(run: LaunchTrace) -> Iterator[tuple[Rendezvous, Participant]]:
    """The threads that arrive at phases of mbarrier objects and generations of barriers, or wait for their end."""
    for (block, first), steps in run.objects.items():
        for step in steps:
            event = step.event
            of = event if event.order is not None or event.issue is None else event.issue
            what, turn = ("object", id(block), first, step.life), step.before if step.update else step.seen_by_tests - 1
            hardware = event.order is None
            yield Rendezvous(what, turn), Participant(of.thread, of.order or 0, not step.update, hardware, event.at)
    for thread in run.threads:
        for event in thread.events:
            if event.barrier is not None and isinstance(event.label, Barrier):
                waits = event.label.half is Half.WAIT
                meeting = Rendezvous(event.barrier, event.generation)
                yield meeting, Participant(thread.number, event.order or 0, waits, hardware=False, at=event.at)
