"""Atomic operations whose order nobody sees: they order nothing, and are judged like weak accesses.

In: LaunchTrace, the instructions on whose results the run depends. Out: the same trace, in which such operations are
accesses and no events. Settled here: an operation is quiet if its location is touched by no other strong access than
atomic operations, all of one size, on whose results nothing depends. Whoever reads from it then does so in some
executions only, so that no order that every execution has comes of it. docs/kernels-theorem.md, "Symmetry".
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, pairwise

from memmodel.base.labels import Access
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.threads import TraceThread
from memmodel.ptx.vocabulary import Sem

Extent = tuple[int, int]
"""First byte and size."""


def hushed(run: LaunchTrace, chosen: frozenset[int]) -> LaunchTrace:
    """Turn the quiet atomic operations of a trace into accesses; the trace itself is changed."""
    quiet = _quiet(run, chosen)
    if not any(quiet.values()):
        return run

    def silent(event: TraceEvent) -> bool:
        return _strong(event) and event.block in quiet and (event.first, event.size) in quiet[event.block]

    numbers: dict[int, list[int]] = {}
    made: list[WeakAccess] = []
    for thread in run.threads:
        loud = [not silent(event) for event in thread.events]
        if all(loud):
            continue
        numbers[thread.number] = [0, *accumulate(loud)]
        made += _accesses(thread, loud, numbers[thread.number])
        thread.events = [event for event, stays in zip(thread.events, loud, strict=True) if stays]
        for order, event in enumerate(thread.events):
            event.order = order
        thread.epoch = numbers[thread.number][thread.epoch]
    for number, one in enumerate(run.single):
        if one.thread in numbers:
            run.single[number] = one._replace(epoch=numbers[one.thread][one.epoch])
    for many in run.lanes:
        for number, thread_number in enumerate(many.threads):
            if thread_number in numbers:
                many.epochs[number] = numbers[thread_number][many.epochs[number]]
    for thread in run.threads:
        for event in thread.events:
            parts = [one for one in event.signals if silent(one)]
            made += [_part(event, one) for one in parts]
            event.signals = tuple(one for one in event.signals if one not in parts) if parts else event.signals
    run.single += made
    for place in [place for place, events in run.atomics.items() if silent(events[0])]:
        del run.atomics[place]
    return run


def _quiet(run: LaunchTrace, chosen: frozenset[int]) -> dict[Block | None, set[Extent]]:
    """The locations that only quiet operations touch; none in a block in which locations overlap."""
    extents: dict[Block | None, dict[Extent, bool]] = {}
    for thread in run.threads:
        for event in thread.strong():
            known = extents.setdefault(event.block, {})
            place = event.first, event.size
            known[place] = known.get(place, True) and _rmw(event) and event.at not in chosen
    found = {}
    for block, places in extents.items():
        ordered = sorted(places)
        apart = all(a + size <= b for (a, size), (b, _) in pairwise(ordered))
        found[block] = {place for place, quiet in places.items() if quiet and apart}
    return found


def _strong(event: TraceEvent) -> bool:
    return isinstance(event.label, Access) and event.block is not None


def _rmw(event: TraceEvent) -> bool:
    label = event.label
    return isinstance(label, Access) and label.rmw


def _part(issue: TraceEvent, event: TraceEvent) -> WeakAccess:
    """The access of an asynchronous reduction."""
    assert event.block is not None and issue.order is not None
    return WeakAccess(
        event.block, event.first, event.size, event.thread, issue.order, event.label, event.at, event.size, issue
    )


def _accesses(thread: TraceThread, loud: list[bool], numbers: list[int]) -> list[WeakAccess]:
    """The quiet operations of a thread as accesses; what they would acquire or release, nobody sees."""
    found = []
    for order, (event, stays) in enumerate(zip(thread.events, loud, strict=True)):
        if not stays and event.block is not None and isinstance(event.label, Access):
            label = replace(event.label, sem=Sem.RELAXED)
            size = event.size
            found.append(
                WeakAccess(event.block, event.first, size, thread.number, numbers[order], label, event.at, size)
            )
    return found
