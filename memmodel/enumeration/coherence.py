"""Every co of one skeleton, dropping what cannot become consistent as soon as some of it is decided.

In: the writes to each cell and their operations, and a judge of partly decided co. Out: whole co's with their maximal
writes. Operations that share cells, directly or through others, are ordered together; group by group, and within a
group one by one; what is undecided lies between two bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from memmodel.base.rows import bits
from memmodel.enumeration.orders import Order, grow, write_orders
from memmodel.errors import TooLarge
from memmodel.memory.bytes import Cell

MAX_WRITES = 8
"""More write operations that meet have more orders than anyone can try."""

_FEW_WRITES = 3
"""The orders of at most this many operations are kept: there are only 19."""

_FEW = 6
"""So few co's are tried without asking the judge on the way."""

Alive = Callable[[int, int], bool]
"""True if a co between two matrices (the least and the greatest that it may become) may be consistent."""


@dataclass(frozen=True, slots=True)
class CellWrites:
    """The writes to one cell: the initial one, and the others by operation."""

    cell: Cell
    initial: int
    others: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class _WriteGroup:
    """Operations that are ordered together. `pieces[k]`: cell -> event of operation k. `first`: initial writes before
    others; `free`: all pairs of others that share a cell."""

    pieces: tuple[Mapping[Cell, int], ...]
    first: int
    free: int


class Coherence:
    """The choices of co for the writes of one skeleton; `count` events in it. Raises TooLarge for too many writes."""

    def __init__(self, writes: Sequence[CellWrites], count: int) -> None:
        self._count = count
        self._settled = {of_cell.cell: 1 << of_cell.initial for of_cell in writes if not of_cell.others}
        self._groups = [self._group(operations, writes) for operations in _connected(writes)]
        self._first = sum(group.first for group in self._groups)
        self._few = 1
        for group in self._groups:
            many = len(group.pieces)
            if many > MAX_WRITES:
                raise TooLarge(f"{many} writes that overlap, more than {MAX_WRITES}: too many orders to try")
            self._few *= len(write_orders(many)) if many <= _FEW_WRITES else _FEW + 1

    def _group(self, operations: Sequence[int], writes: Sequence[CellWrites]) -> _WriteGroup:
        pieces: list[dict[Cell, int]] = [{} for _ in operations]
        first = 0
        for cell_writes in writes:
            for number, operation in enumerate(operations):
                if operation in cell_writes.others:
                    pieces[number][cell_writes.cell] = cell_writes.others[operation]
                    first |= 1 << cell_writes.initial * self._count + cell_writes.others[operation]
        free = 0
        for a, mine in enumerate(pieces):
            for b, other in enumerate(pieces):
                if a != b:
                    free |= self._pairs(mine, other)
        return _WriteGroup(tuple(pieces), first, free)

    def _pairs(self, mine: Mapping[Cell, int], other: Mapping[Cell, int]) -> int:
        """The pairs of co if one operation comes before another, one for each cell that both write."""
        return sum(1 << event * self._count + other[cell] for cell, event in mine.items() if cell in other)

    def choices(self, alive: Alive) -> Iterator[tuple[int, dict[Cell, int]]]:
        """Every co for which all that leads to it is alive: its matrix, and masks of each cell's maximal writes."""
        if self._few > _FEW:
            if not alive(self._first, self._first | sum(group.free for group in self._groups)):
                return
            yield from self._extend(0, self._first, self._settled, alive)
        else:
            yield from self._extend(0, self._first, self._settled, None)

    def _extend(
        self, at: int, co: int, last: dict[Cell, int], alive: Alive | None
    ) -> Iterator[tuple[int, dict[Cell, int]]]:
        """Decide the groups from `at` on."""
        if at == len(self._groups):
            yield co, last
            return
        group = self._groups[at]
        later = sum(other.free for other in self._groups[at + 1 :])
        seen: set[int] = set()
        for order in self._orders(group, co, later, alive):
            matrix = self._matrix(order, group.pieces)
            if matrix not in seen:
                seen.add(matrix)
                yield from self._extend(at + 1, co | matrix, {**last, **self._maximal(matrix, group.pieces)}, alive)

    def _maximal(self, matrix: int, pieces: Sequence[Mapping[Cell, int]]) -> dict[Cell, int]:
        """For each cell, the writes that no other follows."""
        row = (1 << self._count) - 1
        maximal: dict[Cell, int] = {}
        for piece in pieces:
            for cell, event in piece.items():
                if not matrix >> event * self._count & row:
                    maximal[cell] = maximal.get(cell, 0) | 1 << event
        return maximal

    def _orders(self, group: _WriteGroup, co: int, later: int, alive: Alive | None) -> Iterator[Order]:
        count = len(group.pieces)
        if alive is None:
            yield from write_orders(count)
            return
        is_last = not later
        judge = alive

        def viable(order: Order) -> bool:
            if is_last and len(order) == count:
                return True
            placed = group.pieces[: len(order)]
            decided = sum(self._pairs(a, b) for a in placed for b in placed if a is not b)
            least = co | self._matrix(order, placed)
            return judge(least, least | group.free & ~decided | later)

        yield from grow(count, viable)

    def _matrix(self, order: Order, pieces: Sequence[Mapping[Cell, int]]) -> int:
        matrix = 0
        for mine, row in zip(pieces, order, strict=True):
            for later in bits(row):
                matrix |= self._pairs(mine, pieces[later])
        return matrix


def _connected(writes: Sequence[CellWrites]) -> list[list[int]]:
    """Operations in groups: those that share a cell, directly or through others, are in one."""
    group: dict[int, list[int]] = {}
    for cell_writes in writes:
        met = list(cell_writes.others)
        for operation in met:
            group.setdefault(operation, [operation])
        for operation in met[1:]:
            mine, other = group[met[0]], group[operation]
            if mine is not other:
                mine += other
                for member in other:
                    group[member] = mine
    groups: list[list[int]] = []
    for members in group.values():
        if all(members is not known for known in groups):
            groups.append(members)
    return groups
