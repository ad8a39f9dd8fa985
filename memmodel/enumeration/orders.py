"""Every order that a choice may take: strict partial orders, acyclic orientations.

In: a number of elements, and the pairs that have to be comparable. Out: orders, as tuples of rows (row a, bit b: a
before b), each exactly once. Orders on n elements are built by adding the last element to an order on n-1, so that
only orders that the comparable pairs exclude are generated in vain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from memmodel.base.rows import closure

Order = tuple[int, ...]


def partial_orders(count: int, comparable: Sequence[int] = ()) -> Iterator[Order]:
    """All strict partial orders on 0..count-1 in which a and b are related if bit b of comparable[a] is set."""

    def fits(order: Order) -> bool:
        last = len(order) - 1
        related = order[last] | sum(1 << a for a in range(last) if order[a] >> last & 1)
        return not (comparable[last] & (1 << last) - 1) & ~related

    return grow(count, fits if comparable else None)


def grow(count: int, viable: Callable[[Order], bool] | None) -> Iterator[Order]:
    """All partial orders that are viable, and whose restrictions to 0..k are so for each k.

    What relates most comes first: most models want writes ordered, so a witness is found sooner.
    """
    if count == 0:
        yield ()
        return
    for order in grow(count - 1, viable):
        for longer in _extensions(order):
            if viable is None or viable(longer):
                yield longer


def _extensions(order: Order) -> list[Order]:
    """An order with one more element, in every way: `down` comes before it, `up` after it."""
    last = len(order)
    below = [sum(1 << a for a in range(last) if order[a] >> b & 1) for b in range(last)]
    downs = [members for members in range(1 << last) if _closed(members, below)]
    ups = [members for members in range(1 << last) if _closed(members, order)]
    extensions: list[tuple[int, Order]] = []
    for down in downs:
        for up in ups:
            if up & down or any(down >> a & 1 and up & ~order[a] for a in range(last)):
                continue
            longer = (*(row | ((down >> a & 1) << last) for a, row in enumerate(order)), up)
            extensions.append((-(down | up).bit_count(), longer))
    extensions.sort(key=lambda extension: extension[0])
    return [longer for _, longer in extensions]


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
                yield from orient(done + 1, tuple(closure(rows)))

    yield from orient(0, (0,) * count)


def linear_extensions(members: int, before: int, count: int) -> Iterator[int]:
    """The strict total orders on a set that contain a relation, both as matrices; some order if there is none.

    `members`: a mask of events out of `count`.
    """
    events = [event for event in range(count) if members >> event & 1]
    after = {b: sum(1 << a for a in events if before >> a * count + b & 1) for b in events}
    left = events
    while ready := [event for event in left if not any(after[event] >> other & 1 for other in left)]:
        left = [event for event in left if event not in ready]
    if left:  # a cycle
        yield sum((members & -1 << event + 1) << event * count for event in events)
        return

    def place(left: int, matrix: int) -> Iterator[int]:
        if not left:
            yield matrix
        for event in events:
            if left >> event & 1 and not after[event] & left:
                rest = left & ~(1 << event)
                yield from place(rest, matrix | rest << event * count)

    yield from place(members, 0)


def _closed(members: int, rows: Sequence[int]) -> bool:
    """True if the set contains all that its members are related to."""
    return all(not rows[a] & ~members for a in range(len(rows)) if members >> a & 1)


@lru_cache(maxsize=16)
def write_orders(count: int) -> tuple[Order, ...]:
    """All partial orders of a few writes."""
    return tuple(grow(count, None))
