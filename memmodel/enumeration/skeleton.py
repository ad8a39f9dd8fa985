"""One choice of paths through all threads, values left out: the events, and all that they decide about the model.

In: Problem, Plan, one trace per thread. Out: Skeleton: its static part evaluated once, however many values, rf,
sync_fence and co are tried on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from memmodel.base.labels import Access, Fence, InitialWrite, Side
from memmodel.base.rows import Rows, bits
from memmodel.concrete.assembly import Assembly
from memmodel.concrete.barriers import Meeting, meetings, reductions_agree
from memmodel.concrete.execution import FixedPart
from memmodel.concrete.mbarriers import Observed, observations
from memmodel.concrete.meter import CANDIDATE, Meter
from memmodel.concrete.records import Trace
from memmodel.enumeration.code import CHOSEN, Values
from memmodel.enumeration.coherence import CellWrites, Coherence
from memmodel.enumeration.matrix import Shape
from memmodel.enumeration.orders import least_orders, partial_orders
from memmodel.enumeration.plan import Plan, PlannedCheck
from memmodel.errors import TooLarge
from memmodel.memory.bytes import Cell, Extent
from memmodel.program.lowered import LoweredTest
from memmodel.ptx.vocabulary import Sem

MAX_FENCES = 10
"""More fence.sc in one execution have more orders than anyone can try."""

_FEW_VARIANTS = 16

_FEW_FENCES = 3
"""The orders of up to this many fences are kept for the next candidate."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A skeleton with its barriers and mbarrier objects decided.

    `values`: the plan's slots after the first stage. `failed`, `raised`: axioms and flags that this settles.
    """

    meeting: Meeting
    observed: Observed
    values: Values
    failed: frozenset[str]
    raised: tuple[PlannedCheck, ...]


class Skeleton:
    """Events of one combination of paths. `reads`, `writes` (by cell, initial first), `fences`: their numbers.

    `uses`: how many combinations of values it has been asked for.
    """

    def __init__(self, lowered: LoweredTest, plan: Plan, traces: Sequence[Trace], asked: Iterable[Extent]) -> None:
        self.frame = FixedPart(lowered, traces, asked)
        self.assembly = Assembly(self.frame)
        self.shape = Shape(self.frame.count)
        self.plan = plan
        self.reads: list[int] = []
        self.writes: dict[Cell, list[int]] = {}
        self.fences: list[int] = []
        for number, event in enumerate(self.frame.events):
            label, cell = event.label, event.point.cell
            if isinstance(label, Access) and label.side is Side.READ:
                self.reads.append(number)
            elif isinstance(label, Access | InitialWrite) and cell is not None:
                self.writes.setdefault(cell, []).append(number)
            elif isinstance(label, Fence) and label.sem is Sem.SC:
                self.fences.append(number)
        self._final_reads = [read for read in self.reads if read in self.assembly.last_round]
        self._kept: tuple[Variant, ...] | None = None
        self.uses = 0

    def variants(self, meter: Meter) -> Iterator[Variant]:
        """Every way in which barriers and mbarrier objects can come out. A few are kept for the next values."""
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[Variant] = []
        for variant in self._variants(meter):
            if len(kept) <= _FEW_VARIANTS:
                kept.append(variant)
            yield variant
        if len(kept) <= _FEW_VARIANTS:
            self._kept = tuple(kept)

    def keeps(self, variant: Variant) -> bool:
        """True if the same object will be used for the next values."""
        return self._kept is not None and any(other is variant for other in self._kept)

    def _variants(self, meter: Meter) -> Iterator[Variant]:
        assembly, plan = self.assembly, self.plan
        for meeting in meetings(assembly.barriers, assembly.halves, assembly.waiting):
            if not reductions_agree(assembly.contributions, assembly.barriers, meeting):
                continue
            for observed in observations(assembly.objects, meter):
                meter.spend(CANDIDATE)
                sets, relations = assembly.sets(observed), assembly.relations(meeting, observed)
                values = [0] * plan.size
                for name, slot in plan.slots.items():
                    if plan.is_set[name]:
                        values[slot] = sets[name] if name in sets else self.frame.set(name)
                    elif name not in CHOSEN:
                        values[slot] = self._packed(name, relations)
                stage = plan.stages[0]
                failed = frozenset(test.check.name for test in stage.axioms if not test.holds(values, self.shape))
                raised = tuple(test for test in stage.flags if test.holds(values, self.shape))
                for compute in stage.prepare:
                    compute(values, self.shape)
                yield Variant(meeting, observed, values, failed, raised)

    def _packed(self, name: str, relations: dict[str, Rows]) -> int:
        if name in relations:
            return self.shape.pack(relations[name])
        if name not in self._matrices:
            self._matrices[name] = self.shape.pack(self.frame.relation(name))
        return self._matrices[name]

    @cached_property
    def _matrices(self) -> dict[str, int]:
        return {}

    def waits_read_last_writes(self, rf: int, co: int) -> bool:
        """True if the spin loops in which threads wait for ever read writes that nothing follows in co."""
        count, row = self.shape.count, self.shape.row
        for read in self._final_reads:
            cell = self.frame.events[read].point.cell
            assert cell is not None
            for write in self.writes[cell]:
                if rf >> write * count + read & 1 and co >> write * count & row:
                    return False
        return True

    # ---- choices -------------------------------------------------------------------------------------------

    @cached_property
    def coherence(self) -> Coherence:
        """The choices of co."""
        writes = []
        for cell, (initial, *others) in self.writes.items():
            operations = {}
            for event in others:
                operation = self.frame.events[event].point.operation
                assert operation is not None
                operations[operation] = event
            writes.append(CellWrites(cell, initial, operations))
        return Coherence(writes, self.frame.count)

    def fence_orders(self) -> Iterable[int]:
        """Every sync_fence, as a matrix; only the least ones where the model cannot gain from more."""
        if len(self.fences) > MAX_FENCES:
            raise TooLarge(f"{len(self.fences)} fence.sc, more than {MAX_FENCES}: too many orders to try")
        return self._orders_of_few_fences if len(self.fences) <= _FEW_FENCES else self._orders_of_fences()

    @cached_property
    def _orders_of_few_fences(self) -> tuple[int, ...]:
        return tuple(self._orders_of_fences())

    def _orders_of_fences(self) -> Iterator[int]:
        if not self.fences:
            yield 0
            return
        related = self.frame.relation("sr")
        comparable = [
            sum(1 << b for b, right in enumerate(self.fences) if a != b and related[left] >> right & 1)
            for a, left in enumerate(self.fences)
        ]
        make = least_orders if self.plan.least_fences else partial_orders
        for order in make(len(self.fences), comparable):
            matrix = 0
            for fence, row in zip(self.fences, order, strict=True):
                for later in bits(row):
                    matrix |= 1 << fence * self.frame.count + self.fences[later]
            yield matrix
