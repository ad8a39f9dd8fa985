"""Orders are generated each once and completely: compared with every relation there is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations

import pytest

from memmodel.base.rows import closure
from memmodel.enumeration.orders import Order, grow, least_orders, linear_extensions, partial_orders, write_orders


def all_relations(count: int) -> Iterator[Order]:
    row = (1 << count) - 1
    for number in range(1 << count * count):
        yield tuple(number >> a * count & row for a in range(count))


def is_partial_order(order: Order) -> bool:
    return tuple(closure(order)) == order and not any(row >> a & 1 for a, row in enumerate(order))


def test_of_the_sixteen_relations_on_two_writes_three_order_them() -> None:
    assert sorted(partial_orders(2)) == sorted(filter(is_partial_order, all_relations(2))) == [(0, 0), (0, 1), (2, 0)]


def test_three_writes_have_nineteen_partial_orders() -> None:
    assert sorted(partial_orders(3)) == sorted(filter(is_partial_order, all_relations(3)))
    assert len(set(write_orders(3))) == len(write_orders(3)) == 19


@pytest.mark.parametrize(("count", "partial"), [(0, 1), (1, 1), (2, 3), (4, 219)])
def test_counts(count: int, partial: int) -> None:
    assert len(set(partial_orders(count))) == len(list(partial_orders(count))) == partial


def test_orders_grow_only_from_viable_ones() -> None:
    """First before second: refused on two elements, so never seen on four."""

    def viable(order: Order) -> bool:
        return len(order) < 2 or not order[1] & 1

    assert sorted(grow(4, viable)) == sorted(order for order in partial_orders(4) if not order[1] & 1)


def test_what_orders_most_comes_first() -> None:
    assert sum(row.bit_count() for row in next(partial_orders(5))) == 10


def test_five_elements_have_4231_partial_orders() -> None:
    assert sum(1 for _ in partial_orders(5)) == 4231


@pytest.mark.parametrize("comparable", [(0, 0, 0), (2, 1, 0), (2, 5, 2), (6, 5, 3), (4, 0, 1)])
def test_comparable_pairs_are_related_and_least_orders_hold_nothing_else(comparable: Order) -> None:
    def relates(order: Order) -> bool:
        return all(
            not comparable[a] >> b & 1 or (order[a] >> b | order[b] >> a) & 1 for a in range(3) for b in range(3)
        )

    fitting = [order for order in partial_orders(3) if relates(order)]
    assert sorted(partial_orders(3, comparable)) == sorted(fitting)
    least = set(least_orders(3, comparable))
    assert least <= set(fitting)
    for order in fitting:
        assert any(all(not small & ~large for small, large in zip(one, order, strict=True)) for one in least)


@pytest.mark.parametrize("members", range(8))
def test_total_orders_of_some_of_three_events_contain_what_comes_before(members: int) -> None:
    events = [event for event in range(3) if members >> event & 1]
    totals = {sum(1 << a * 3 + b for a, b in combinations(order, 2)) for order in permutations(events)}
    inside = sum(1 << a * 3 + b for a in events for b in events)
    for before in range(1 << 9):
        found = list(linear_extensions(members, before, 3))
        wanted = {total for total in totals if not before & inside & ~total}
        assert len(found) == len(set(found)) and set(found) <= totals
        assert set(found) == wanted if wanted else len(found) == 1
