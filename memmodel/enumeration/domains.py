"""The answers that threads may get: what their reads and their tests of objects may return.

In: the writes and object operations of traces. Out: `Domains`, which grow until running the threads adds nothing to
them, and `RememberingOracle`, which a thread asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from memmodel.base.labels import Action, Side
from memmodel.base.lives import in_lives
from memmodel.concrete.cutting import Copy, Cutting
from memmodel.concrete.records import AccessRecord, ObjectRecord, RecordName, Trace
from memmodel.enumeration.supports import Supports
from memmodel.errors import TooLarge
from memmodel.memory.bytes import Cell, Extent, Filler, Footprint, Gap, Instance
from memmodel.program.addresses import AddressSpace

MAX_VALUES = 2_000
"""A read that may return more values than this is too much to try."""


@dataclass(frozen=True, slots=True)
class ObjectCounts:
    """How often mbarrier objects are updated and initialised, and the arrivals that they are set to count in all."""

    updates: Counter[Cell] = field(default_factory=Counter)
    inits: Counter[Cell] = field(default_factory=Counter)
    arrivals: Counter[Cell] = field(default_factory=Counter)

    @staticmethod
    def of(trace: Trace) -> ObjectCounts:
        """The counts of one run of a thread."""
        counts = ObjectCounts()
        for record in trace.records:
            if isinstance(record, ObjectRecord) and record.updates:
                counts.updates[record.object] += 1
                counts.inits[record.object] += record.action is Action.INIT
                if record.action in (Action.INIT, Action.PENDING):
                    counts.arrivals[record.object] += record.count
        return counts

    def __or__(self, other: ObjectCounts) -> ObjectCounts:
        """The larger number of each: of two runs of one thread."""
        return ObjectCounts(self.updates | other.updates, self.inits | other.inits, self.arrivals | other.arrivals)

    def __add__(self, other: ObjectCounts) -> ObjectCounts:
        """The sum of both: of two threads that run in one execution."""
        return ObjectCounts(self.updates + other.updates, self.inits + other.inits, self.arrivals + other.arrivals)


class Domains:
    """The values that memory may hold, as far as they are known: initial values, and what threads write.

    Memory is cut here wherever some execution cuts it, so that a read may return parts of different writes. `asked`:
    elements that a question reads. `grounded`: the model forbids that a value supports itself (`supports`).
    """

    def __init__(
        self, space: AddressSpace, threads: int, asked: Sequence[Extent] = (), *, grounded: bool = False
    ) -> None:
        self._space = space
        self._supports = Supports(space, lambda extent: self.cutting.cells(extent)) if grounded else None
        self._earlier_supports = self._supports
        self.threads = threads
        self._asked = asked
        self._footprints: dict[Footprint, None] = {}
        self._copies: dict[Copy, None] = {}
        self._writes: dict[Instance, dict[tuple[int, int, int], None]] = {}
        self._counts = ObjectCounts()
        self._values_of: dict[Extent, tuple[int, ...]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domains) and self._known == other._known

    __hash__ = None  # type: ignore[assignment]

    @property
    def _known(self) -> tuple[object, ...]:
        return self._writes, self._footprints, self._copies, self._counts, self._supports

    def emptied(self) -> Domains:
        """New domains without values, for the next round. They still know which writes support which values."""
        new = Domains(self._space, self.threads, self._asked, grounded=self._supports is not None)
        new._earlier_supports = self._supports
        return new

    # ---- growing -------------------------------------------------------------------------------------------------

    def learn(self, threads: Iterable[Sequence[Trace]]) -> None:
        """Take in what the traces of each thread write, and how they use objects. Call it once for each thread."""
        self.__dict__.pop("cutting", None)
        self._values_of.clear()
        for traces in threads:
            most = ObjectCounts()
            for trace in traces:
                self._access_all(trace)
                most |= ObjectCounts.of(trace)
            self._counts += most
        self.__dict__.pop("cutting", None)  # `Supports` may have asked for it meanwhile

    def _access_all(self, trace: Trace) -> None:
        """Take in the accesses of a trace, and what they write."""
        for record, value in zip(trace.records, trace.values, strict=True):
            if isinstance(record, AccessRecord):
                self._access(trace, record)
                if record.access.side is Side.WRITE and value is not None:
                    self._written(trace, record, value)

    def _written(self, trace: Trace, record: AccessRecord, value: int) -> None:
        """Take in what a trace writes, unless the write would have to support itself."""
        if self._supports is not None and self._earlier_supports is not None:
            support = self._earlier_supports.write(trace, record)
            if not support:
                return
            self._supports.add(record.footprint, value, support)
        self.write(record.footprint, value)

    def possible(self, trace: Trace) -> bool:
        """True if every write of a trace can be made."""
        supports = self._supports
        if supports is None:
            return True
        return all(
            not isinstance(record, AccessRecord)
            or record.access.side is not Side.WRITE
            or bool(supports.write(trace, record))
            for record in trace.records
        )

    def _access(self, trace: Trace, record: AccessRecord) -> None:
        """An access cuts memory."""
        self._footprints[record.footprint] = None
        if record.copies is not None:
            source = trace.records[record.copies]
            assert isinstance(source, AccessRecord)
            self._copies[source.footprint, record.footprint] = None

    @cached_property
    def cutting(self) -> Cutting:
        """The cuts of memory by the accesses known so far."""
        return Cutting(self._footprints, self._copies, self._asked)

    def write(self, footprint: Footprint, value: int) -> None:
        """Add a value that some thread may write there."""
        for position, extent in footprint.placed():
            key = (extent.first, extent.size, value >> position * 8 & (1 << extent.size * 8) - 1)
            self._writes.setdefault(extent.instance, {})[key] = None
        self._values_of.clear()

    # ---- answers -------------------------------------------------------------------------------------------------

    def read(self, footprint: Footprint) -> Sequence[int]:
        """Every value that the bytes of a footprint may have."""
        parts: list[tuple[int, tuple[int, ...]]] = []
        at, total = 0, 1
        for stretch in footprint.stretches:
            if isinstance(stretch, Gap):
                if stretch.filler is Filler.INDETERMINATE:
                    raise TooLarge("something may depend on bytes that .ignore_oob leaves indeterminate")
            else:
                values = self._values(stretch)
                total *= len(values)
                parts.append((at, values))
            at += stretch.size
        if total > MAX_VALUES:
            raise TooLarge(f"a read may return any of more than {MAX_VALUES:,} values")
        return [
            sum(value << place * 8 for (place, _), value in zip(parts, chosen, strict=True))
            for chosen in product(*(values for _, values in parts))
        ]

    def _values(self, extent: Extent) -> tuple[int, ...]:
        """Every value that the bytes of an extent may have, put together from the writes that touch it."""
        if extent not in self._values_of:
            self._values_of[extent] = tuple(self._combined(extent))
        return self._values_of[extent]

    def _combined(self, extent: Extent) -> Iterator[int]:
        writes = [
            (first, size, value)
            for first, size, value in self._writes.get(extent.instance, ())
            if first < extent.end and extent.first < first + size
        ]
        cells = self.cutting.cells(extent)
        pieces: list[dict[int, None]] = []
        for cell in cells:
            mask = (1 << cell.size * 8) - 1
            values = {self._space.initial(extent.instance, cell.first, cell.size): None}
            for first, size, value in writes:
                if first <= cell.first and cell.end <= first + size:
                    values[value >> (cell.first - first) * 8 & mask] = None
            pieces.append(values)
        count = 1
        for piece in pieces:
            count *= len(piece)
        if count > MAX_VALUES:
            raise TooLarge(f"a read may return any of more than {MAX_VALUES:,} values")
        seen: set[int] = set()
        for chosen in product(*pieces):
            total = sum(part << (cell.first - extent.first) * 8 for part, cell in zip(chosen, cells, strict=True))
            if total not in seen:
                seen.add(total)
                yield total

    def phases(self, object: Cell) -> Sequence[int]:
        """The states that an arrive on the object may return."""
        lives = self._counts.inits[object] + (object.instance.arrivals is not None)
        return in_lives(lives, self._counts.updates[object] + 1)

    def pending(self, object: Cell) -> Sequence[int]:
        """The numbers of arrivals that may be pending on the object."""
        return range(self._counts.arrivals[object] + (object.instance.arrivals or 0) + 1)


class RememberingOracle:
    """Answers a thread from domains, and remembers each question and answer."""

    def __init__(self, domains: Domains | None) -> None:
        self._domains = domains
        self._reads: dict[Footprint, Sequence[int]] = {}
        self._counts: dict[tuple[bool, Cell], Sequence[int]] = {}

    def differs(self, domains: Domains) -> bool:
        """True if these domains answer one of the questions otherwise."""
        return any(domains.read(footprint) != answer for footprint, answer in self._reads.items()) or any(
            (domains.pending(cell) if pending else domains.phases(cell)) != answer
            for (pending, cell), answer in self._counts.items()
        )

    def read(self, name: RecordName, footprint: Footprint) -> Sequence[int]:
        values = self._reads.get(footprint)
        if values is None:
            assert self._domains is not None
            values = self._reads[footprint] = self._domains.read(footprint)
        return values

    def test(self, name: RecordName, object: Cell) -> Sequence[int]:
        return (0, 1)

    def phases(self, name: RecordName, object: Cell) -> Sequence[int]:
        return self._count(False, object)

    def pending(self, name: RecordName, object: Cell) -> Sequence[int]:
        return self._count(True, object)

    def _count(self, pending: bool, object: Cell) -> Sequence[int]:
        assert self._domains is not None
        values = self._domains.pending(object) if pending else self._domains.phases(object)
        self._counts[pending, object] = values
        return values

    def reduction(self, name: RecordName, op: str) -> Sequence[int]:
        assert self._domains is not None
        return range(self._domains.threads + 1) if op == "popc" else (0, 1)

    def report(self, name: RecordName) -> Sequence[int]:
        return (0, 1)

    def success(self, name: RecordName) -> Sequence[int]:
        return (1, 0)
