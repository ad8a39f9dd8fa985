"""Cut instances into cells, at each byte where an access begins or ends.

In: footprints, and pairs of footprints between which bytes are copied. Out: `Cells`. A cut at the source of a copy is a
cut at its destination and the other way round, so that a cell is copied to cells as a whole.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from memmodel.memory.bytes import Cell, Extent, Footprint, Gap, Instance, Stretch


@dataclass(frozen=True, slots=True)
class Edges:
    """Where an access cuts memory: at the ends of an extent, and between its scalars.

    `size`: bytes of a scalar; None: memory is cut at the ends only. `phase`: how far into the extent the first scalar
    begins.
    """

    extent: Extent
    size: int | None = None
    phase: int = 0

    @staticmethod
    def of(footprint: Footprint) -> Iterator[Edges]:
        """The edges of an access."""
        for position, extent in footprint.placed():
            yield Edges(extent, footprint.scalar, 0 if footprint.scalar is None else -position % footprint.scalar)

    def inside(self) -> range:
        """The places between scalars."""
        extent = self.extent
        return range(0) if self.size is None else range(extent.first + self.phase, extent.end, self.size)

    def has(self, at: int) -> bool:
        """True if there is an edge at a place."""
        return at in (self.extent.first, self.extent.end) or at in self.inside()


@dataclass(slots=True)
class Cells:
    """The cuts of every instance that has any, in increasing order; both ends of the instance are implied."""

    _cuts: dict[Instance, list[int]] = field(default_factory=dict)
    _links: dict[tuple[Extent, Extent], None] = field(default_factory=dict)
    _known: dict[tuple[Instance, int, int], tuple[Cell, ...]] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cells) and self._cuts == other._cuts

    __hash__ = None  # type: ignore[assignment]

    @property
    def count(self) -> int:
        """How many cuts there are."""
        return sum(len(cuts) for cuts in self._cuts.values())

    def cut(self, instance: Instance, at: int) -> bool:
        """Cut before the byte `at`; True if it was uncut."""
        cuts = self._cuts.setdefault(instance, [])
        position = bisect_left(cuts, at)
        if position < len(cuts) and cuts[position] == at:
            return False
        cuts.insert(position, at)
        self._known.clear()
        return True

    def mark(self, extent: Extent) -> None:
        """Cut where the extent begins and ends."""
        self.cut(extent.instance, extent.first)
        self.cut(extent.instance, extent.end)

    def divide(self, edges: Edges) -> None:
        """Cut an extent between its scalars."""
        for at in edges.inside():
            self.cut(edges.extent.instance, at)

    def link(self, source: Extent, target: Extent) -> None:
        """Bytes of `source` are copied to the bytes of `target` that have the same position."""
        self._links[source, target] = None

    def close(self) -> None:
        """Carry cuts over all links, until nothing is added."""
        pending = list(self._links)
        by_instance: dict[Instance, list[tuple[Extent, Extent]]] = {}
        for pair in pending:
            for end in pair:
                by_instance.setdefault(end.instance, []).append(pair)
        queued = set(pending)
        while pending:
            pair = pending.pop()
            queued.discard(pair)
            for cut, copy in (pair, (pair[1], pair[0])):
                if any([self.cut(copy.instance, copy.first + at - cut.first) for at in self._inside(cut)]):
                    affected = dict.fromkeys(link for link in by_instance[copy.instance] if link not in queued)
                    queued.update(affected)
                    pending += affected

    def _inside(self, extent: Extent) -> list[int]:
        cuts = self._cuts.get(extent.instance, [])
        return cuts[bisect_left(cuts, extent.first) : bisect_right(cuts, extent.end)]

    def of(self, extent: Extent) -> tuple[Cell, ...]:
        """The cells of an extent, in order. A cut that is missing at either end is taken to be there."""
        key = (extent.instance, extent.first, extent.end)
        if key not in self._known:
            inside = [at for at in self._inside(extent) if extent.first < at < extent.end]
            ends = [extent.first, *inside, extent.end]
            self._known[key] = tuple(Cell(extent.instance, a, b - a) for a, b in itertools.pairwise(ends) if b > a)
        return self._known[key]


def paired(source: Footprint, target: Footprint) -> Iterator[tuple[Extent, Extent]]:
    """The stretches of two footprints, cut so that they pair byte by byte; what pairs with a gap is left out."""
    left, right = list(reversed(source.stretches)), list(reversed(target.stretches))
    while left and right:
        first, second = left.pop(), right.pop()
        size = min(first.size, second.size)
        for stretch, rest in ((first, left), (second, right)):
            if stretch.size > size:
                rest.append(_from(stretch, size))
        if isinstance(first, Extent) and isinstance(second, Extent):
            yield _upto(first, size), _upto(second, size)


def _upto(extent: Extent, size: int) -> Extent:
    return Extent(extent.instance, extent.first, size, extent.name)


def _from(stretch: Stretch, at: int) -> Stretch:
    if isinstance(stretch, Gap):
        return Gap(stretch.size - at, stretch.filler)
    return Extent(stretch.instance, stretch.first + at, stretch.size - at, stretch.name)


@dataclass(slots=True)
class Starts:
    """Where matrices begin in each instance: a matrix that is shorter than its shape ends where the next begins."""

    _at: dict[Instance, list[int]] = field(default_factory=dict)

    def add(self, instance: Instance, at: int) -> bool:
        """A matrix begins there; True if that is new."""
        known = self._at.setdefault(instance, [])
        if at in known:
            return False
        insort(known, at)
        return True

    @property
    def count(self) -> int:
        """The number of starts that are known."""
        return sum(len(known) for known in self._at.values())

    def next(self, instance: Instance, at: int) -> int:
        """The first byte after `at` where another matrix begins, or the end of the instance."""
        known = self._at.get(instance, [])
        position = bisect_right(known, at)
        return known[position] if position < len(known) else instance.size

    def update(self, pairs: Iterable[tuple[Instance, int]]) -> bool:
        """Add several; True if any was new."""
        return any([self.add(instance, at) for instance, at in pairs])
