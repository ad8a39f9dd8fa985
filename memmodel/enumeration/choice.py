"""The choices that make one candidate execution out of a test, named so that two engines can speak of them."""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.isa.memory import Location

ThreadEventId = tuple[int, int]
"""(thread, k): the k-th event of a thread, both counted from 0. Events are reads, executed writes, fences and barrier
halves in the order in which the thread executes them."""

EventId = ThreadEventId | tuple[str, Location]
"""An event of a thread, or ("init", location): the initial write of a location."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One candidate execution of a test, as the other engine found it; `replay` builds it and judges it afresh.

    `reads`: for each thread, the values that its reads return, in the order in which it executes them; the result of a
    barrier reduction counts as a value read. Dropped rounds of a spin loop have no values.
    `rf`: (write, read) for every read. `co`: all pairs (earlier, later) of base co, those of initial writes included or
    left out as you like. `sync_fence`: all pairs of the order on fence.sc.
    `groups`: for each over-subscribed barrier generation, the arrive halves of the threads that meet; left out if every
    arrival meets. `finals`: the write whose value each location ends with; a location left out ends with its only
    co-maximal write, or the last of them in order of threads.
    """

    reads: tuple[tuple[int, ...], ...]
    rf: tuple[tuple[EventId, ThreadEventId], ...]
    co: tuple[tuple[EventId, EventId], ...] = ()
    sync_fence: tuple[tuple[ThreadEventId, ThreadEventId], ...] = ()
    groups: tuple[frozenset[ThreadEventId], ...] = ()
    finals: tuple[tuple[Location, EventId], ...] = ()
