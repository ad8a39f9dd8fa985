"""What joins two periods of a run: can another one be put in between, and is all that is ordered then ordered still?

In: trace, visits, a `Site`. Out: why not, or None. Settled here: no wait before a cut depends on what comes after it;
the second period does what the first one did, with phases and generations further by a constant; what one period
leaves open is closed by the next one. Source: docs/kernels-theorem.md, "Any trip count".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from memmodel.base.labels import Access, Allocates, Barrier, Fence, Half
from memmodel.kernel.all_sizes.following import RoundEnd
from memmodel.kernel.all_sizes.periods import Site
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Sem

BEFORE, ONE, OTHER, AFTER = range(4)
"""Where an event is: before the first cut, in the first or the second period, after the third cut."""


class Rendezvous(NamedTuple):
    """Something that threads meet at, in one of its phases or generations."""

    what: object
    turn: int


class Comer(NamedTuple):
    """A thread at a meeting: the place of its event among its own, does it come or wait; is it hardware that comes?"""

    thread: int
    order: int
    waits: bool
    hardware: bool
    at: int


AllMeetings = Mapping[Rendezvous, Sequence[Comer]]


def meetings_of(run: LaunchTrace) -> AllMeetings:
    """Who comes to which meeting."""
    found: dict[Rendezvous, list[Comer]] = {}
    for meeting, one in _comers(run):
        found.setdefault(meeting, []).append(one)
    return found


class Joints:
    """The meetings of a run, cut at a site."""

    def __init__(
        self, run: LaunchTrace, meetings: AllMeetings, body: Sequence[PtxInstruction],
        visits: Mapping[int, Sequence[RoundEnd]], site: Site,
    ) -> None:  # fmt: skip
        self._run, self._body, self.meetings = run, body, meetings
        self._cuts = {thread: tuple(visits[thread][n].events for n in cuts) for thread, cuts in site.items()}
        self._looping = frozenset(site)
        self._settle()

    def part(self, thread: int, order: int) -> int:
        """Where an event is."""
        return sum(order >= cut for cut in self._cuts.get(thread, (0, 0, 0)))

    def _settle(self) -> None:
        """Threads that do not run the loops are cut once: behind all that others wait for before the third cut."""
        changed = True
        while changed:
            changed = False
            for sides in self.meetings.values():
                if any(one.waits and self.part(one.thread, one.order) < AFTER for one in sides):
                    for one in sides:
                        if (
                            not one.waits
                            and self.part(one.thread, one.order) == AFTER
                            and one.thread not in self._looping
                        ):
                            self._cuts[one.thread] = (one.order + 1,) * 3
                            changed = True

    def late(self) -> tuple[set[int], str]:
        """The threads that come to a meeting behind a cut before which others wait for them; where these wait."""
        found, at = set[int](), -1
        for sides in self.meetings.values():
            waits = [one for one in sides if one.waits]
            first = min((self.part(one.thread, one.order) for one in waits), default=AFTER)
            late = {one.thread for one in sides if not one.waits and self.part(one.thread, one.order) > first}
            found, at = found | late, waits[0].at if late else at
        return found, f"what threads wait for, {self._at(at)}, comes in a later round"

    def why_not(self) -> str | None:
        """What stands against one period more between the second one and what follows it."""
        for thread in self._looping:
            first, _, third = self._cuts[thread]
            for event in self._run.threads[thread].events[first:third]:
                if isinstance(event.label, Allocates) or any(_meets(one) for one in (event, *event.signals)):
                    return f"{self._at(event.at)} may meet others in each round"
        shifts, why = self._shifts()
        return why or self._crossing(shifts)

    def _shifts(self) -> tuple[dict[object, int], str | None]:
        """By how many phases or generations each thing goes on in a period."""
        listed: dict[int, dict[int, list[tuple[Rendezvous, Comer]]]] = {}
        for meeting, sides in self.meetings.items():
            for one in sides:
                part = self.part(one.thread, one.order)
                if part in (ONE, OTHER):
                    listed.setdefault(one.thread, {}).setdefault(part, []).append((meeting, one))
        shifts: dict[object, int] = {}
        for parts in listed.values():
            pairs = [sorted(parts.get(part, ()), key=lambda pair: pair[1].order) for part in (ONE, OTHER)]
            if len(pairs[0]) != len(pairs[1]):
                return {}, "threads meet at other places in each period"
            for (before, side), (after, _) in zip(*pairs, strict=True):
                shift = after.turn - before.turn
                if before.what != after.what or shifts.setdefault(before.what, shift) != shift:
                    return {}, f"threads meet at other places in each period, {self._at(side.at)}"
        return shifts, None

    def _crossing(self, shifts: Mapping[object, int]) -> str | None:
        """What reaches over a cut does so from one part to the next one only, and what hardware tells is heard in the
        loop by all threads that hear of it behind.
        """
        for meeting, sides in self.meetings.items():
            shift = shifts.get(meeting.what)
            if shift is None:
                continue
            parts = {self.part(one.thread, one.order) for one in sides}
            comes = {self.part(one.thread, one.order) for one in sides if not one.waits}
            at = self._at(sides[0].at)
            if shift == 0:
                if comes & {ONE, OTHER}:
                    return f"each round adds to one phase, {at}"
                continue
            if shift % 2 and any(self._by_parity(one) for one in sides):
                return f"the parity of a phase is another one in longer loops, {at}"
            if max(parts) - min(parts) > 1:
                return f"a phase lasts for more than a period, {at}"
            heard = {one.thread for one in sides if one.waits and self.part(one.thread, one.order) == AFTER}
            if OTHER in comes and heard and any(one.hardware for one in sides):
                earlier = self.meetings.get(Rendezvous(meeting.what, meeting.turn - shift), ())
                if not heard <= {one.thread for one in earlier if one.waits}:
                    return f"the end of a copy is waited for behind the loop only, {at}"
        return None

    def _by_parity(self, one: Comer) -> bool:
        """Is it a test of a parity behind the loop?"""
        return one.waits and "parity" in self._body[one.at].words and self.part(one.thread, one.order) == AFTER

    def _at(self, at: int) -> str:
        return f"{self._body[at].opcode} at line {self._body[at].line}"


def _meets(one: TraceEvent) -> bool:
    """Is it a strong access, or a fence that is ordered with all of its kind?"""
    label = one.label
    return (isinstance(label, Access) and one.block is not None) or (isinstance(label, Fence) and label.sem is Sem.SC)


def _comers(run: LaunchTrace) -> Iterator[tuple[Rendezvous, Comer]]:
    """Who comes to phases of mbarrier objects and to generations of barriers, and who waits for their end."""
    for (block, first), steps in run.objects.items():
        for step in steps:
            event = step.event
            of = event if event.order is not None or event.issue is None else event.issue
            what, turn = ("object", id(block), first, step.life), step.before if step.update else step.seen - 1
            hardware = event.order is None
            yield Rendezvous(what, turn), Comer(of.thread, of.order or 0, not step.update, hardware, event.at)
    for thread in run.threads:
        for event in thread.events:
            if event.barrier is not None and isinstance(event.label, Barrier):
                waits = event.label.half is Half.WAIT
                meeting = Rendezvous(event.barrier, event.generation)
                yield meeting, Comer(thread.number, event.order or 0, waits, hardware=False, at=event.at)
