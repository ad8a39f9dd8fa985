"""Strong loads whose values differ between executions, though no thread waits for them and nothing branches on them.

In: LaunchTrace, Roles, the causality of a model. Out: notes. Strong accesses do not race, so that no finding tells of a
sum that lanes build with volatile accesses and without bar.warp.sync: it is what it is by chance.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from memmodel.base.labels import Access, Side, is_atomic, side_of
from memmodel.kernel.conflicts.roles import Roles
from memmodel.kernel.order.last_writes import Before
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.module.syntax import PtxInstruction

MOST = 3
"""Pairs of instructions that are named."""


Pair = tuple[TraceEvent, TraceEvent]


def meeting(run: LaunchTrace, roles: Roles, decided: Container[int]) -> list[Pair]:
    """Strong loads with strong stores of other threads to the same bytes, one pair for those that are alike.

    `decided`: the numbers of loads that are waits, or on whose results the run depends: all their values are looked at.
    """
    reads, writes = dict[Block, list[TraceEvent]](), dict[Block, list[TraceEvent]]()
    for event in (event for thread in run.threads for event in thread.strong()):
        if event.block is None or event.issue is not None or not isinstance(event.label, Access):
            continue
        if side_of(event.label) is Side.WRITE:
            writes.setdefault(event.block, []).append(event)
        elif not is_atomic(event.label) and event.at not in decided:
            reads.setdefault(event.block, []).append(event)
    pairs: dict[object, Pair] = {}
    for block, mine in reads.items():
        for read in mine:
            for write in writes.get(block, ()):
                if write.thread != read.thread and _overlap(read, write):
                    how = roles.related(run.threads[read.thread], run.threads[write.thread])
                    sides = [(roles.who[side.thread], side.at, side.order) for side in (read, write)]
                    pairs.setdefault((how, *sides), (read, write))
    return list(pairs.values())


def notes_on(pairs: Iterable[Pair], body: Sequence[PtxInstruction], before: Before) -> list[str]:
    """A note for each two instructions of which nothing orders the accesses."""
    open_ = dict.fromkeys(
        (read.at, write.at) for read, write in pairs if not (before(read, write) or before(write, read))
    )
    notes = [
        f"{body[read].at_line} loads what {body[write].at_line} "
        "stores, or not, as the schedule has it; both are strong, so that this is no data race"
        for read, write in list(open_)[:MOST]
    ]
    return [*notes, f"so do {len(open_) - MOST} other pairs of lines"] if len(open_) > MOST else notes


def _overlap(first: TraceEvent, second: TraceEvent) -> bool:
    return first.first < second.first + second.size and second.first < first.first + first.size
