"""The writes that support a value in memory, where no value may support itself.

In: writes of traces, with what they depend on. Out: `Supports`. A write that depends on reads supports the value that
it writes, and all values that depend on that one. Each value of some bytes has several sets of writes: in every
execution with that value, the writes of one of the sets support it. A write that would have to support itself is in no
execution: an axiom of the model forbids that cycle (`cat.analysis.grounds_values`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import and_

from memmodel.base.labels import Side
from memmodel.base.rows import bits
from memmodel.concrete.records import AccessRecord, ObjectRecord, Trace
from memmodel.memory.bytes import Cell, Extent, Footprint, Instance
from memmodel.program.addresses import AddressSpace

Done = tuple[int, int, int, int]
"""A write of a run: thread, number of the executed instruction, step, part. Skipped instructions are counted, too. So
it is the same in two runs that differ only in what the write does not depend on, other than the `time` of a
RecordName."""

Support = frozenset[Done]

FREE: tuple[Support, ...] = (frozenset(),)
"""The value needs no particular write, or its supports are not followed."""

MOST = 12
"""With more sets than this for one value, its supports are not followed."""


class Supports:
    """The supports of values, as far as they are known. They only grow. `cells`: the cells of an extent."""

    def __init__(self, space: AddressSpace, cells: Callable[[Extent], Sequence[Cell]]) -> None:
        self._space = space
        self._cells = cells
        self._known: dict[tuple[Instance, int, int, int], tuple[Support, ...]] = {}
        self._shapes: dict[Instance, dict[tuple[int, int, bool], None]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Supports) and self._known == other._known

    __hash__ = None  # type: ignore[assignment]

    def add(self, footprint: Footprint, value: int, supports: tuple[Support, ...]) -> None:
        """Add that a write may put this value there, and that one of these sets supports it."""
        extent = _only(footprint)
        for part in footprint.extents:
            self._shapes.setdefault(part.instance, {})[part.first, part.size, extent is not None] = None
        if extent is not None:
            key = (extent.instance, extent.first, extent.size, value)
            known = self._known.get(key, ())
            if known != FREE:
                self._known[key] = _least((*known, *supports)) if known else supports

    def write(self, trace: Trace, record: AccessRecord) -> tuple[Support, ...]:
        """The supports of a write of a trace; empty if it would have to support itself.

        Only dependencies of cat count: `addr`, `data`, `ctrl`. Of several events, only what all of them depend on
        counts. A copy is not followed: each of its events depends on one read only. One of no bytes has no event.
        """
        if record.copies is not None or not record.data:
            return FREE
        depends = record.addr | record.ctrl | reduce(and_, record.data)
        if not depends:
            return FREE
        supports: tuple[Support, ...] = FREE
        for number in dict.fromkeys(trace.tokens[token].record for token in bits(depends)):
            options = self._supports_of(trace, number)
            if options != FREE:
                supports = _least(support | option for support in supports for option in options)
        done = (record.name.thread, record.instruction, record.name.step, record.name.part)
        return tuple(support | {done} for support in supports if done not in support)

    def _supports_of(self, trace: Trace, number: int) -> tuple[Support, ...]:
        """The supports of the value that a record of a trace has read, if that is one event and all writes there have
        exactly its bytes.
        """
        record, value = trace.records[number], trace.values[number]
        if not isinstance(record, AccessRecord) or record.access.side is not Side.READ or value is None:
            return FREE
        extent = _only(record.footprint)
        if extent is None or len(self._cells(extent)) > 1:
            return FREE
        if self._space.initial(extent.instance, extent.first, extent.size) == value:
            return FREE
        for first, size, alone in self._shapes.get(extent.instance, ()):
            if first < extent.end and extent.first < first + size and (first, size, alone) != (*_bytes(extent), True):
                return FREE
        return self._known.get((extent.instance, extent.first, extent.size, value), FREE)


def _bytes(extent: Extent) -> tuple[int, int]:
    return extent.first, extent.size


def _only(footprint: Footprint) -> Extent | None:
    """The extent of a footprint that is one extent; None for others."""
    stretch = footprint.stretches[0] if len(footprint.stretches) == 1 else None
    return stretch if isinstance(stretch, Extent) else None


def _least(sets: Iterable[Support]) -> tuple[Support, ...]:
    """The sets that contain no other one; `FREE` where they are many."""
    least: list[Support] = []
    for candidate in sorted(set(sets), key=len):
        if not any(other <= candidate for other in least):
            least.append(candidate)
    return tuple(least) if len(least) <= MOST else FREE


def dependent(traces: Sequence[Trace]) -> int:
    """The most writes and updates of objects in one run for which a read decides the value, the place, or whether they
    are made. All that follow a computed address count, because a bad address ends the thread."""
    return max((_dependent(trace) for trace in traces), default=0)


def _dependent(trace: Trace) -> int:
    count, computed = 0, False
    for record in trace.records:
        computed = computed or bool(record.addr)
        if isinstance(record, AccessRecord) and record.access.side is Side.WRITE:
            count += bool(computed or record.ctrl or any(record.data) or record.copies is not None)
        elif isinstance(record, ObjectRecord) and record.updates:
            count += bool(computed or record.ctrl or record.data)
    return count
