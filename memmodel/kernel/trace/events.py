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
    """Something that a thread did and that may order its accesses, or a part of an asynchronous instruction."""

    thread: int
    order: int | None
    """Its place among the events of its thread; None for a part."""
    at: int
    """The number of its instruction."""
    label: Label
    block: Block | None = None
    """The memory that it is about; `first` and `size` say which bytes of it."""
    first: int = 0
    size: int = 0
    issue: TraceEvent | None = field(default=None, repr=False)
    """Of a part, the event that issues it."""
    signals: tuple[TraceEvent, ...] = ()
    """Of an issue, the events that signal its completion, and its strong accesses."""
    parts: frozenset[int] | None = None
    """The parts of the issues that it completes; None: all."""
    reads_only: bool = False
    """True if it completes only the reads of the issues."""
    range: tuple[Block, int, int] | None = None
    """The bytes that a fence names, or the tensor map of an issue."""
    owners: tuple[TraceEvent, ...] = ()
    """Of an event about tensor memory, the allocations."""
    twin: int | None = None
    """Of issues, equal for copies that lanes issue at once, from one place to another."""
    note: tuple[object, ...] = ()
    """Distinguishes events of one instruction, and is equal for threads that do the same."""
    value: int | None = None
    """What a store leaves, if that is known."""
    known: tuple[tuple[int, int], ...] = ()
    """Of a load, values of the registers that a loop around it looks at."""
    barrier: BarrierId | None = None
    generation: int = 0
    count: int | None = None
    completes: tuple[TraceEvent, ...] = ()
    """The issues that it completes."""
    source: TraceEvent | None = field(default=None, repr=False)
    """Of a read, the write that it reads from."""
    partner: TraceEvent | None = field(default=None, repr=False)
    """The other half of an atomic operation."""
    time: int = 0
    turn: int = -1
    """Of a strong access, how many the thread had made before with the instruction."""
    bits: Bits | None = None
    """Of a strong access, the value read or left."""
    given: int | None = None
    """The operand of an atomic operation, at its write."""
    observed: tuple[TraceEvent, ...] = ()
    """Of a read, the writes that it observes through atomic operations, whichever it reads from."""
    beside: TraceEvent | None = field(default=None, repr=False)
    """Of a part of a multicast operation on mbarrier objects, the first part: they have no program order."""
