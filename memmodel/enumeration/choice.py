"""The choices that make one candidate execution out of a test, named so that two engines can speak of them."""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.isa.memory import Location

ThreadEventId = tuple[int, int]
"""(thread, k): the k-th event of a thread, both counted from 0. Events are reads, executed writes, fences, barrier
halves, waits, operations on mbarrier objects and issues, in the order in which the thread executes them; an issue is
followed by its parts and signals in the order of its instruction."""

EventId = ThreadEventId | tuple[str, Location]
"""An event of a thread, or ("init", location): the initial write of a location."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One candidate execution of a test, as the other engine found it; `replay` builds it and judges it afresh.

    `reads`: for each thread, the values that its reads return, in the order in which it executes them; the result of a
    barrier reduction counts as a value read, as does what a read part returns. Dropped rounds of a spin loop have none.
    `rf`: (write, read) for every read. `co`: all pairs (earlier, later) of base co, those of initial writes included or
    left out as you like. `sync_fence`: all pairs of the order on fence.sc.
    `groups`: for each over-subscribed barrier generation, the arrive halves of the threads that meet; left out if every
    arrival meets. `finals`: the write whose value each location ends with; a location left out ends with its only
    co-maximal write, or the last of them in order of threads.
    `results`: for each thread, what its operations on mbarrier objects tell it, in the order in which it executes them:
    0 or 1 for a test, the state for an arrive that keeps one (then the pending count, if the thread asks for it); ()
    if no thread has any. `mbar`: for each object with updates that run, all of them in order. `seen`: for each test
    that runs, how many phases it saw as over.
    """

    reads: tuple[tuple[int, ...], ...]
    rf: tuple[tuple[EventId, ThreadEventId], ...]
    co: tuple[tuple[EventId, EventId], ...] = ()
    sync_fence: tuple[tuple[ThreadEventId, ThreadEventId], ...] = ()
    groups: tuple[frozenset[ThreadEventId], ...] = ()
    finals: tuple[tuple[Location, EventId], ...] = ()
    results: tuple[tuple[int, ...], ...] = ()
    mbar: tuple[tuple[Location, tuple[ThreadEventId, ...]], ...] = ()
    seen: tuple[tuple[ThreadEventId, int], ...] = ()
