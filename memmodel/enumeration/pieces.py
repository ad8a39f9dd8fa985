"""What a trace reads and writes, cell by cell: enough to see whether traces of different threads can go together.

In: Cutting, Trace. Out: `TraceBytes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.base.labels import Side
from memmodel.concrete.cutting import Cutting
from memmodel.concrete.records import AccessRecord, Trace
from memmodel.memory.bytes import Cell, Footprint

Written = tuple[int, int]
"""The number of a cell, and a value."""


class Pieces:
    """The cells of footprints, as `Problem.cutting` has them, by number."""

    def __init__(self, cutting: Cutting) -> None:
        self._cutting = cutting
        self._known: dict[Footprint, list[tuple[int, int, int]]] = {}
        self.cells: dict[Cell, int] = {}

    def of(self, footprint: Footprint) -> list[tuple[int, int, int]]:
        """(bit at which the cell begins in the data, mask, number of the cell)."""
        if footprint not in self._known:
            self._known[footprint] = [
                (at * 8, (1 << cell.size * 8) - 1, self.cells.setdefault(cell, len(self.cells)))
                for at, cell, _ in self._cutting.pieces(footprint)
            ]
        return self._known[footprint]


@dataclass(frozen=True, slots=True)
class TraceBytes:
    """What a trace reads and writes."""

    reads: frozenset[Written]
    writes: frozenset[Written]

    def reads_in(self, number: dict[Written, int]) -> int:
        """What is read, as a mask of the numbers."""
        return sum(1 << number[written] for written in self.reads if written in number)

    def writes_in(self, number: dict[Written, int]) -> int:
        """What is written, as a mask of the numbers."""
        return sum(1 << number[written] for written in self.writes if written in number)

    @staticmethod
    def of(trace: Trace, pieces: Pieces) -> TraceBytes:
        reads: set[Written] = set()
        writes: set[Written] = set()
        for record, data in zip(trace.records, trace.values, strict=True):
            if isinstance(record, AccessRecord) and data is not None:
                into = reads if record.access.side is Side.READ else writes
                into.update((number, data >> at & mask) for at, mask, number in pieces.of(record.footprint))
        return TraceBytes(frozenset(reads), frozenset(writes))
