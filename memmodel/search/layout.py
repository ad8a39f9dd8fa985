"""Worlds: every choice of forms, and of a placement, numbered.

In: the sizes of the dimensions. Out: sets of worlds as integers: bit w is the world w. The first dimension changes
fastest. `shift` compares worlds that differ in one choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence


class WorldGrid:
    """`sizes[d]`: how many choices dimension d has."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self.strides: list[int] = []
        self.count = 1
        for size in sizes:
            self.strides.append(self.count)
            self.count *= size
        self.full = (1 << self.count) - 1
        self._known: dict[tuple[int, int], int] = {}

    def where(self, dimension: int, choice: int) -> int:
        """The worlds with this choice in this dimension."""
        key = (dimension, choice)
        if key not in self._known:
            stride, period = self.strides[dimension], self.strides[dimension] * self.sizes[dimension]
            block = (1 << stride) - 1 << choice * stride
            repeats = self.count // period
            # block at 0, period, 2·period, …: doubled until it is long enough
            done, mask = 1, block
            while done < repeats:
                more = min(done, repeats - done)
                mask |= (mask & (1 << more * period) - 1) << done * period
                done += more
            self._known[key] = mask
        return self._known[key]

    def moved(self, worlds: int, dimension: int, old: int, new: int) -> int:
        """For worlds with choice `old`: are the worlds with `new` in its place in the set? As a set of the former."""
        inside = worlds & self.where(dimension, new)
        by = (new - old) * self.strides[dimension]
        return inside >> by if by > 0 else inside << -by

    def choice(self, world: int) -> tuple[int, ...]:
        """The choices of a world."""
        found = []
        for size in self.sizes:
            world, one = divmod(world, size)
            found.append(one)
        return tuple(found)

    def number(self, choice: Sequence[int]) -> int:
        return sum(one * stride for one, stride in zip(choice, self.strides, strict=True))


def members(worlds: int) -> Iterator[int]:
    """The worlds of a set, smallest first."""
    at = 0
    while worlds:
        low = (worlds & -worlds).bit_length() - 1
        at += low
        yield at
        worlds >>= low + 1
        at += 1
