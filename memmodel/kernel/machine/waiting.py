"""Lanes that wait for ever, and what they wait for.

In: a group of lanes. Out: what its barrier, mbarrier object or peer CTA lacks, as text and as a record.
"""

from __future__ import annotations

from memmodel.base.labels import Access, Side, is_with_outside, side_of
from memmodel.kernel.machine.parts import LaneGroup, PairTurn, Warp, WarpArrival
from memmodel.kernel.machine.state import Machine
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.objects import AwaitedPhase
from memmodel.kernel.trace.stuck import StuckLanes
from memmodel.ptx.vocabulary import Space

FROM_OUTSIDE = (
    "threads poll memory, with .sys scope, that nothing in this launch writes: the host or another device may"
)
"""Why such a wait is no hang of the launch."""


def lacks(machine: Machine, warp: Warp, group: LaneGroup) -> str:
    """What the barrier, the mbarrier object or the peer CTA that threads wait for lacks."""
    if isinstance(group.waits, PairTurn):
        return ": no warp of the peer CTA does the same"
    if isinstance(group.waits, WarpArrival):
        return ": other lanes of their warp have not arrived"
    if isinstance(group.waits, tuple) and group.waits[0] in warp.cta.barriers:
        counts = warp.cta.barriers[group.waits[0]].counts
        arrived = counts.arrived_threads.bit_count() if counts.needed is None else counts.arrived
        needed = counts.size(warp.cta.everyone)
        return f": {arrived} of {needed} threads have arrived at barrier {group.waits[0]}"
    if group.mbarrier is None:
        return ""
    mbarrier = machine.object(*group.mbarrier)
    if not mbarrier.live:
        return ": its mbarrier object is not initialised"
    missing = [f"lacks {mbarrier.pending} of {mbarrier.expected} arrivals"] if mbarrier.pending else []
    missing += [f"lacks {mbarrier.tx} bytes that were announced"] if mbarrier.tx > 0 else []
    missing += [f"got {-mbarrier.tx} bytes that nobody announced"] if mbarrier.tx < 0 else []
    text = f": phase {mbarrier.over} of its mbarrier object {' and '.join(missing) or 'has not ended'}"
    return text + _missed(_awaited(machine, warp.threads[group.lanes[0]].number, group))


def awaits_outside(machine: Machine, warp: Warp, group: LaneGroup) -> bool:
    """True if lanes poll global memory that nothing in the launch writes, and name the scope of the system."""
    if group.waits is not None or group.mbarrier is not None:
        return False
    words: dict[tuple[int, int, int], TraceEvent] = {}
    for lane in group.lanes:
        polled = next((event for event in reversed(warp.threads[lane].events) if event.at == group.at), None)
        if polled is None or polled.block is None or polled.block.instance.space is not Space.GLOBAL:
            return False
        if not isinstance(polled.label, Access) or not is_with_outside(polled.label):
            return False
        words[id(polled.block), polled.first, polled.size] = polled
    return not any(_is_written(machine.run, polled) for polled in words.values())


def _is_written(run: LaunchTrace, polled: TraceEvent) -> bool:
    """True if the launch writes some of the bytes that an event reads, in another way than by polling them."""
    end = polled.first + polled.size
    strong = [event for thread in run.threads for event in thread.strong() if event.at != polled.at]
    accesses: list[TraceEvent | WeakAccess] = [*strong, *run.single]
    for access in accesses:
        within = access.block is polled.block and access.first < end and polled.first < access.first + access.size
        if within and side_of(access.label) is not Side.READ:
            return True
    return any(
        row.block is polled.block and side_of(row.label) is not Side.READ
        and any(first < end and polled.first < first + row.size for first in row.firsts)
        for row in run.lanes
    )  # fmt: skip


def _missed(awaited: AwaitedPhase) -> str:
    """A sentence for threads that missed phases; empty if they missed none."""
    if not awaited.is_late:
        return ""
    before = f"{awaited.phase} phases ended before it, and its threads waited for {awaited.waited} of them"
    return f"; {before}: by parity, a late wait passes on the phase after the next"


def stuck(machine: Machine, warp: Warp, group: LaneGroup) -> StuckLanes:
    """Lanes that wait for ever."""
    threads = tuple(warp.threads[lane].number for lane in group.lanes)
    return StuckLanes(threads, group.at, None if group.mbarrier is None else _awaited(machine, threads[0], group))


def _awaited(machine: Machine, thread: int, group: LaneGroup) -> AwaitedPhase:
    """The phase for which a thread waits for ever."""
    assert group.mbarrier is not None
    mbarrier = machine.object(*group.mbarrier)
    tests = (
        step for step in machine.run.objects.get(group.mbarrier, ()) if not step.update and step.life == mbarrier.life
    )
    waited = sum(step.event.thread == thread for step in tests) if group.parity else mbarrier.over
    return AwaitedPhase(*group.mbarrier, mbarrier.over, mbarrier.pending, mbarrier.tx, mbarrier.live, waited)
