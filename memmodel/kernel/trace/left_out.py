"""A trace without some of its events.

In: LaunchTrace, for threads whether each of their events stays. Out: the trace, changed in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from memmodel.kernel.trace.launch import LaunchTrace


def leave_out(run: LaunchTrace, stays: Mapping[int, Sequence[bool]]) -> None:
    """Remove events of threads. `stays`: for a thread with such events, whether each of its events stays. Epochs count
    the events that stay.
    """
    left = {number: [0, *accumulate(map(int, events))] for number, events in stays.items()}
    for number, counts in left.items():
        thread = run.threads[number]
        thread.events = [event for event, kept in zip(thread.events, stays[number], strict=True) if kept]
        for order, event in enumerate(thread.events):
            event.order = order
        thread.epoch = counts[thread.epoch]
        thread.settle()
    if not left:
        return
    for index, access in enumerate(run.single):
        if access.thread in left:
            run.single[index] = access._replace(epoch=left[access.thread][access.epoch])
    for lane_accesses in run.lanes:
        for index, number in enumerate(lane_accesses.threads):
            if number in left:
                lane_accesses.epochs[index] = left[number][lane_accesses.epochs[index]]
