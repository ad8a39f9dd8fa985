"""One concrete execution, with every base set and relation of cat spelled out.

In: a trace for each thread, and what the execution decides (rf, co, sync_fence, barriers, objects). Out: `Execution`.
Its sets are bit masks over event numbers; its relations are lists of rows (row a has bit b set: a is related to b).
Settled here: which events an execution has. The tables of `memmodel.base` say what they are in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

from memmodel.base.labels import (
    Access,
    Family,
    GroupWait,
    InitialWrite,
    Issue,
    Label,
    Mark,
    Marker,
    Mbarrier,
    Signal,
)
from memmodel.base.points import Point
from memmodel.base.relations import RELATION_ROWS
from memmodel.base.rows import Rows, bits, mask_of, union
from memmodel.base.sets import SET_ROWS, names_of
from memmodel.concrete.cutting import Cutting
from memmodel.concrete.records import (
    AccessRecord,
    BarrierRecord,
    BytesRead,
    End,
    ObjectRecord,
    PlainRecord,
    Record,
    Trace,
    WaitRecord,
)
from memmodel.litmus.syntax import Instruction
from memmodel.memory.bytes import Extent, Instance
from memmodel.program.lowered import LoweredTest


@dataclass(frozen=True, slots=True)
class ConcreteEvent:
    """One event. `record`: (thread, number of the record) that it belongs to, None for an initial write.

    `at`: for a memory event, where its bytes stand in the data of the record.
    """

    point: Point
    record: tuple[int, int] | None = None
    at: int = 0

    @property
    def label(self) -> Label:
        return self.point.label


@dataclass(frozen=True, slots=True)
class Execution:
    """A candidate execution: its frame, the sets and relations that its choices decide, and its values.

    `values`: of memory events, their bytes as a number.
    """

    frame: FixedPart
    values: tuple[int | None, ...]
    chosen_sets: dict[str, int]
    chosen_relations: dict[str, Rows]

    @property
    def events(self) -> list[ConcreteEvent]:
        return self.frame.events

    def set(self, name: str) -> int:
        """A base set, as a mask."""
        return self.chosen_sets[name] if name in self.chosen_sets else self.frame.set(name)

    def relation(self, name: str) -> Rows:
        """A base relation, as rows."""
        return self.chosen_relations[name] if name in self.chosen_relations else self.frame.relation(name)


class FixedPart:
    """The events of an execution, and all of it that values, rf and other choices do not change.

    `first[t]`: for each record of thread t, the number of its first event. `asked`: elements that a question reads.
    """

    def __init__(self, lowered: LoweredTest, traces: Sequence[Trace], asked: Iterable[Extent] = ()) -> None:
        self.lowered = lowered
        self.traces = traces
        self._placed = [record for trace in traces for record in trace.records if isinstance(record, AccessRecord)]
        copies = [
            (_source(trace, record.copies).footprint, record.footprint)
            for trace in traces
            for record in trace.records
            if isinstance(record, AccessRecord) and record.copies is not None
        ]
        self.cutting = Cutting([record.footprint for record in self._placed], copies, asked)
        self.events: list[ConcreteEvent] = []
        self.of_record: dict[tuple[int, int], list[int]] = {}
        self._operations: dict[object, int] = {}
        self._sets: dict[str, int] = {}
        self._relations: dict[str, Rows] = {}
        self._initial_writes()
        for thread, trace in enumerate(traces):
            for number, record in enumerate(trace.records):
                self._record(thread, number, record)
        self.count = len(self.events)

    # ---- events ----------------------------------------------------------------------------------------------

    def _initial_writes(self) -> None:
        """An initial write for every cell that an access touches."""
        order: dict[Instance, int] = {instance: number for number, instance in enumerate(self.lowered.space.instances)}
        cells = {cell for record in self._placed for _, cell, _ in self.cutting.pieces(record.footprint)}
        for cell in sorted(cells, key=lambda cell: (order[cell.instance], cell.first)):
            point = Point(len(self.events), InitialWrite(), cell=cell, name=cell.instance.name)
            self.events.append(ConcreteEvent(point))

    def _record(self, thread: int, number: int, record: Record) -> None:
        """The events of a record: one for each cell of an access, one of anything else."""
        mine = self.of_record.setdefault((thread, number), [])
        issue = None if record.issue is None else self.of_record[thread, record.issue][0]
        place = self.lowered.test.threads[thread].place
        if not isinstance(record, AccessRecord):
            point = Point(
                len(self.events),
                record.label,
                thread,
                place,
                record.order,
                self._number("instruction", thread, record.instruction),
                issue=issue,
                cell=record.object if isinstance(record, ObjectRecord) else None,
                name=record.object.instance.name if isinstance(record, ObjectRecord) else None,
                range=record.range if isinstance(record, PlainRecord) else None,
            )
            mine.append(len(self.events))
            self.events.append(ConcreteEvent(point, (thread, number)))
            return
        scalar = record.footprint.scalar
        whole = number if record.half_of is None else record.half_of
        for at, cell, name in self.cutting.pieces(record.footprint):
            operation = ("cell", thread, whole, at) if scalar is None else ("scalar", thread, whole, at // scalar)
            point = Point(
                len(self.events),
                record.label,
                thread,
                place,
                record.order,
                self._number("instruction", thread, record.instruction),
                self._number(*operation),
                issue,
                *(cell, name),
                scalar,
                shape=record.footprint.shape,
            )
            mine.append(len(self.events))
            self.events.append(ConcreteEvent(point, (thread, number), at))

    def _number(self, *key: object) -> int:
        """A number for an instruction or an operation."""
        return self._operations.setdefault(key, len(self._operations) + 1)

    def record_of(self, event: ConcreteEvent) -> Record | None:
        """The record that an event belongs to."""
        return None if event.record is None else self.traces[event.record[0]].records[event.record[1]]

    def instruction_of(self, event: ConcreteEvent) -> Instruction | None:
        """The instruction that made an event; of the end of a thread, none."""
        record = self.record_of(event)
        if record is None:
            return None
        steps = self.lowered.programs[record.name.thread].steps
        return steps[record.name.step].instruction if record.name.step < len(steps) else None

    def values_of(self, traces: Sequence[Trace]) -> tuple[int | None, ...]:
        """The value of every memory event, if the threads' records have the values of these traces."""
        values: list[int | None] = []
        for event in self.events:
            cell = event.point.cell
            if event.record is None:
                assert cell is not None
                values.append(self.lowered.space.initial(cell.instance, cell.first, cell.size))
                continue
            thread, number = event.record
            data = traces[thread].values[number]
            if data is None or cell is None:
                values.append(None)
            else:
                values.append(data >> event.at * 8 & (1 << cell.size * 8) - 1)
        return tuple(values)

    # ---- base names that no choice changes ---------------------------------------------------------------------

    def set(self, name: str) -> int:
        """A set that labels, places and answers decide."""
        if name not in self._sets:
            self._sets[name] = DECIDED_SETS[name](self) if SET_ROWS[name].holds is None else self._of_table(name)
        return self._sets[name]

    def relation(self, name: str) -> Rows:
        """A relation that the table settles, or dependencies, completions and exits."""
        if name not in self._relations:
            row = RELATION_ROWS[name]
            settled = row.key is not None or row.holds is not None
            self._relations[name] = row.rows(self._points) if settled else DECIDED_RELATIONS[name](self)
        return self._relations[name]

    def _of_table(self, name: str) -> int:
        mask, row = self._labelled.get(name, 0), SET_ROWS[name]
        if mask and row.placed:
            mask = sum(1 << event for event in bits(mask) if row.has(self.events[event].point.cell))
        return mask

    @cached_property
    def _labelled(self) -> dict[str, int]:
        """For each set, the events whose labels put them there if their memory does."""
        masks: dict[str, int] = {}
        for number, event in enumerate(self.events):
            for name in names_of(event.point.label):
                masks[name] = masks.get(name, 0) | 1 << number
        return masks

    def _events_that(self, holds: Callable[[Record | None], bool]) -> int:
        """The events of the records of which something holds."""
        return sum(1 << number for number, event in enumerate(self.events) if holds(self.record_of(event)))

    @cached_property
    def _points(self) -> list[Point]:
        return [event.point for event in self.events]

    def _dependencies(self, kind: str) -> Rows:
        """From the reads that some bytes were taken from to the events that depend on them."""
        rows = [0] * self.count
        for number, event in enumerate(self.events):
            if event.record is None:
                continue
            thread, place = event.record
            record = self.traces[thread].records[place]
            for source in self._sources(thread, self._depends(kind, record, event)):
                rows[source] |= 1 << number
            if kind == "data" and isinstance(record, AccessRecord) and record.copies is not None:
                assert event.point.cell is not None
                for source in self._bytes(thread, BytesRead(record.copies, event.at, event.point.cell.size)):
                    rows[source] |= 1 << number
        return rows

    def _depends(self, kind: str, record: Record, event: ConcreteEvent) -> int:
        if kind == "addr":
            return record.addr
        if kind == "ctrl":
            return record.ctrl
        if isinstance(record, AccessRecord):
            part = record.footprint.size // len(record.data)
            size = 0 if event.point.cell is None else event.point.cell.size
            mask = 0
            for value in record.data[event.at // part : -(-(event.at + size) // part)]:
                mask |= value
            return mask
        return record.data if isinstance(record, PlainRecord | BarrierRecord | ObjectRecord) else 0

    def _sources(self, thread: int, mask: int) -> Iterable[int]:
        """The events that read the tokens in a mask."""
        for number, token in enumerate(self.traces[thread].tokens):
            if mask >> number & 1:
                yield from self._bytes(thread, token)

    def _bytes(self, thread: int, token: BytesRead) -> Iterable[int]:
        """The events that read some bytes of a record, or its only event."""
        for number in self.of_record[thread, token.record]:
            event = self.events[number]
            if not isinstance(event.label, Access):
                yield number
                continue
            cell = event.point.cell
            if cell is not None and event.at < token.first + token.size and token.first < event.at + cell.size:
                yield number

    def _completions(self) -> Rows:
        rows = [0] * self.count
        for (thread, number), events in self.of_record.items():
            record = self.traces[thread].records[number]
            if isinstance(record, WaitRecord | ObjectRecord):
                for part in record.completes:
                    for event in self.of_record[thread, part]:
                        rows[event] |= 1 << events[0]
        return rows

    def _warpgroup_completions(self) -> Rows:
        """Reads of wgmma by other warps of a warpgroup -> a wait that covers the same instruction of its own warp."""
        rows, compl = [0] * self.count, self.relation("compl")
        for issue, peer in self._same_wgmma():
            completions = union(compl[part] for part in self._parts(issue))
            waits = mask_of(event for event in bits(completions) if isinstance(self.events[event].label, GroupWait))
            for part in self._parts(peer):
                rows[part] |= waits
        return rows

    def _same_wgmma(self) -> Iterator[tuple[int, int]]:
        """The issues of one wgmma.mma_async by two warps of a warpgroup: the k-th of each is the same instruction."""
        issues: dict[int, list[int]] = {}
        for number, event in enumerate(self.events):
            thread, place = event.point.thread, event.point.place
            if thread is None or place is None or place.warp is None:
                continue
            if isinstance(event.label, Issue) and event.label.family is Family.WGMMA:
                issues.setdefault(thread, []).append(number)
        for thread, other in permutations(issues, 2):
            if self._warpgroup(issues[thread][0]) == self._warpgroup(issues[other][0]):
                yield from zip(issues[thread], issues[other], strict=False)

    def _warpgroup(self, event: int) -> object:
        place = self.events[event].point.place
        assert place is not None and place.warp is not None
        return place.cta_id, place.warp // 4

    def _parts(self, issue: int) -> list[int]:
        return [number for number, event in enumerate(self.events) if event.point.issue == issue]

    def _exits(self) -> Rows:
        """What is done in the shared memory of another CTA, all of whose threads exit -> these exits."""
        rows = [0] * self.count
        for number, event in enumerate(self.events):
            place, cell = event.point.place, event.point.cell
            if place is None or cell is None or not isinstance(event.label, Access | Mbarrier | Signal):
                continue
            owner = cell.instance.owner
            if owner is not None and owner != place.cta_id:
                rows[number] = self._ends(owner, Marker.EXIT, (End.EXIT,))
        return rows

    def _cta_ends(self) -> Rows:
        rows = [0] * self.count
        for number, event in enumerate(self.events):
            if event.point.place is not None:
                rows[number] = self._ends(event.point.place.cta_id, Marker.END, (End.REACHED, End.EXIT))
        return rows

    def _ends(self, cta: object, marker: Marker, ends: tuple[End, ...]) -> int:
        """The events that mark the ends of all threads of a CTA, if all of them end so."""
        threads = [n for n, thread in enumerate(self.lowered.test.threads) if thread.place.cta_id == cta]
        if any(self.traces[thread].ending.end not in ends for thread in threads):
            return 0
        return sum(
            1 << number
            for number, event in enumerate(self.events)
            if isinstance(event.label, Mark) and event.label.what is marker and event.point.thread in threads
        )


DECIDED_SETS: dict[str, Callable[[FixedPart], int]] = {
    "MBDONE": lambda frame: frame._events_that(lambda record: isinstance(record, ObjectRecord) and record.done),
    "REFUSED": lambda frame: frame._events_that(lambda record: isinstance(record, AccessRecord) and record.refused),
    "FAILED": lambda frame: frame._events_that(lambda record: isinstance(record, ObjectRecord) and record.failed),
    "MBREPORT": lambda frame: frame._events_that(
        lambda record: isinstance(record, ObjectRecord) and record.report == 1
    ),
    "MBCLEAR": lambda frame: frame._events_that(lambda record: isinstance(record, ObjectRecord) and record.report == 0),
}
"""Sets that the records of threads decide: tests that returned true, and what they reported; responses that no cluster
was cancelled; signals of what failed."""

DECIDED_RELATIONS: dict[str, Callable[[FixedPart], Rows]] = {
    "addr": lambda frame: frame._dependencies("addr"),
    "data": lambda frame: frame._dependencies("data"),
    "ctrl": lambda frame: frame._dependencies("ctrl"),
    "compl": FixedPart._completions,
    "complwg": FixedPart._warpgroup_completions,
    "exits": FixedPart._exits,
    "foreign": lambda frame: [0] * frame.count,
    "ctaends": FixedPart._cta_ends,
}
"""Relations that the records of threads decide; the others that are not settled by the table are choices."""


def _source(trace: Trace, number: int) -> AccessRecord:
    record = trace.records[number]
    assert isinstance(record, AccessRecord)
    return record


Position = tuple[object, ...]
"""Where an event comes from: (thread, step, part, read or write), or ("initial", instance)."""


def position(frame: FixedPart, event: ConcreteEvent) -> Position:
    """The origin of an event, which is the same in all executions."""
    record = frame.record_of(event)
    if record is None:
        assert event.point.cell is not None
        return ("initial", event.point.cell.instance)
    side = record.access.side if isinstance(record, AccessRecord) else None
    return (record.name.thread, record.name.step, record.name.part, side)
