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
    """The position among the events of the thread; None for a part."""
    at: int
    """The number of its instruction."""
    label: Label
    block: Block | None = None
    """The memory that it is about; `first` and `size` say which bytes of it."""
    first: int = 0
    size: int = 0
    issue: TraceEvent | None = field(default=None, repr=False)
    """For a part: the event that issues it."""
    signals: tuple[TraceEvent, ...] = ()
    """For an issue: the events that signal its completion, and its strong accesses."""
    parts: frozenset[int] | None = None
    """The parts of the issues that it completes; None: all."""
    reads_only: bool = False
    """True if it completes only the reads of the issues."""
    range: tuple[Block, int, int] | None = None
    """The bytes that a fence names, or the tensor map of an issue."""
    owners: tuple[TraceEvent, ...] = ()
    """Of an event about tensor memory, the allocations."""
    twin: int | None = None
    """For an issue: equal for copies with equal source and destination that the lanes of a warp issue together."""
    note: tuple[object, ...] = ()
    """Distinguishes events of one instruction, and is equal for threads that do the same."""
    value: int | None = None
    """For a store: its value, if known."""
    known: tuple[tuple[int, int], ...] = ()
    """For a load in a loop that polls: the known values of the registers that decide whether the loop repeats."""
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
    """For a strong access: the number of earlier ones of the same thread and instruction."""
    bits: Bits | None = None
    """Of a strong access, the value read or left."""
    given: int | None = None
    """The operand of an atomic operation, at its write."""
    observed: tuple[TraceEvent, ...] = ()
    """For a read: the writes that it observes through atomic operations, whichever of these it reads from."""
    beside: TraceEvent | None = field(default=None, repr=False)
    """Of a part of a multicast operation on mbarrier objects, the first part: they have no program order."""

    @property
    def key(self) -> tuple[int, int, int]:
        """Thread, instruction, turn: the same for a strong access in all runs that do the same up to it."""
        return self.thread, self.at, self.turn

    @property
    def number(self) -> int | None:
        """What a strong access read or left, as a number; None if not all its bits are known."""
        return None if self.bits is None else self.bits.number(8 * self.size)
