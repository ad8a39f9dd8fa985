"""What follows events of a run in every execution that has them with the same decisions.

In: LaunchTrace, the reads of which it is known from which write they read. Out: `Followers`. What lanes of a warp learn
from one another is left out: not all that follows is known.
"""

from __future__ import annotations

from collections.abc import Collection, Container

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
        self._place = {id(event): number for thread in run.threads for number, event in enumerate(thread.events)}
        for event in (event for thread in run.threads for event in thread.events if id(event) in known):
            for write in (event.source, *event.observed):
                if write is not None:
                    self._next.setdefault(id(write), []).append(event)
        if objects:
            self._barriers()
            self._objects()

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
            self._next.setdefault(id(event), []).extend(waits.get((event.barrier, event.generation), ()))

    def _objects(self) -> None:
        """An update is part of a phase, and tests that saw its end follow."""
        for steps in self._run.objects.values():
            tests = [step for step in steps if not step.update]
            for step in steps:
                if step.update:
                    event = step.event.issue or step.event
                    seen = [test.event for test in tests if test.seen > step.before]
                    self._next.setdefault(id(event), []).extend(seen)

    def of(self, events: Collection[TraceEvent]) -> set[int]:
        """The identities of some events, and of all that follow them."""
        followers, waiting = set[int](), list(events)
        while waiting:
            event = waiting.pop()
            if id(event) in followers:
                continue
            followers.add(id(event))
            waiting += self._next.get(id(event), ())
            place, own = self._place.get(id(event)), self._run.threads[event.thread].events
            if place is not None and place + 1 < len(own):
                waiting.append(own[place + 1])
        return followers
