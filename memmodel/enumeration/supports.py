"""Which writes a value in memory needs to come about, where no value may support itself.

In: writes of traces, with what they depend on. Out: `Supports`: for each value of some bytes, sets of writes whose
values depend on reads, one of which is behind the value in every execution that has it. A write that would be behind
what it depends on itself is in no execution: an axiom of the model forbids that cycle (`cat.analysis.grounds_values`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memmodel.base.labels import Side
from memmodel.concrete.execution import bits
from memmodel.concrete.records import AccessRecord, RecordName, Trace
from memmodel.memory.bytes import Extent, Footprint, Instance
from memmodel.program.addresses import AddressSpace

Support = frozenset[RecordName]

FREE: tuple[Support, ...] = (frozenset(),)
"""Nothing in particular is behind the value, or what is behind it is not followed."""

MOST = 12
"""More sets for one value are not told apart."""


class Supports:
    """What is behind values, as far as it is known. It only grows."""

    def __init__(self, space: AddressSpace) -> None:
        self._space = space
        self._known: dict[tuple[Instance, int, int, int], tuple[Support, ...]] = {}
        self._shapes: dict[Instance, dict[tuple[int, int], None]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Supports) and self._known == other._known

    __hash__ = None  # type: ignore[assignment]

    def add(self, footprint: Footprint, value: int, found: tuple[Support, ...]) -> None:
        """A write may put that value there, and one of these sets is behind it."""
        for stretch in footprint.stretches:
            if isinstance(stretch, Extent):
                self._shapes.setdefault(stretch.instance, {})[stretch.first, stretch.size] = None
        extent = _only(footprint)
        if extent is not None:
            key = (extent.instance, extent.first, extent.size, value)
            known = self._known.get(key, ())
            if known != FREE:
                self._known[key] = _least((*known, *found)) if known else found

    def write(self, trace: Trace, record: AccessRecord, depends: int) -> tuple[Support, ...]:
        """What is behind a write of a trace, whose tokens it depends on are given; empty if it cannot be made."""
        sources = [trace.tokens[number].record for number in bits(depends)]
        if record.copies is not None:
            sources.append(record.copies)
        if not sources:
            return FREE
        found: tuple[Support, ...] = FREE
        for number in dict.fromkeys(sources):
            options = self._behind(trace, number)
            if options != FREE:
                found = _least(one | other for one in found for other in options)
        name = record.name
        return tuple(one | {name} for one in found if name not in one)

    def _behind(self, trace: Trace, number: int) -> tuple[Support, ...]:
        """What is behind what a record of a trace has read."""
        record, value = trace.records[number], trace.values[number]
        if not isinstance(record, AccessRecord) or record.access.side is not Side.READ or value is None:
            return FREE
        extent = _only(record.footprint)
        if extent is None or self._space.initial(extent.instance, extent.first, extent.size) == value:
            return FREE
        for first, size in self._shapes.get(extent.instance, ()):
            if first < extent.end and extent.first < first + size and (first, size) != (extent.first, extent.size):
                return FREE
        return self._known.get((extent.instance, extent.first, extent.size, value), FREE)


def depends_on(trace: Trace) -> list[int]:
    """For each record, the tokens that decide its value, its place, or whether it is made.

    What comes after a computed address depends on that too: the address may be bad.
    """
    found, computed = [], 0
    for record in trace.records:
        computed |= record.addr
        mask = computed | record.ctrl
        if isinstance(record, AccessRecord):
            for one in record.data:
                mask |= one
        found.append(mask)
    return found


def _only(footprint: Footprint) -> Extent | None:
    """The one extent of a footprint that has nothing else."""
    stretch = footprint.stretches[0] if len(footprint.stretches) == 1 else None
    return stretch if isinstance(stretch, Extent) else None


def _least(sets: Iterable[Support]) -> tuple[Support, ...]:
    """Those that contain no other; nothing in particular where they are many."""
    least: list[Support] = []
    for one in sorted(set(sets), key=len):
        if not any(other <= one for other in least):
            least.append(one)
    return tuple(least) if len(least) <= MOST else FREE


def dependent(traces: Sequence[Trace]) -> int:
    """Writes of one run that depend on reads, at most."""
    return max((_dependent(trace) for trace in traces), default=0)


def _dependent(trace: Trace) -> int:
    return sum(
        isinstance(record, AccessRecord)
        and record.access.side is Side.WRITE
        and bool(mask or record.copies is not None)
        for record, mask in zip(trace.records, depends_on(trace), strict=True)
    )
