"""Events of a run that may order its accesses.

In: nothing. Out: `TraceEvent`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from memmodel.base.labels import Label
from memmodel.base.points import BarrierId
from memmodel.kernel.trace.blocks import Block
from memmodel.program.fields import Bits


@dataclass(slots=True, eq=False)
class TraceEvent:
    """Something a thread did that may order its accesses, or a part of an asynchronous instruction.

    `order`: place among the events of its thread; None for a part. `block`, `first`, `size`: what it is about.
    `note`: what tells it from others of the same instruction, the same for threads that do the same. `signals`: of an
    issue, those that tell of its end, and its strong accesses. `completes`: the issues that are over with it, all of
    them or their `parts`, or only what they read (`reads_only`). `range`: the bytes that a fence names, and of an issue
    its tensor map. `value`: of a strong store, what it leaves, if that is known. `known`: of a strong load, values of
    registers that a loop around it looks at. `owners`: of an event about tensor memory the allocations. `twin`: the
    same for copies that lanes issue at once, from one place to another. `turn`: of a strong access, how many its thread
    had made before with the instruction; `bits`: what it found, or leaves. `given`: the operand of an atomic operation,
    of its write. `observed`: of a read, writes that it observes through atomic operations, whichever it reads from.
    """

    thread: int
    order: int | None
    at: int
    label: Label
    block: Block | None = None
    first: int = 0
    size: int = 0
    issue: TraceEvent | None = field(default=None, repr=False)
    signals: tuple[TraceEvent, ...] = ()
    parts: frozenset[int] | None = None
    reads_only: bool = False
    range: tuple[Block, int, int] | None = None
    owners: tuple[TraceEvent, ...] = ()
    twin: int | None = None
    note: tuple[object, ...] = ()
    value: int | None = None
    known: tuple[tuple[int, int], ...] = ()
    barrier: BarrierId | None = None
    generation: int = 0
    count: int | None = None
    completes: tuple[TraceEvent, ...] = ()
    source: TraceEvent | None = field(default=None, repr=False)
    partner: TraceEvent | None = field(default=None, repr=False)
    time: int = 0
    turn: int = -1
    bits: Bits | None = None
    given: int | None = None
    observed: tuple[TraceEvent, ...] = ()
