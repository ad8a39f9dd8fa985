"""Barriers, mbarrier objects and waiting threads of one execution: what is left to decide once the threads have run.

In: a trace for each thread, the frame of their events. Out: `Assembly`, and messages that say what each waiting thread
still needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from memmodel.base.labels import is_read
from memmodel.base.points import BarrierId
from memmodel.base.rows import Rows, rows_of
from memmodel.concrete.barriers import HalfEvent, Meeting, WaitsFor, barriers_of, mixed
from memmodel.concrete.execution import FixedPart
from memmodel.concrete.mbarriers import MbarrierUses, ObjectUse, Observed
from memmodel.concrete.records import BarrierRecord, Contribution, End, ObjectRecord, Trace
from memmodel.memory.bytes import Cell
from memmodel.program.spelling import spell_cell, spell_value


class Assembly:
    """The barriers, the mbarrier objects and the waiting threads of an execution with these traces."""

    def __init__(self, frame: FixedPart) -> None:
        self.frame = frame
        self.traces: Sequence[Trace] = frame.traces
        self.halves = [
            HalfEvent(events[0], thread, record.instruction, record)
            for (thread, number), events in frame.of_record.items()
            if isinstance(record := self.traces[thread].records[number], BarrierRecord)
        ]
        self.waiting = [waits for thread in range(len(self.traces)) for waits in self._waits_at_barrier(thread)]
        self.barriers = barriers_of(frame.lowered, self.traces, self.halves, self.waiting)
        self.contributions: list[tuple[int, Contribution]] = [
            (frame.of_record[thread, contribution.arrive][0], contribution)
            for thread, trace in enumerate(self.traces)
            for contribution in trace.contributions
        ]
        self.last_round = frozenset(
            event
            for (thread, number), events in frame.of_record.items()
            if (first := self.traces[thread].ending.first) is not None and number >= first
            for event in events
        )
        self._mixed = rows_of(mixed(list(self.barriers.values())), frame.count)

    def _waits_at_barrier(self, thread: int) -> list[tuple[BarrierId, WaitsFor]]:
        """The barrier at which a thread waits for ever, if it does."""
        ending = self.traces[thread].ending
        if ending.end is not End.WAITS or ending.first is not None:
            return []
        if ending.arrive is not None:
            record = self.traces[thread].records[ending.arrive]
            assert isinstance(record, BarrierRecord)
            return [(record.barrier, WaitsFor(thread, self.frame.of_record[thread, ending.arrive][0], None))]
        assert ending.barrier is not None
        return [(ending.barrier, WaitsFor(thread, None, ending.generation))]

    @cached_property
    def objects(self) -> list[MbarrierUses]:
        """The mbarrier objects that the execution uses."""
        uses_of: dict[Cell, list[ObjectUse]] = {}
        for (thread, number), events in self.frame.of_record.items():
            record = self.traces[thread].records[number]
            if isinstance(record, ObjectRecord):
                signal = record.issue is not None
                order = self.traces[thread].records[record.issue].order if record.issue is not None else record.order
                assert order is not None
                uses_of.setdefault(record.object, []).append(ObjectUse(events[0], thread, order, signal, record))
        return [MbarrierUses(cell, uses, self.last_round) for cell, uses in uses_of.items()]

    # ---- base names that these choices decide --------------------------------------------------------------------

    def sets(self, observed: Observed) -> dict[str, int]:
        """The sets that the objects decide."""
        return {"MBBAD": observed.mbbad, "MBSTALE": observed.mbstale, "MBLATER": observed.mblater}

    def relations(self, meeting: Meeting, observed: Observed) -> dict[str, Rows]:
        """The relations that barriers and objects decide."""
        pairs = {
            "syncbar": meeting.syncbar,
            "samegen": meeting.samegen,
            "genbefore": meeting.genbefore,
            "mbar": observed.mbar,
            "mbarobs": observed.mbarobs,
            "mbarseen": observed.mbarseen,
            "mbarfr": observed.mbarfr,
            "mbarnext": observed.mbarnext,
            "mbarended": observed.mbarended,
        }
        return {**{name: rows_of(its, self.frame.count) for name, its in pairs.items()}, "barmix": self._mixed}

    def waits_read_last_writes(self, rf: Rows, co: Rows) -> bool:
        """True if the spin loops in which threads wait for ever read writes that nothing follows in co."""
        reads = [event for event in self.last_round if is_read(self.frame.events[event].label)]
        return not any(rf[write] >> read & 1 and co[write] for read in reads for write in range(self.frame.count))

    # ---- what is missing -------------------------------------------------------------------------------------------

    def sentences(self, values: Sequence[int | None], mbar: Rows, meeting: Meeting) -> list[str]:
        """For each thread that waits for ever: a sentence that says where, and what it waits for."""
        sentences = []
        for thread, trace in enumerate(self.traces):
            if trace.ending.end is not End.WAITS:
                continue
            steps = self.frame.lowered.programs[thread].steps
            span = steps[trace.ending.step].instruction.span
            name = self.frame.lowered.test.threads[thread].name
            where = f"{name} waits for ever at {span}" if span else f"{name} waits for ever"
            missing = self._missing(thread, values, mbar, meeting)
            sentences.append(f"{where}: {missing}" if missing else where)
        return sentences

    def _missing(self, thread: int, values: Sequence[int | None], mbar: Rows, meeting: Meeting) -> str:
        """What a thread waits for: a barrier, or the first test or read of its last round."""
        space = self.frame.lowered.space
        for barrier, who in self.waiting:
            if who.thread == thread:
                return self.barriers[barrier].text(meeting.generations, who)
        for event in sorted(self.last_round):
            point = self.frame.events[event].point
            if point.thread != thread:
                continue
            record = self.frame.record_of(self.frame.events[event])
            if isinstance(record, ObjectRecord):
                uses = next(uses for uses in self.objects if uses.cell == record.object)
                return f"{spell_cell(space, uses.cell)} {uses.missing(uses.walk_of(mbar), record)}"
            value = values[event]
            if is_read(self.frame.events[event].label) and point.cell is not None and value is not None:
                return f"{spell_cell(space, point.cell)} stays {spell_value(space, point.cell, value)}"
        return ""
