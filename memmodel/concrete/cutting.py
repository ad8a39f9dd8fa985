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
    """The places where accesses cut each instance."""

    def __init__(self, footprints: Iterable[Footprint], copies: Iterable[Copy], asked: Iterable[Extent]) -> None:
        self._cuts: dict[Instance, set[int]] = {}
        for footprint in footprints:
            for instance, cut in _edges(footprint):
                self._cuts.setdefault(instance, set()).add(cut)
        for extent in asked:
            self._cuts.setdefault(extent.instance, set()).update((extent.first, extent.end))
        runs = [run for source, target in copies for run in _runs(source, target)]
        while any([self._carry(run) for run in runs]):
            pass
        self._sorted = {instance: sorted(cuts) for instance, cuts in self._cuts.items()}

    def _carry(self, run: tuple[Extent, Extent]) -> bool:
        """Carry the cuts inside a run of copied bytes from either side to the other. True if any is new."""
        changed = False
        for side, other in (run, run[::-1]):
            cuts = self._cuts.setdefault(other.instance, set())
            inside = {cut for cut in self._cuts.get(side.instance, ()) if side.first <= cut <= side.end}
            carried = {cut - side.first + other.first for cut in inside}
            changed = changed or not carried <= cuts
            cuts |= carried
        return changed

    def cells(self, extent: Extent) -> list[Cell]:
        """The cells of an extent, in order."""
        cuts = [cut for cut in self._sorted.get(extent.instance, ()) if extent.first < cut < extent.end]
        ends = [extent.first, *cuts, extent.end]
        return [Cell(extent.instance, a, b - a) for a, b in itertools.pairwise(ends)]

    def pieces(self, footprint: Footprint) -> Iterator[tuple[int, Cell, str]]:
        """The cells of a footprint: (position in its data, cell, name of the variable)."""
        for position, extent in footprint.placed():
            for cell in self.cells(extent):
                yield position + cell.first - extent.first, cell, extent.name


def _edges(footprint: Footprint) -> Iterator[tuple[Instance, int]]:
    """Both ends of what is accessed, and the ends of its scalars."""
    for position, extent in footprint.placed():
        yield extent.instance, extent.first
        yield extent.instance, extent.end
        if footprint.scalar is not None:
            for byte in range(extent.size):
                if (position + byte) % footprint.scalar == 0:
                    yield extent.instance, extent.first + byte


def _runs(source: Footprint, target: Footprint) -> Iterator[tuple[Extent, Extent]]:
    """Runs of bytes that are copied: from where, and to where."""
    for at, origin in source.placed():
        for place, written in target.placed():
            low, high = max(at, place), min(at + origin.size, place + written.size)
            if low < high:
                yield (
                    Extent(origin.instance, origin.first + low - at, high - low, origin.name),
                    Extent(written.instance, written.first + low - place, high - low, written.name),
                )
