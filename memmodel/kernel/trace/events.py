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

    `order`: place among the events of its thread; None for a part. `block`, `first`, `size`: the bytes that it is
    about. `note`: distinguishes events of one instruction, equal for threads that do the same. `range`: the bytes that
    a fence names, and the tensor map of an issue. `owners`: of an event about tensor memory the allocations.

    Of an issue, `signals`: the events that signal its completion, and its strong accesses; `twin`: equal for copies
    that lanes issue at once, from one place to another. `completes`: the issues that it completes, all of them or their
    `parts`, or only their reads (`reads_only`).

    Of a strong access, `turn`: how many the thread had made before with the instruction; `bits`: the value read or
    left; `source`: the write that a read reads from; `partner`: the other half of an atomic operation; `known`: values
    of registers that a loop around a load looks at; `observed`: writes that a read observes through atomic operations,
    whichever it reads from; `value`: what a store leaves, if that is known; `given`: the operand of an atomic
    operation, at its write.

    `beside`: of a part of a multicast operation on mbarrier objects the first part, with which it has no program order.
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
    beside: TraceEvent | None = field(default=None, repr=False)
