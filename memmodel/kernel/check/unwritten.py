"""Shared memory that is read though nothing in the launch writes it.

In: a run. Out: findings. This is no rule of the model: such memory holds something, and a kernel may drop what it read.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from memmodel.base.labels import Label, Side, side_of
from memmodel.kernel.machine.memory import SHARED_START
from memmodel.kernel.order.verdict import FindingPlace, KernelFinding
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.module.syntax import PtxFunction
from memmodel.ptx.vocabulary import Space

RULE = "unwritten-shared-memory"


def unwritten(entry: PtxFunction, run: LaunchTrace) -> list[KernelFinding]:
    """The first read of each instruction that touches shared memory of the kernel that no thread has written."""
    body, written = entry.body or (), dict[Block, set[int]]()
    for label, block, first, size, _, _ in _accesses(run):
        if side_of(label) is Side.WRITE:
            written.setdefault(block, set()).update(range(first, first + size))
    findings: dict[int, KernelFinding] = {}
    for label, block, first, size, at, number in _accesses(run):
        if side_of(label) is not Side.READ or at in findings:
            continue
        missing = (byte for byte in range(max(first, SHARED_START), first + size) if byte not in written.get(block, ()))
        byte = next(missing, None)
        if byte is not None:
            thread = run.threads[number]
            place = FindingPlace(body[at], "reads", thread.cta, thread.warp, thread.lane, number)
            where = f"byte {byte} of {block.instance.name}"
            findings[at] = KernelFinding(
                RULE, "undefined behaviour", "nothing in the launch writes it", (place,), where
            )
    return list(findings.values())


def _accesses(run: LaunchTrace) -> Iterator[tuple[Label, Block, int, int, int, int]]:
    """The accesses to shared memory: label, memory, first byte, bytes, instruction, thread."""
    weak = ((access.label, access.block, access.first, access.size, access.at, access.thread) for access in run.weak())
    strong = (
        (event.label, event.block, event.first, event.size, event.at, event.thread)
        for thread in run.threads
        for event in thread.strong()
        if event.block is not None
    )
    yield from (access for access in chain(weak, strong) if access[1].instance.space is Space.SHARED)
