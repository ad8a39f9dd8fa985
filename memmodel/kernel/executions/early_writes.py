"""Writes that may be performed before a read that precedes them, because nothing in the text makes them depend on it.

In: the instructions of a function. Out: `all_dependent`; `by_others`. A write depends on a read through its operands
and its guard, and where a branch on what was read may skip it, or leads back to the read: these are the dependencies
of No-Thin-Air.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memmodel.base import graphs
from memmodel.isa.lowered import Body
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace

MOST_STATES = 20_000
"""Instructions with registers that are looked at for dependencies."""


def all_dependent(body: Body, read: int, writes: Collection[int]) -> bool:
    """True if every write on the paths after a read depends on it by the text."""
    start = frozenset(body[read].writes), frozenset[int]()
    waiting = [(at, *start) for at in body[read].follows]
    seen: set[tuple[int, frozenset[int], frozenset[int]]] = set()
    skipped: dict[tuple[int, int], bool] = {}
    while waiting:
        at, tainted, branches = state = waiting.pop()
        if state in seen or at >= len(body):
            continue
        seen.add(state)
        if len(seen) > MOST_STATES or body[at].calls or body[at].jumps_by_table:
            return False
        does = body[at]
        guard = does.instruction.guard
        guarded = guard is not None and guard.slot in tainted
        uses = guarded or not tainted.isdisjoint(does.reads)
        if at in writes and not uses:
            for branch in branches:
                if (branch, at) not in skipped:
                    skipped[branch, at] = _may_be_skipped(body, branch, at, read)
            if not any(skipped[branch, at] for branch in branches):
                return False
        if guarded and does.changes_control:
            branches |= {at}
        if uses:
            tainted |= frozenset(does.writes)
        elif guard is None:
            tainted -= frozenset(does.writes)
        waiting += [(following, tainted, branches) for following in does.follows]
    return True


def _may_be_skipped(body: Body, branch: int, write: int, read: int) -> bool:
    """True if one way from a branch ends, or leads back to the read, without the write."""

    def ends(at: int) -> bool:
        return at >= len(body) or body[at].ends or body[at].traps or not body[at].follows

    def follows(at: int) -> tuple[int, ...]:
        return () if at >= len(body) or at in (write, read) else body[at].follows

    if ends(branch):
        return True
    for way in body[branch].follows:
        reached = graphs.reached([way], follows)
        if read in reached or any(ends(at) for at in reached if at != write):
            return True
    return False


def by_others(run: LaunchTrace, reads: Sequence[TraceEvent], writes: Sequence[TraceEvent]) -> bool:
    """True if a thread writes after another thread of its cluster has read: barriers and shuffles may lead there."""
    together: dict[object, dict[int, int]] = {}
    for read in reads:
        first = together.setdefault(_cluster(run, read), {})
        first[read.thread] = min(read.time, first.get(read.thread, read.time))
    return any(
        thread != write.thread and time < write.time
        for write in writes
        for thread, time in together.get(_cluster(run, write), {}).items()
    )


def _cluster(run: LaunchTrace, event: TraceEvent) -> object:
    place = run.threads[event.thread].place
    return place.cta_id if place.cluster is None else place.cluster_id
