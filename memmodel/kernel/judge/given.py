"""Tensor maps that are as they were before the launch.

In: LaunchTrace. Out: uses. A map in global memory that the host wrote is used after an acquire fence only (PTX ISA
"Memory Consistency Model", "Memory synchronization"); which fence does is the model's. Parameters and constants need
none, and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from memmodel.base.labels import Access, Role, Side
from memmodel.kernel.judge.events import LaunchTrace, WeakAccess
from memmodel.kernel.judge.uses import Use
from memmodel.kernel.machine.memory import Block
from memmodel.ptx import Space


def given_maps(run: LaunchTrace) -> Iterator[Use]:
    """The reads of maps in global memory of which nothing in the run writes a byte."""
    reads = [one for one in run.single if one.block.instance.space is Space.GLOBAL and _is_map(one)]
    if not reads:
        return
    blocks = {one.block for one in reads}
    written: dict[Block, list[tuple[int, int]]] = {block: [] for block in blocks}
    for one in run.weak(blocks):
        if isinstance(one.label, Access) and one.label.side is Side.WRITE:
            written[one.block].append((one.first, one.first + one.size))
    for event in (event for thread in run.threads for event in thread.events):
        if event.block in written and isinstance(event.label, Access) and event.label.side is Side.WRITE:
            written[event.block].append((event.first, event.first + event.size))
    for one in reads:
        end = one.first + one.size
        if not any(one.first < last and first < end for first, last in written[one.block]):
            yield Use(
                one.thread, one.epoch, one.label, one.scalar, one.at, one.first, one.size, one.issue, None, (one,),
                one.part, one.others,
            )  # fmt: skip


def _is_map(one: WeakAccess) -> bool:
    return isinstance(one.label, Access) and one.label.role is Role.DESCRIPTOR
