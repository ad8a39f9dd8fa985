"""The choices that make one candidate execution out of a test, named so that two engines can speak of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from memmodel.base.labels import Side
from memmodel.concrete.records import RecordName
from memmodel.memory.bytes import Cell
from memmodel.memory.cells import Starts

Writer = RecordName | None
"""Who wrote some bytes: a record of a thread, or None for the initial write."""

Place = tuple[RecordName | None, int]
"""The life of an mbarrier object (the init that began it, or None), and how many of its phases are over."""


Ordered = tuple[Writer, Side | None, Cell | None, bool]
"""An event of a total order: its record (None for an initial write), which half and bytes of an access it is, and
whether it is the issue of what the record does: an issue and its signal may share a record."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One candidate execution of a test, as the other engine found it; `replay` builds it and judges it afresh.

    Cells here may be finer or coarser than those of the execution: what is said of a cell holds for all its bytes.
    """

    values: tuple[tuple[RecordName, Cell, int], ...]
    """(reader, cell, its value), as far as anything depends on it."""
    answers: dict[RecordName, tuple[int, ...]]
    """What operations on mbarrier objects, barrier reductions and try_cancel requests answered to their threads; for an
    arrive, the state and then the pending count."""
    rf: tuple[tuple[Writer, RecordName, Cell], ...]
    """(writer, reader, cell)."""
    co: tuple[tuple[RecordName, RecordName, Cell], ...]
    """(earlier, later, cell), without initial writes."""
    sync_fence: tuple[tuple[RecordName, RecordName], ...]
    """All pairs of the order on fence.sc."""
    generations: dict[RecordName, int]
    """The generation of every arrive half of a barrier."""
    mbar: tuple[tuple[Cell, tuple[RecordName, ...]], ...]
    """For each object, its updates in order."""
    seen: dict[RecordName, Place]
    """What each test saw."""
    finals: tuple[tuple[Cell, Writer], ...]
    """Who wrote the final bytes of a cell; for a cell that is left out, any co-maximal write."""
    waiting: tuple[RecordName | None, ...]
    """For each thread, the step where it waits for ever, or None."""
    starts: Starts = field(default_factory=Starts)
    """Where matrices of the test begin, those that this execution does not use included."""
    orders: tuple[tuple[int, tuple[Ordered, ...]], ...] = ()
    """For each definition of the model that chooses a total order, by its index: its events in order."""
    partial: bool = False
    """True if what the choice does not name of barriers and mbarrier objects may be anything that fits; tests
    succeed."""
