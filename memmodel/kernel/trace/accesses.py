"""Weak accesses of a run: of one thread, or of the lanes of a warp with one instruction.

In: nothing. Out: `WeakAccess`, `LaneAccesses`, `done_by`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from memmodel.base.labels import Label
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.threads import TraceThread


class WeakAccess(NamedTuple):
    """A weak access of a thread. `epoch`: how many events its thread had then. `scalar`: bytes of its elements.

    `value`: the bytes that are stored, if they are known. `issue`: of an asynchronous access; `part`: which part of it,
    or of which matrix (`LaneAccesses`). `others`: issues of other lanes that make it together.
    """

    block: Block
    first: int
    size: int
    thread: int
    epoch: int
    label: Label
    at: int
    scalar: int | None
    issue: TraceEvent | None = None
    value: int | None = None
    part: int = 0
    others: tuple[TraceEvent, ...] = ()


class LaneAccesses(NamedTuple):
    """The weak accesses that lanes of a warp make with one instruction, each `size` bytes long.

    `values`: the bytes that each stores, if they are known. `part`: 0, or twice the number of a matrix and perhaps one
    more, where it is not specified which lane makes which access: each stands there twice, made by two lanes.
    """

    block: Block
    firsts: list[int]
    size: int
    threads: list[int]
    epochs: list[int]
    label: Label
    at: int
    scalar: int | None
    values: list[int | None] | None = None
    part: int = 0

    def access(self, number: int) -> WeakAccess:
        """The access of one lane, by its position here."""
        value = None if self.values is None else self.values[number]
        first, thread, epoch = self.firsts[number], self.threads[number], self.epochs[number]
        return WeakAccess(
            self.block, first, self.size, thread, epoch, self.label, self.at, self.scalar, None, value, self.part
        )

    def each(self) -> Iterator[WeakAccess]:
        """One access for each lane."""
        values = self.values or [None] * len(self.firsts)
        for first, thread, epoch, value in zip(self.firsts, self.threads, self.epochs, values, strict=True):
            yield WeakAccess(
                self.block, first, self.size, thread, epoch, self.label, self.at, self.scalar, None, value, self.part
            )


def each_once(rows: Iterable[LaneAccesses]) -> Iterator[WeakAccess]:
    """The accesses of rows; of those that stand there twice the first."""
    for row in rows:
        if not row.part & 1:
            yield from row.each()


def done_by(access: TraceEvent | WeakAccess, thread: TraceThread) -> TraceEvent | WeakAccess:
    """The corresponding access of another thread that does the same."""
    if isinstance(access, WeakAccess):
        return access._replace(thread=thread.number)
    return access if access.order is None or access.thread == thread.number else thread.events[access.order]
