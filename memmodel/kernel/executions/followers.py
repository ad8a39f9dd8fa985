"""What follows events of a run in every execution that has them with the same decisions.

In: LaunchTrace, the reads of which it is known from which write they read. Out: `Followers`. What lanes of a warp learn
from one another is left out: not all that follows is known.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Container, Sequence
from collections.abc import Set as AbstractSet

from memmodel.base.labels import Barrier, Half
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace


class Followers:
    """What follows events: in their threads, from writes to reads, and, where that is asked for, through barriers and
    mbarrier objects. `known`: identities of reads that read from the same writes in each of these executions.
    """

    def __init__(self, run: LaunchTrace, known: Container[int], *, objects: bool = True) -> None:
        self._run = run
        self._next: dict[int, list[TraceEvent]] = {}
        self._place: dict[int, int] = {}
        self._ids = [[id(event) for event in thread.events] for thread in run.threads]
        for ids in self._ids:
            self._place.update(zip(ids, range(len(ids)), strict=True))
        for event in (event for thread in run.threads for event in thread.events if id(event) in known):
            for write in (event.source, *event.observed):
                if write is not None:
                    self._next.setdefault(id(write), []).append(event)
        self._after: dict[int, list[Sequence[TraceEvent]]] = {at: [events] for at, events in self._next.items()}
        if objects:
            self._barriers()
            self._objects()
        self._leading = [[place for place, at in enumerate(ids) if at in self._after] for ids in self._ids]
        self._known: dict[int, set[int]] = {}

    def _barriers(self) -> None:
        waits: dict[object, list[TraceEvent]] = {}
        at_barriers = [
            event
            for thread in self._run.threads
            for event in thread.events
            if event.barrier is not None and isinstance(event.label, Barrier)
        ]
        for event in at_barriers:
            if isinstance(event.label, Barrier) and event.label.half is not Half.ARRIVE:
                waits.setdefault((event.barrier, event.generation), []).append(event)
        for event in at_barriers:
            self._after.setdefault(id(event), []).append(waits.get((event.barrier, event.generation), ()))

    def _objects(self) -> None:
        """An update is part of a phase, and tests that saw its end follow."""
        for steps in self._run.objects.values():
            tests = [step for step in steps if not step.update]
            for step in steps:
                if step.update:
                    event = step.event.issue or step.event
                    seen = [test.event for test in tests if test.seen_by_tests > step.before]
                    self._after.setdefault(id(event), []).append(seen)

    def of(self, events: Collection[TraceEvent]) -> AbstractSet[int]:
        """The identities of some events, and of all that follow them."""
        first = next(iter(events)) if len(events) == 1 else None
        if first is None:
            return self._of(events)
        if id(first) not in self._known:
            self._known[id(first)] = self._of(events)
        return self._known[id(first)]

    def _of(self, events: Collection[TraceEvent]) -> set[int]:
        """Of a thread, all events follow one: what is known of each thread is the first of them."""
        followers, seen, waiting = set[int](), set[int](), list(events)
        begins: dict[int, int] = {}

        def lead(at: int) -> None:
            for later in self._after.get(at, ()):
                if id(later) not in seen:
                    seen.add(id(later))
                    waiting.extend(later)

        while waiting:
            event = waiting.pop()
            place, ids = self._place.get(id(event)), self._ids[event.thread]
            if place is None:  # of an asynchronous instruction
                followers.add(id(event))
                lead(id(event))
                continue
            end = begins.get(event.thread, len(ids))
            if place >= end:
                continue
            begins[event.thread] = place
            followers.update(ids[place:end])
            leading = self._leading[event.thread]
            for at in leading[bisect_left(leading, place) : bisect_left(leading, end)]:
                lead(ids[at])
        return followers
