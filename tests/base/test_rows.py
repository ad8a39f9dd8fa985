"""Relations as lists of integers: are large ones turned over as small ones are?"""

from __future__ import annotations

import random

import pytest

from memmodel.base.rows import TILE, inverse, transposed


@pytest.mark.parametrize("count", [1, 7, 8, 9, 700, TILE - 1, TILE, TILE + 1, 2 * TILE + 5])
def test_a_relation_is_turned_over(count: int) -> None:
    chance = random.Random(count)
    rows = [0] * count
    pairs = {(chance.randrange(count), chance.randrange(count)) for _ in range(min(4 * count, 4000))}
    for one, other in pairs | {(0, count - 1), (count - 1, 0)}:
        rows[one] |= 1 << other
    expected = [0] * count
    for one, other in pairs | {(0, count - 1), (count - 1, 0)}:
        expected[other] |= 1 << one
    assert transposed(rows) == inverse(rows) == expected


def test_a_full_relation_is_turned_over() -> None:
    count = TILE + 40
    rows = [((1 << count) - 1) >> one << one for one in range(count)]
    assert transposed(rows) == [(1 << one + 1) - 1 for one in range(count)]
