"""Atomic operations whose order is not observed: they order nothing, and are judged like weak accesses.

In: LaunchTrace, the instructions on whose results the run depends. Out: the same trace, in which such operations are
accesses and no events. Settled here: an operation is unobserved if the only strong accesses to its location are atomic
operations of one size on whose results nothing depends. Which of them reads from which then differs between
executions, and gives no order that every execution has. docs/kernels-theorem.md, "Symmetry".
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from memmodel.base.labels import Access, is_atomic
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.left_out import leave_out
from memmodel.kernel.trace.threads import TraceThread
from memmodel.ptx.vocabulary import Sem

Extent = tuple[int, int]
"""First byte and size."""


def demote_unobserved(run: LaunchTrace, chosen: frozenset[int]) -> LaunchTrace:
    """Turn the unobserved atomic operations of a trace into accesses. Changes the trace, and returns it."""
    unobserved = _unobserved(run, chosen)
    if not any(unobserved.values()):
        return run

    def demoted(event: TraceEvent) -> bool:
        return _strong(event) and event.block in unobserved and (event.first, event.size) in unobserved[event.block]

    stays: dict[int, list[bool]] = {}
    accesses: list[WeakAccess] = []
    for thread in run.threads:
        keeps = [not demoted(event) for event in thread.events]
        if not all(keeps):
            stays[thread.number] = keeps
            accesses += _accesses(thread, keeps)
    leave_out(run, stays)
    for thread in run.threads:
        for event in thread.events:
            parts = [access for access in event.signals if demoted(access)]
            accesses += [_part(event, access) for access in parts]
            event.signals = tuple(access for access in event.signals if access not in parts) if parts else event.signals
    run.single += accesses
    for place in [place for place, events in run.atomics.items() if demoted(events[0])]:
        del run.atomics[place]
    return run


def _unobserved(run: LaunchTrace, chosen: frozenset[int]) -> dict[Block | None, set[Extent]]:
    """The locations that only unobserved operations touch; none in a block in which locations overlap."""
    extents: dict[Block | None, dict[Extent, bool]] = {}
    for thread in run.threads:
        for event in thread.strong():
            known = extents.setdefault(event.block, {})
            place = event.first, event.size
            known[place] = known.get(place, True) and is_atomic(event.label) and event.at not in chosen
    by_block = {}
    for block, places in extents.items():
        ordered = sorted(places)
        apart = all(a + size <= b for (a, size), (b, _) in pairwise(ordered))
        by_block[block] = {place for place, unobserved in places.items() if unobserved and apart}
    return by_block


def _strong(event: TraceEvent) -> bool:
    return isinstance(event.label, Access) and event.block is not None


def _part(issue: TraceEvent, event: TraceEvent) -> WeakAccess:
    """The access of an asynchronous reduction."""
    assert event.block is not None and issue.order is not None
    return WeakAccess(
        event.block, event.first, event.size, event.thread, issue.order, event.label, event.at, event.size, issue
    )


def _accesses(thread: TraceThread, keeps: list[bool]) -> list[WeakAccess]:
    """The unobserved operations of a thread as accesses; no thread observes what they acquire or release."""
    accesses, epoch = [], 0
    for event, stays in zip(thread.events, keeps, strict=True):
        if not stays and event.block is not None and isinstance(event.label, Access):
            label = replace(event.label, sem=Sem.RELAXED)
            size = event.size
            accesses.append(WeakAccess(event.block, event.first, size, thread.number, epoch, label, event.at, size))
        epoch += stays
    return accesses
