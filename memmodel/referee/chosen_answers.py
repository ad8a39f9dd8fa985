"""Answers for threads that run a given execution again.

In: a Choice. Out: `ChosenAnswers`, an oracle. What the choice says of values is taken as it is; other values are worked
out from who wrote them, over several runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_

from memmodel.base.graphs import has_cycle
from memmodel.base.labels import Access, Side
from memmodel.base.rows import bits
from memmodel.concrete.records import AccessRecord, End, RecordName, Trace
from memmodel.memory.bytes import Cell, Extent, Footprint
from memmodel.program.lowered import LoweredTest
from memmodel.referee.choice import Choice, Writer


class ChosenAnswers:
    """The answers of one execution; a record that it does not have gets none, so that its thread stops there."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._values: dict[RecordName, list[tuple[Cell, int]]] = {}
        for name, cell, value in choice.values:
            self._values.setdefault(name, []).append((cell, value))
        self._sources: dict[RecordName, list[tuple[Writer, Cell]]] = {}
        for writer, reader, cell in choice.rf:
            self._sources.setdefault(reader, []).append((writer, cell))
        self._learned: dict[RecordName, int] = {}
        self._depends_on: dict[RecordName, set[RecordName]] = {}

    # ---- Oracle ------------------------------------------------------------------------------------------------

    def read(self, name: RecordName, footprint: Footprint) -> Sequence[int]:
        """The value of a read as far as it is known."""
        if name not in self._sources and footprint.extents:
            return ()
        return (self._with_chosen_bytes(name, footprint, self._learned.get(name, 0)),)

    def test(self, name: RecordName, object: Cell) -> Sequence[int]:
        return self._choice.answers.get(name, (1,) if self._choice.partial else ())[:1]

    def phases(self, name: RecordName, object: Cell) -> Sequence[int]:
        return self._choice.answers.get(name, ())[:1]

    def pending(self, name: RecordName, object: Cell) -> Sequence[int]:
        return self._choice.answers.get(name, ())[-1:]

    def reduction(self, name: RecordName, op: str) -> Sequence[int]:
        return self._choice.answers.get(name, ())[:1]

    def report(self, name: RecordName) -> Sequence[int]:
        return self._choice.answers.get(name, ())[1:2] or (0,) * self._choice.partial

    def success(self, name: RecordName) -> Sequence[int]:
        return self._choice.answers.get(name, ())[:1]

    # ---- values ------------------------------------------------------------------------------------------------

    def _with_chosen_bytes(self, name: RecordName, footprint: Footprint, data: int) -> int:
        """The data of a read, with the bytes that the choice says in place."""
        for cell, value in self._values.get(name, ()):
            for position, extent in footprint.placed():
                data = _overlaid(data, position, extent, cell, value)
        return data

    def learn(self, lowered: LoweredTest, traces: Sequence[Trace]) -> bool:
        """Work out from the last run what every read returns. True if any returned something else."""
        written: dict[RecordName, list[tuple[Footprint, int]]] = {}
        for trace in traces:
            for record, value in zip(trace.records, trace.values, strict=True):
                if isinstance(record, AccessRecord) and record.access.side is Side.WRITE and value is not None:
                    written.setdefault(record.name, []).append((record.footprint, value))
        changed = False
        for trace in traces:
            for record, value in zip(trace.records, trace.values, strict=True):
                if not isinstance(record.label, Access) or record.label.side is not Side.READ:
                    continue
                assert isinstance(record, AccessRecord)
                data = self._with_chosen_bytes(record.name, record.footprint, self._written(lowered, record, written))
                changed = changed or data != value
                self._learned[record.name] = data
        return changed

    def note_dependencies(self, traces: Sequence[Trace]) -> None:
        """Note which reads each write of these runs depends on."""
        for trace in traces:
            for record in trace.records:
                if isinstance(record, AccessRecord) and record.access.side is Side.WRITE:
                    mask = reduce(or_, record.data, record.addr | record.ctrl)
                    sources = {trace.tokens[token].record for token in bits(mask)}
                    sources |= {number for number in (record.half_of, record.copies) if number is not None}
                    names = {trace.records[number].name for number in sources}
                    self._depends_on.setdefault(record.name, set()).update(names)

    @property
    def circular(self) -> bool:
        """True if some value supports itself, by a chain of reads-from and dependencies that closes."""
        graph: dict[RecordName, set[RecordName]] = {name: set(reads) for name, reads in self._depends_on.items()}
        for reader, sources in self._sources.items():
            graph.setdefault(reader, set()).update(writer for writer, _ in sources if writer is not None)
        return has_cycle(graph)

    def _written(
        self, lowered: LoweredTest, record: AccessRecord, written: dict[RecordName, list[tuple[Footprint, int]]]
    ) -> int:
        """The data of a read, byte by byte from who wrote it."""
        data = 0
        for writer, cell in self._sources.get(record.name, ()):
            if writer is None:
                parts = [(cell, lowered.space.initial(cell.instance, cell.first, cell.size))]
            else:
                parts = [part for write in written.get(writer, ()) for part in _parts_in(cell, *write)]
            for part, value in parts:
                for position, extent in record.footprint.placed():
                    data = _overlaid(data, position, extent, part, value)
        return data


def _overlaid(data: int, position: int, extent: Extent, cell: Cell, value: int) -> int:
    """The data with the bytes of a cell in place, as far as it lies in an extent that stands at a position."""
    first, end = max(extent.first, cell.first), min(extent.end, cell.end)
    if extent.instance != cell.instance or first >= end:
        return data
    mask = (1 << (end - first) * 8) - 1
    at = (position + first - extent.first) * 8
    return data & ~(mask << at) | (value >> (first - cell.first) * 8 & mask) << at


def _parts_in(cell: Cell, footprint: Footprint, value: int) -> Iterator[tuple[Cell, int]]:
    """The bytes of a cell that a write with that value writes."""
    for position, extent in footprint.placed():
        first, end = max(extent.first, cell.first), min(extent.end, cell.end)
        if extent.instance == cell.instance and first < end:
            at = (position + first - extent.first) * 8
            yield Cell(cell.instance, first, end - first), value >> at & (1 << (end - first) * 8) - 1


def stopped(traces: Sequence[Trace], waiting: RecordName | None) -> Trace | None:
    """The trace that ends as an execution says: where the thread waits for ever, or else where it is complete."""
    for trace in traces:
        ending = trace.ending
        if waiting is None:
            if ending.complete:
                return trace
        elif ending.end is End.WAITS and (ending.step, ending.time) == (waiting.step, waiting.time):
            return trace
    return None
