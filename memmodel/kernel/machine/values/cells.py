"""The contents of memory as terms: for each byte, the value that the last write left there.

In: the writes of a run, as they are made. Out: `MemoryTerms`, `OwnAccess`. Two loads of one place without a write
between them give one term: for all data, they read the same write, or race with one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from memmodel.kernel.machine.values.slices import Piece, Slices
from memmodel.kernel.machine.values.terms import Terms
from memmodel.kernel.trace.blocks import Block

FEW = 16
"""The bytes of a write up to this size are remembered one by one; a larger write is a new state of the whole memory."""

Cell = tuple[int, int, int]
"""A term, the number of one of its bytes, and its size in bytes."""

LOOSE: Cell = (-1, 0, 0)
"""A byte that may differ from load to load."""


class OwnAccess(NamedTuple):
    """A thread reads or writes its own memory, or parameters of the entry."""

    thread: int
    block: Block
    first: int
    size: int


class MemoryTerms:
    """The bytes of all memory. `loose`: instructions that leave indeterminate bytes.

    `moves`: accesses that leave none in the traces (`OwnAccess`), since the list was last emptied.
    """

    def __init__(self, terms: Terms, slices: Slices, loose: frozenset[int]) -> None:
        self._terms, self._slices, self._loose = terms, slices, loose
        self._cells: dict[Block, dict[int, Cell]] = {}
        self._states: dict[Block, int] = {}
        self._blocks: dict[Block, int] = {}
        self.moves: list[OwnAccess] = []

    def written(self, block: Block, first: int, size: int, at: int) -> None:
        """An instruction writes an unknown value to these bytes."""
        known, end = self._cells.setdefault(block, {}), first + size
        if at in self._loose:
            known.update((place, LOOSE) for place in range(first, end))
        elif size <= FEW:
            self.store(block, first, size, self._terms.fresh())
        else:
            self._states[block] = self._states.get(block, 0) + 1
            self._cells[block] = {place: cell for place, cell in known.items() if not first <= place < end}

    def own(self, thread: int, block: Block, first: int, size: int, at: int, *, put: bool) -> None:
        """A thread reads its own memory, or puts something there."""
        self.moves.append(OwnAccess(thread, block, first, size))
        if put:
            self.written(block, first, size, at)

    def taken(self, block: Block, first: int, size: int) -> list[Cell]:
        """The bytes that are there, to be left elsewhere: the parameters and results of a call."""
        known, place = self._cells.get(block, {}), self._place(block)
        cells = [known.get(at) for at in range(first, first + size)]
        unwritten = (self._terms.of("untouched", 1, *place, first + n) for n in range(size))
        return [(term, 0, 1) if cell is None else cell for cell, term in zip(cells, unwritten, strict=True)]

    def left(self, block: Block, first: int, cells: Sequence[Cell]) -> None:
        self._cells.setdefault(block, {}).update(enumerate(cells, first))

    def store(self, block: Block, first: int, size: int, term: int) -> None:
        """A write leaves this value in these bytes."""
        known = self._cells.setdefault(block, {})
        for n in range(size):
            known[first + n] = term, n, size

    def load(self, block: Block, first: int, size: int) -> int:
        """The value of these bytes."""
        known = self._cells.get(block, {})
        whole = known.get(first, LOOSE)[0]
        if whole >= 0 and all(known.get(first + n) == (whole, n, size) for n in range(size)):
            return whole
        place = self._place(block)
        cells = [known.get(first + n) for n in range(size)]
        if not any(cells):
            return self._slices.has(self._terms.of("untouched", size, *place, first), 8 * size)
        if LOOSE in cells:
            return self._terms.fresh()
        if None in cells:
            parts = ((*place, first + n) if cell is None else cell for n, cell in enumerate(cells))
            return self._slices.has(self._terms.of("bytes", size, *parts), 8 * size)
        return self._slices.joined(Piece(cell[0], 8 * cell[1], 8) for cell in cells if cell is not None)

    def _place(self, block: Block) -> tuple[int, int]:
        """Memory in the state in which the last large write left it."""
        return self._blocks.setdefault(block, len(self._blocks)), self._states.get(block, 0)
