"""What a launch leaves in global memory for the next one.

In: a launch that was judged. Out: `LeftContents`. Settled here: bytes are known only if they are the same in every
execution. That holds for weak writes of a launch that is clean for all schedules: weak writes to one byte that nothing
orders are a race. What strong accesses and copies write is not followed; multimem addresses may write anywhere.
"""

from __future__ import annotations

from memmodel.base.labels import Side, side_of
from memmodel.kernel.launch import LeftContents
from memmodel.kernel.machine.memory import WORKSPACE_START
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.vocabulary import Space


def left_by(trace: LaunchTrace | None, verdict: KernelVerdict) -> LeftContents | None:
    """The contents of memory after a run of a launch. None where the verdict is not clean, or not about all CTAs:
    nothing is known then of any memory.
    """
    if trace is None or verdict.word != "clean" or verdict.choices or verdict.ctas:
        return None
    if trace.problems or trace.choices or trace.elected or trace.cancels:
        return None  # another lane or cluster may have stored something else
    if any(buffer.multimem is not None for buffer in verdict.launch.all_buffers):
        return None
    for access in trace.single:
        if side_of(access.label) is Side.WRITE and access.issue is not None:
            access.block.forget(access.first, access.size)
    for thread in trace.threads:
        for event in thread.strong():
            if side_of(event.label) is Side.WRITE and event.block is not None:
                event.block.forget(event.first, event.size)
    return LeftContents(
        tuple(
            (block.address, bytes(block.data), bytes(block.known))
            for block in trace.memory
            if block.known is not None and any(block.known) and block.instance.space is Space.GLOBAL
            if block.address != WORKSPACE_START
        )
    )
