"""Indices of CTAs and threads in three dimensions, and their numbers: x counts fastest.

In: an index or a number, the extents of the grid, cluster or block. Out: the other one.
"""

from __future__ import annotations

from collections.abc import Sequence


def index_of(number: int, extents: Sequence[int]) -> tuple[int, int, int]:
    """The index that has a number."""
    x, y, _ = extents
    return number % x, number // x % y, number // (x * y)


def number_of(index: Sequence[int], extents: Sequence[int]) -> int:
    """The number of an index."""
    x, y, _ = extents
    return index[0] + x * (index[1] + y * index[2])
