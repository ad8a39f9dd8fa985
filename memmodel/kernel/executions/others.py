"""Executions that no schedule shows: a strong read returns another write than the last one in time.

In: runs under schedules, their flags. Out: schedules in which one more read returns another write: an older one (as
store buffering lets it), or one that is made later (as load buffering does), the most different first. Left out: what
causality or coherence forbid already, values that a polling loop does not end with, and later writes that may depend on
the read. `consistent` has the last word.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import replace
from typing import NamedTuple

from memmodel.base.labels import Side, is_atomic, side_of
from memmodel.base.rows import Rows
from memmodel.isa.lowered import body_of
from memmodel.kernel.executions.decisions import returns_older
from memmodel.kernel.executions.dependence import dependent
from memmodel.kernel.flow.paths import reached
from memmodel.kernel.machine.choices.schedule import ChosenRead, Schedule
from memmodel.kernel.machine.choices.scripted_reads import LeadsBack
from memmodel.kernel.order.graph import Graph
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.program.fields import NOTHING
from memmodel.ptx.module.syntax import PtxFunction


class _Other(NamedTuple):
    """A schedule, and its rank in the queue."""

    rank: int
    number: int
    schedule: Schedule


class OtherReads:
    """Schedules that are still to be looked at."""

    def __init__(self, entry: PtxFunction, leads_back: LeadsBack) -> None:
        self._entry, self._leads_back = entry, leads_back
        self._waiting: list[_Other] = []
        self._classes: Counter[object] = Counter()
        self._seen: set[Schedule] = set()
        self._noted: set[object] = set()
        self._dependent: dict[int, frozenset[int]] = {}

    def note(self, schedule: Schedule, graph: Graph, base: Rows | None, looked: Container[int]) -> None:
        """Queue the schedules in which one more read of a run, by the instructions `looked`, returns another write."""
        already = {id(read) for read, _ in graph.run.chosen}
        body, writes, reads = body_of(self._entry), dict[object, list[TraceEvent]](), list[TraceEvent]()
        for event in graph.events.values():
            side = side_of(event.label)
            if side is None or event.turn < 0:
                continue
            if side is Side.WRITE:
                writes.setdefault((event.block, event.first, event.size), []).append(event)
            elif event.at in looked and id(event) not in already and body[event.at].leaves_memory:
                reads.append(event)
        run = self._like(reads, writes)
        if base is None or run in self._noted:
            return
        self._noted.add(run)
        for read in reads:
            earlier = sorted(writes.get((read.block, read.first, read.size), ()), key=_time)
            for write in _possible(read, earlier, graph, base):
                if self._matters(read, write):
                    self._wait(schedule, read, write)

    @staticmethod
    def _like(reads: list[TraceEvent], writes: dict[object, list[TraceEvent]]) -> object:
        """Reads-from and the order of writes, equal for runs that need not be looked at twice."""
        sources = frozenset((event.key, None if event.source is None else event.source.key) for event in reads)
        places = (tuple(event.key for event in sorted(ordered, key=_time)) for ordered in writes.values())
        return sources, frozenset(places)

    def _matters(self, read: TraceEvent, write: TraceEvent | None) -> bool:
        """True if the read may return that write, and its thread would do something else then."""
        if write is None:
            return True
        if write is read.partner or (write.time > read.time and is_atomic(read.label)):
            return False
        if write.time > read.time:
            if read.at not in self._dependent:
                self._dependent[read.at] = dependent(self._entry, read.at, {})
            if write.at in self._dependent[read.at]:
                return False
        value = write.number
        return value is None or not self._leads_back(read, value)

    def _wait(self, schedule: Schedule, read: TraceEvent, write: TraceEvent | None) -> None:
        same = write is not None and write.bits == read.bits
        now = None if read.source is None else read.source.at
        early, depth = write is not None and write.time > read.time, len(schedule.reads)
        kind = read.at, None if write is None else write.at, now, early, same, depth
        rank = self._classes[kind] + 2 * same + depth
        self._classes[kind] += 1
        bits = NOTHING if write is None or write.bits is None else write.bits
        chosen = ChosenRead(read.key, None if write is None else write.key, bits)
        reads = sorted((*schedule.reads, chosen), key=lambda choice: choice.read)
        other = replace(schedule, reads=tuple(reads))
        if other not in self._seen:
            self._seen.add(other)
            heapq.heappush(self._waiting, _Other(rank, len(self._seen), other))

    def polls_older(self, run: LaunchTrace) -> bool:
        """True if a thread waits for ever in a loop that reads a write which is not the last one: no execution hangs
        so, since such a read returns the last one eventually.
        """
        older = {id(read) for read, _ in returns_older(run)}
        body = body_of(self._entry)
        for lanes in run.stuck if older else ():
            behind = reached(body, body[lanes.at].follows, lambda does: True)
            loop = {at for at in behind if lanes.at in reached(body, body[at].follows, lambda does: True)}
            for thread in lanes.threads:
                last = {event.at: event for event in run.threads[thread].events if event.at in loop | {lanes.at}}
                if any(id(event) in older for event in last.values()):
                    return True
        return False

    def next(self) -> Iterator[Schedule]:
        """The schedules, as long as there are any."""
        while self._waiting:
            yield heapq.heappop(self._waiting).schedule


def _time(event: TraceEvent) -> int:
    return event.time


def _possible(read: TraceEvent, writes: list[TraceEvent], graph: Graph, base: Rows) -> Iterator[TraceEvent | None]:
    """The other writes that a read may return, as far as base causality to and from its thread says."""
    number = graph.number[id(read)]
    own = graph.run.threads[read.thread].events[: read.order]
    before = sum(1 << graph.number[id(write)] for write in own if id(write) in graph.number)
    earlier = [write for write in writes if write.time < read.time]
    # The last one that the read has to return, or a later one.
    known = [
        place
        for place, write in enumerate(earlier)
        if write.thread == read.thread or base[graph.number[id(write)]] & before
    ]
    least = max(known, default=-1)
    if least < 0 and read.source is not None:
        yield None
    for write in earlier[max(0, least) :]:
        if write is not read.source:
            yield write
    for write in writes[len(earlier) :]:
        if write.thread != read.thread and not base[number] >> graph.number[id(write)] & 1:
            yield write
