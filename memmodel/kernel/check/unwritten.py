"""Shared memory that is read though nothing in the launch writes it.

In: a run. Out: findings. This is no rule of the model: such memory holds something, and a kernel may drop what it read.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from memmodel.base.labels import Label, Side, side_of
from memmodel.kernel.machine.memory import SHARED_START
from memmodel.kernel.order.judging import AnyAccess
from memmodel.kernel.order.verdict import FindingPlace, KernelFinding
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.module.syntax import PtxFunction
from memmodel.ptx.vocabulary import Space

RULE = "unwritten-shared-memory"


class SharedAccess(NamedTuple):
    """An access to bytes of shared memory. `at`: the number of its instruction. `thread`: of its thread."""

    label: Label
    block: Block
    first: int
    size: int
    at: int
    thread: int

    @property
    def bytes(self) -> range:
        return range(self.first, self.first + self.size)


def unwritten(entry: PtxFunction, run: LaunchTrace) -> list[KernelFinding]:
    """The first read of each instruction that touches shared memory of the kernel that no thread has written."""
    body, written = entry.body or (), dict[Block, set[int]]()
    for access in _accesses(run):
        if side_of(access.label) is Side.WRITE:
            written.setdefault(access.block, set()).update(access.bytes)
    findings: dict[int, KernelFinding] = {}
    for access in _accesses(run):
        if side_of(access.label) is not Side.READ or access.at in findings:
            continue
        known = written.get(access.block, ())
        byte = next((byte for byte in access.bytes if byte >= SHARED_START and byte not in known), None)
        if byte is not None:
            thread = run.threads[access.thread]
            place = FindingPlace(body[access.at], "reads", thread.cta, thread.warp, thread.lane, access.thread)
            where = f"byte {byte} of {access.block.instance.name}"
            findings[access.at] = KernelFinding(
                RULE, "undefined behaviour", "nothing in the launch writes it", (place,), where
            )
    return list(findings.values())


def _accesses(run: LaunchTrace) -> Iterator[SharedAccess]:
    """The accesses to shared memory, weak ones first."""
    accesses: Iterator[AnyAccess] = chain(run.weak(), *(thread.strong() for thread in run.threads))
    for access in accesses:
        block = access.block
        if block is not None and block.instance.space is Space.SHARED:
            yield SharedAccess(access.label, block, access.first, access.size, access.at, access.thread)
