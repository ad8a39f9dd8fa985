"""What is asked about one at a time: the lengths of threads, and where these are.

In: Vocabulary, a number of instructions. Out: `ThreadLayout`s, each once up to the order of its threads. There are few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product

from memmodel.search.sketches import partitions, seatings
from memmodel.search.text import Seats
from memmodel.search.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class ThreadLayout:
    """The lengths of the threads and where these are; `number`: how many instructions there are."""

    lengths: tuple[int, ...]
    seats: Seats

    @property
    def number(self) -> int:
        return sum(self.lengths)

    def interchangeable(self, first: int, second: int) -> bool:
        """True if two threads have one length and exchanging them changes no placement."""
        order = list(range(len(self.lengths)))
        order[first], order[second] = second, first
        return self.lengths[first] == self.lengths[second] and _moved(self.seats, order) == _moved(self.seats)


def layouts(vocabulary: Vocabulary, size: int) -> list[ThreadLayout]:
    """All layouts of `size` instructions; first those of two threads of about one length, which most often differ."""
    every = [
        ThreadLayout(lengths, seats)
        for lengths in partitions(size, vocabulary.threads)
        for seats in _seatings(lengths, vocabulary.spread)
    ]
    return sorted(every, key=lambda layout: (abs(2 - len(layout.lengths)), max(layout.lengths)))


def _seatings(lengths: Sequence[int], spread: Sequence[str]) -> Iterator[Seats]:
    """The placements of threads, one for all that differ by the order of threads of one length."""
    for seats in seatings(len(lengths), spread):
        if all(_moved(seats) <= _moved(seats, order) for order in _orders(lengths)):
            yield seats


def _orders(lengths: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The orders of the threads in which their lengths are the same."""
    groups = [[at for at, other in enumerate(lengths) if other == length] for length in dict.fromkeys(lengths)]
    for parts in product(*(permutations(group) for group in groups)):
        order = list(range(len(lengths)))
        for group, part in zip(groups, parts, strict=True):
            for at, other in zip(group, part, strict=True):
                order[at] = other
        yield tuple(order)


def _moved(seats: Seats, order: Sequence[int] | None = None) -> Seats:
    """Placements in another order of the threads, with GPUs, clusters and CTAs numbered as they come."""
    numbers: list[dict[tuple[int, ...], int]] = [{}, {}, {}]
    moved = []
    for thread in range(len(seats)) if order is None else order:
        gpu, cluster, cta = seats[thread]
        keys = (gpu,), (gpu, cluster), (gpu, cluster, cta)
        first, second, third = (known.setdefault(key, len(known)) for known, key in zip(numbers, keys, strict=True))
        moved.append((first, second, third))
    return tuple(moved)
