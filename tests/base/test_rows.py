"""Relations as lists of integers: are large ones turned over as small ones are?"""

from __future__ import annotations

import random

import pytest

from memmodel.base.rows import (
    MANY,
    TILE,
    bits,
    closure,
    compose,
    inverse,
    pairs_of,
    rows_of,
    rows_within,
    shared,
    transposed,
)


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


@pytest.mark.parametrize("members", [[], [0], [1, 2, 4], [5, 70, 71, 3000], [*range(0, 400, 3), 9001]])
def test_the_members_of_a_set(members: list[int]) -> None:
    assert bits(sum(1 << member for member in members)) == members


@pytest.mark.parametrize("different", [3, 2 * MANY])
@pytest.mark.parametrize("count", [40, MANY + 30])
def test_relations_of_many_events_are_composed_as_pairs(count: int, different: int) -> None:
    chance = random.Random(count + different)
    shapes = [[chance.randrange(count) for _ in range(chance.randrange(4))] for _ in range(different)]
    left, right = ({(a, b) for a in range(count) for b in chance.choice(shapes)} for _ in range(2))
    after: dict[int, set[int]] = {}
    for a, b in right:
        after.setdefault(a, set()).add(b)
    expected = {(a, c) for a, b in left for c in after.get(b, ())}
    composed = compose(rows_of(left, count), rows_of(right, count))
    assert set(pairs_of(composed)) == expected
    assert set(pairs_of(inverse(rows_of(left, count)))) == {(b, a) for a, b in left}


@pytest.mark.parametrize("count", [40, MANY + 30])
def test_rows_that_contain_the_next_one_are_composed_as_pairs(count: int) -> None:
    chance = random.Random(count)
    kept = sum(1 << event for event in range(count) if chance.random() < 0.7)
    left = [(1 << count) - (2 << event) if chance.random() < 0.8 else kept for event in range(count)]
    right = [1 << chance.randrange(count) | 1 << chance.randrange(count) for _ in range(count)]
    expected = [0] * count
    for event, row in enumerate(left):
        for step in bits(row):
            expected[event] |= right[step]
    assert compose(left, right) == expected


@pytest.mark.parametrize("cycle", [False, True])
def test_a_closure_with_and_without_cycles(cycle: bool) -> None:
    chance = random.Random(7)
    pairs = {(a, b) for a, b in ((chance.randrange(60), chance.randrange(60)) for _ in range(70)) if a < b or cycle}
    expected = set(pairs)
    while more := {(a, d) for a, b in expected for c, d in pairs if b == c} - expected:
        expected |= more
    assert set(pairs_of(closure(rows_of(pairs, 60)))) == expected


@pytest.mark.parametrize("count", [40, MANY + 30])
def test_rows_that_are_one_object_stand_for_each_other(count: int) -> None:
    chance = random.Random(count)
    shapes = [0, *(1 << chance.randrange(count) | 1 << chance.randrange(count) for _ in range(9))]
    left, right = ([chance.choice(shapes) for _ in range(count)] for _ in range(2))
    later = [row >> event + 1 << event + 1 for event, row in enumerate(right)]
    upwards = shared(later)
    kept = sum(1 << event for event in range(count) if chance.random() < 0.5)

    def apart(rows: list[int]) -> list[int]:
        """The same rows, each an object of its own."""
        return [int(str(row)) for row in rows]

    assert upwards == later
    assert len({id(row) for row in upwards}) == len(set(later))
    assert rows_within(left, kept) == [row & kept for row in left]
    assert compose(left, right) == compose(apart(left), apart(right))
    assert closure(upwards) == closure(apart(later))
    reached = [0] * count
    for event in reversed(range(count)):
        reached[event] = later[event]
        for step in bits(later[event]):
            reached[event] |= reached[step]
    assert closure(upwards) == reached
