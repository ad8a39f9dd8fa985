"""Every order that a choice may take: strict partial orders, acyclic relations, acyclic orientations.

In: a number of elements, and the pairs that have to be comparable. Out: orders, as tuples of rows (row a, bit b: a
before b), each exactly once. Orders on n elements are built by adding the last element to an order on n-1, so that
nothing is generated and thrown away but what the comparable pairs exclude.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import permutations

Order = tuple[int, ...]

_SORTED = 5
"""Orders of so many elements are few enough to sort."""


def partial_orders(count: int, comparable: Sequence[int] = ()) -> Iterator[Order]:
    """All strict partial orders on 0..count-1 in which a and b are related if bit b of comparable[a] is set."""
    if count == 0:
        yield ()
        return
    last = count - 1
    needed = (comparable[last] if comparable else 0) & ((1 << last) - 1)
    for order in partial_orders(last, comparable):
        below = [sum(1 << a for a in range(last) if order[a] >> b & 1) for b in range(last)]
        downs = [one for one in range(1 << last) if _closed(one, below)]
        ups = [one for one in range(1 << last) if _closed(one, order)]
        for down in downs:
            for up in ups:
                if down & up or needed & ~(down | up):
                    continue
                if any(down >> a & 1 and up & ~order[a] for a in range(last)):
                    continue
                yield (*(row | ((down >> a & 1) << last) for a, row in enumerate(order)), up)


def acyclic_relations(count: int) -> Iterator[Order]:
    """All acyclic relations on 0..count-1, transitive or not."""
    if count == 0:
        yield ()
        return
    last = count - 1
    for order in acyclic_relations(last):
        reach = closed(order)
        for down in range(1 << last):
            for up in range(1 << last):
                if any(up >> a & 1 and (reach[a] | 1 << a) & down for a in range(last)):
                    continue
                yield (*(row | ((down >> a & 1) << last) for a, row in enumerate(order)), up)


def least_orders(count: int, comparable: Sequence[int]) -> Iterator[Order]:
    """The partial orders that hold nothing but what the comparable pairs make them: closed acyclic orientations."""
    pairs = [(a, b) for b in range(count) for a in range(b) if comparable[a] >> b & 1]
    seen: set[Order] = set()

    def orient(done: int, order: Order) -> Iterator[Order]:
        if done == len(pairs):
            if order not in seen:
                seen.add(order)
                yield order
            return
        a, b = pairs[done]
        for first, second in ((a, b), (b, a)):
            if not order[second] >> first & 1:
                rows = list(order)
                rows[first] |= 1 << second
                yield from orient(done + 1, closed(rows))

    yield from orient(0, (0,) * count)


def closed(rows: Sequence[int]) -> Order:
    """The transitive closure of a relation."""
    reach = list(rows)
    for middle in range(len(reach)):
        for a, row in enumerate(reach):
            if row >> middle & 1:
                reach[a] |= reach[middle]
    return tuple(reach)


def _closed(members: int, rows: Sequence[int]) -> bool:
    """Does the set contain all that its members are related to?"""
    return all(not rows[a] & ~members for a in range(len(rows)) if members >> a & 1)


def write_orders(count: int, transitive: bool) -> Iterator[Order]:
    """All orders of the writes to one location: partial orders, or all acyclic relations if the model can tell.

    Those that relate most come first, since most models want writes ordered: a witness is found sooner.
    """
    if count <= _SORTED:
        yield from _sorted_orders(count, transitive)
        return
    for sequence in permutations(range(count)):
        after = 0
        rows = [0] * count
        for element in reversed(sequence):
            rows[element] = after
            after |= 1 << element
        yield tuple(rows)
    for order in partial_orders(count) if transitive else acyclic_relations(count):
        if 2 * sum(row.bit_count() for row in order) != count * (count - 1):
            yield order


@lru_cache(maxsize=16)
def _sorted_orders(count: int, transitive: bool) -> tuple[Order, ...]:
    orders = list(partial_orders(count) if transitive else acyclic_relations(count))
    orders.sort(key=lambda order: -sum(row.bit_count() for row in order))
    return tuple(orders)
