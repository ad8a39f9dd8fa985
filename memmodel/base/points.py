"""An event at one place, as the base relations look at it.

In: nothing. Out: `Point`, `BarrierId`. An event whose address depends on the execution has one point for each place
that it may access. An event without a place has one point.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.base.labels import BETWEEN_GRIDS, Domain, Label, Signal
from memmodel.memory.bytes import Cell, Instance
from memmodel.ptx.vocabulary import Place, Space


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes that a fence, an alloc or a dealloc names."""

    instance: Instance
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class BarrierId:
    """A barrier: its domain, which CTA, warp or cluster it is in, and its number there."""

    domain: Domain
    where: tuple[object, ...]
    key: tuple[int, ...]

    @staticmethod
    def of(domain: Domain, key: tuple[int, ...], place: Place, thread: int) -> BarrierId:
        """The barrier that a thread at a place means by a domain and a key."""
        if domain is Domain.CTA:
            return BarrierId(domain, place.cta_id, key)
        if domain is Domain.CLUSTER:
            return BarrierId(domain, place.cluster_id, key)
        if domain in BETWEEN_GRIDS:
            return BarrierId(domain, (place.gpu,), key)
        if domain is Domain.PAIR:
            return BarrierId(domain, (*place.cluster_id, place.rank // 2), key)
        warp = ("thread", thread) if place.warp is None else ("warp", place.warp)
        return BarrierId(domain, (*place.cta_id, warp), key)

    def of_thread(self, place: Place, thread: int) -> bool:
        """True if a thread at a place is in the domain of this barrier."""
        return BarrierId.of(self.domain, self.key, place, thread) == self

    @property
    def text(self) -> str:
        if self.domain is Domain.LAUNCH:
            return f"launch of grid {self.key[0] + 1}"
        if self.domain is Domain.GRID:
            return f"end of grid {self.key[0]}"
        if self.domain is Domain.PAIR:
            return "tensor memory of the CTA pair"
        if self.domain is Domain.COLUMNS:
            return "free columns of tensor memory"
        number = f" {self.key[0]}" if self.domain is Domain.CTA else ""
        return f"{self.domain.value} barrier{number}"


@dataclass(frozen=True, slots=True)
class Point:
    """`event`: its number. `thread`, `place`: None for an initial write. `order`: its place in program order; None
    outside it; equal for the parts of one instruction, which are unordered.

    `instruction`, `operation`: numbers that the parts of one execution of an instruction, and of one scalar
    operation of it, share. `issue`: for an asynchronous event, the number of its issue. `cell`: of a memory event the
    location, of an operation on an mbarrier object the object; `name`: the virtual address it goes through.
    `scalar`: bytes of the scalar operation; None: as the other's. `shape`: of an accumulator (see Footprint). `range`:
    what the event names.
    """

    event: int
    label: Label
    thread: int | None = None
    place: Place | None = None
    order: int | None = None
    instruction: int | None = None
    operation: int | None = None
    issue: int | None = None
    cell: Cell | None = None
    name: str | None = None
    scalar: int | None = None
    range: Range | None = None
    shape: int | None = None

    @property
    def home(self) -> tuple[object, ...] | None:
        """The CTA in which the event is performed: shared memory where it lies, anything else at the thread."""
        if self.cell is not None and self.cell.instance.space is Space.SHARED:
            return self.cell.instance.owner
        return None if self.place is None else self.place.cta_id

    @property
    def seat(self) -> Place | None:
        """Where the event stands when scopes are compared: a signal at its object's CTA, the rest at the thread."""
        if isinstance(self.label, Signal) and self.cell is not None and self.place is not None:
            return place_of(self.cell.instance.owner) or self.place
        return self.place


def place_of(owner: tuple[object, ...] | None) -> Place | None:
    """The place of a CTA from its identity (gpu, cluster identity, cta)."""
    if owner is None:
        return None
    gpu, cluster, cta = owner
    assert isinstance(gpu, int) and isinstance(cta, int)
    match cluster:
        case (_, "grid", int(grid), "cta", _):
            return Place(gpu, None, cta, grid=grid)
        case (_, "grid", int(grid), int(number)):
            return Place(gpu, number, cta, grid=grid)
        case (_, int(number)):
            return Place(gpu, number, cta)
    return Place(gpu, None, cta)
