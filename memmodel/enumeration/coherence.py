"""Every co of one skeleton, dropping what cannot become consistent as soon as some of it is decided.

In: the writes to each location, and a judge of partly decided co. Out: whole co's with their maximal writes. Locations
are decided one after the other, and the writes to one location one by one; what is undecided lies between two bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from memmodel.enumeration.execution import bits
from memmodel.enumeration.orders import Order, grow, write_orders
from memmodel.errors import TooLarge
from memmodel.isa.memory import Location

MAX_WRITES = 8
"""More writes to one location have more orders than anyone can try."""

_FEW_WRITES = 3
"""So many writes to a location have so few orders (19, or 25) that these are kept."""

_FEW = 6
"""So few co's are tried without asking the judge on the way."""

Alive = Callable[[int, int], bool]
"""Can a co between these two matrices (the least and the greatest it may become) still be consistent?"""


@dataclass(frozen=True, slots=True)
class _Contested:
    """A location with writes beside its initial one. `first`: initial before others; `free`: all pairs of others."""

    where: Location
    others: tuple[int, ...]
    first: int
    free: int


class Coherence:
    """The choices of co for the writes of one skeleton; `count` events in it. Raises TooLarge for too many writes."""

    def __init__(self, writes: Mapping[Location, Sequence[int]], count: int, transitive: bool) -> None:
        self._count = count
        self._transitive = transitive
        self._settled: dict[Location, int] = {}
        self._contested: list[_Contested] = []
        self._few = 1
        for where, (initial, *others) in writes.items():
            if len(others) > MAX_WRITES:
                raise TooLarge(f"{len(others)} writes to {where}, more than {MAX_WRITES}: too many orders to try")
            if not others:
                self._settled[where] = 1 << initial
                continue
            everyone = sum(1 << event for event in others)
            free = sum((everyone ^ 1 << event) << event * count for event in others)
            self._contested.append(_Contested(where, tuple(others), everyone << initial * count, free))
            self._few *= len(write_orders(len(others), transitive)) if len(others) <= _FEW_WRITES else _FEW + 1
        self._first = sum(one.first for one in self._contested)

    def choices(self, alive: Alive) -> Iterator[tuple[int, dict[Location, int]]]:
        """Every co for which all that leads to it is alive: its matrix, and masks of each location's maximal writes."""
        if self._few > _FEW:
            if not alive(self._first, self._first | sum(one.free for one in self._contested)):
                return
            yield from self._extend(0, self._first, self._settled, alive)
        else:
            yield from self._extend(0, self._first, self._settled, None)

    def _extend(
        self, at: int, co: int, last: dict[Location, int], alive: Alive | None
    ) -> Iterator[tuple[int, dict[Location, int]]]:
        """Decide the locations from `at` on."""
        if at == len(self._contested):
            yield co, last
            return
        one = self._contested[at]
        later = sum(other.free for other in self._contested[at + 1 :])
        for order in self._orders(one, co, later, alive):
            maximal = sum(1 << event for event, row in zip(one.others, order, strict=True) if not row)
            yield from self._extend(at + 1, co | self._matrix(order, one.others), {**last, one.where: maximal}, alive)

    def _orders(self, one: _Contested, co: int, later: int, alive: Alive | None) -> Iterator[Order]:
        count = len(one.others)
        if alive is None:
            yield from write_orders(count, self._transitive)
            return
        is_last = not later
        judge = alive

        def viable(order: Order) -> bool:
            if is_last and len(order) == count:
                return True
            placed = one.others[: len(order)]
            among = sum(1 << event for event in placed)
            decided = sum((among ^ 1 << event) << event * self._count for event in placed)
            least = co | self._matrix(order, placed)
            return judge(least, least | one.free & ~decided | later)

        yield from grow(count, self._transitive, viable)

    def _matrix(self, order: Order, events: Sequence[int]) -> int:
        matrix = 0
        for event, row in zip(events, order, strict=True):
            for later in bits(row):
                matrix |= 1 << event * self._count + events[later]
        return matrix
