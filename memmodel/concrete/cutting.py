"""The cells of one execution: memory cut wherever an access of it begins or ends (docs/executions.md, "Cells").

In: the accesses of an execution, the elements that a question asks for. Out: `Cutting`. The method is kept simple: a
set of cuts for each instance, which grows until carrying cuts over copies adds nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from memmodel.memory.bytes import Cell, Extent, Footprint, Instance

Copy = tuple[Footprint, Footprint]
"""Bytes of the first are copied to the second, position by position."""


class Cutting:
    """Where each instance is cut."""

    def __init__(self, footprints: Iterable[Footprint], copies: Iterable[Copy], asked: Iterable[Extent]) -> None:
        self._cuts: dict[Instance, set[int]] = {}
        for footprint in footprints:
            for place, at in self._edges(footprint):
                self._cuts.setdefault(place, set()).add(at)
        for extent in asked:
            self._cuts.setdefault(extent.instance, set()).update((extent.first, extent.end))
        runs = [run for source, target in copies for run in _runs(source, target)]
        while any([self._carry(run) for run in runs]):
            pass
        self._sorted = {instance: sorted(cuts) for instance, cuts in self._cuts.items()}

    def _edges(self, footprint: Footprint) -> Iterator[tuple[Instance, int]]:
        """Both ends of what is accessed, and the ends of its scalars."""
        position = 0
        for stretch in footprint.stretches:
            if isinstance(stretch, Extent):
                yield stretch.instance, stretch.first
                yield stretch.instance, stretch.end
                if footprint.scalar is not None:
                    for byte in range(stretch.size):
                        if (position + byte) % footprint.scalar == 0:
                            yield stretch.instance, stretch.first + byte
            position += stretch.size

    def _carry(self, run: tuple[Instance, int, Instance, int, int]) -> bool:
        """Carry the cuts inside a run of copied bytes from either side to the other; was any new?"""
        source, first, target, second, size = run
        changed = False
        for here, a, there, b in ((source, first, target, second), (target, second, source, first)):
            cuts = self._cuts.setdefault(there, set())
            for cut in [cut for cut in self._cuts.get(here, ()) if a <= cut <= a + size]:
                if cut - a + b not in cuts:
                    cuts.add(cut - a + b)
                    changed = True
        return changed

    def cells(self, extent: Extent) -> list[Cell]:
        """The cells of an extent, in order."""
        cuts = [cut for cut in self._sorted.get(extent.instance, ()) if extent.first < cut < extent.end]
        ends = [extent.first, *cuts, extent.end]
        return [Cell(extent.instance, a, b - a) for a, b in itertools.pairwise(ends)]

    def pieces(self, footprint: Footprint) -> Iterator[tuple[int, Cell, str]]:
        """The cells of a footprint: (position in its data, cell, name of the variable)."""
        position = 0
        for stretch in footprint.stretches:
            if isinstance(stretch, Extent):
                at = position
                for cell in self.cells(stretch):
                    yield at, cell, stretch.name
                    at += cell.size
            position += stretch.size


def _runs(source: Footprint, target: Footprint) -> Iterator[tuple[Instance, int, Instance, int, int]]:
    """Runs of bytes that are copied: (instance, first) to (instance, first), and how many."""
    sources, targets = list(_placed(source)), list(_placed(target))
    for position, one in sources:
        for place, other in targets:
            low, high = max(position, place), min(position + one.size, place + other.size)
            if low < high:
                yield one.instance, one.first + low - position, other.instance, other.first + low - place, high - low


def _placed(footprint: Footprint) -> Iterator[tuple[int, Extent]]:
    """What is accessed, with its position in the data."""
    position = 0
    for stretch in footprint.stretches:
        if isinstance(stretch, Extent):
            yield position, stretch
        position += stretch.size
