"""Relations as lists of integers: bit b of row a says that event a is related to event b.

In: rows and masks. Out: rows and masks. One operation on an integer handles a whole row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import compress

Rows = list[int]
"""A relation: `rows[a] >> b & 1` says that a is related to b."""

TILE = 2048
"""Rows and columns that are turned over at once: what a cache of the processor holds."""

DENSE = 4
"""Of a set with more than one in so many numbers, all numbers are gone through."""

_DIGITS = bytes(digit == ord("1") for digit in range(256))

MANY = 1_000
FEW_ROWS, FEW_PAIRS = 200, 16
"""Of many rows, those that are equal are handled together. With fewer different ones, or with fewer pairs in them for
each event, a relation is inverted pair by pair.
"""


def bits(mask: int) -> list[int]:
    """The members of a set, smallest first."""
    members: list[int] = []
    count, length = mask.bit_count(), mask.bit_length()
    if count * DENSE > length:
        return list(compress(range(length), bin(mask)[:1:-1].encode().translate(_DIGITS)))
    if count < 8:
        while mask:
            low = mask & -mask
            members.append(low.bit_length() - 1)
            mask ^= low
        return members
    text = bin(mask)[:1:-1]
    at = text.find("1")
    while at >= 0:
        members.append(at)
        at = text.find("1", at + 1)
    return members


def mask_of(numbers: Iterable[int]) -> int:
    """The set with these members."""
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask


def union(masks: Iterable[int]) -> int:
    """The union of sets."""
    members = 0
    for mask in masks:
        members |= mask
    return members


def rows_of(pairs: Iterable[tuple[int, int]], count: int) -> Rows:
    """Pairs of `count` events as rows."""
    rows = [0] * count
    for a, b in pairs:
        rows[a] |= 1 << b
    return rows


def ordered(members: Sequence[int], within: Sequence[int]) -> Rows:
    """Each member before all later ones that `within` relates it to."""
    rows, later = [0] * len(within), 0
    for member in reversed(members):
        rows[member] = later & within[member]
        later |= 1 << member
    return rows


def rows_without(rows: Rows, gone: int) -> Rows:
    """A relation without the events in `gone`."""
    if not any(rows):
        return rows
    left = [row & ~gone if row & gone else row for row in rows]
    for event in bits(gone):
        left[event] = 0
    return left


def rows_within(rows: Rows, kept: int) -> Rows:
    """A relation without the pairs that lead to other events than those of `kept`."""
    if len(rows) <= MANY:
        return [row & kept for row in rows]
    known: dict[int, int] = {}  # by the object: where many rows are equal, most are one object
    cut = [0] * len(rows)
    for event, row in enumerate(rows):
        if row:
            left = known.get(id(row))
            if left is None:
                left = known[id(row)] = row & kept
            cut[event] = left
    return cut


def shared(rows: Iterable[int]) -> Rows:
    """The same rows, equal ones as one object: of large executions four of five rows are equal to another one."""
    known: dict[int, int] = {}
    return [known.setdefault(row, row) for row in rows]


def pairs_of(rows: Sequence[int]) -> list[tuple[int, int]]:
    """The pairs of a relation."""
    return [(a, b) for a, row in enumerate(rows) for b in bits(row)]


def inverse(rows: Sequence[int]) -> Rows:
    """The rows as columns. Few pairs are turned one by one, many all at once."""
    count = len(rows)
    if count > MANY:
        return _inverse_of_many(rows)
    if sum([row.bit_count() for row in rows]) > 2 * count:
        return transposed(rows)
    columns = [0] * count
    bit = 1
    for row in rows:
        while row:
            low = row & -row
            columns[low.bit_length() - 1] |= bit
            row ^= low
        bit <<= 1
    return columns


def _inverse_of_many(rows: Sequence[int]) -> Rows:
    different = set(rows)
    if len(different) > FEW_ROWS and sum(map(int.bit_count, different)) > FEW_PAIRS * len(rows):
        return shared(transposed(rows))
    columns = [0] * len(rows)
    for row, sources in _sources(rows).items():
        mask = _mask(sources, len(rows))
        for target in bits(row):
            columns[target] |= mask
    return shared(columns)


def _sources(rows: Sequence[int]) -> dict[int, list[int]]:
    """For each row that is not empty, the events that have it."""
    sources: dict[int, list[int]] = {}
    for event, row in enumerate(rows):
        if row:
            sources.setdefault(row, []).append(event)
    return sources


def _mask(events: Sequence[int], count: int) -> int:
    """The set of these events, of `count` in all."""
    marks = bytearray(count // 8 + 1)
    for event in events:
        marks[event >> 3] |= 1 << (event & 7)
    return int.from_bytes(marks, "little")


def transposed(rows: Sequence[int]) -> Rows:
    """A relation turned over: tile by tile, each a large square of bits in which ever smaller blocks change places."""
    count = len(rows)
    size = min(TILE, max(8, 1 << (count - 1).bit_length()))
    width, tiles = size // 8, -(-count // size)
    columns: list[list[bytes]] = [[] for _ in range(tiles * size)]
    empty = bytes(width)
    for top in range(0, count, size):
        block = [row.to_bytes(tiles * width, "little") for row in rows[top : top + size]]
        for left in range(0, tiles * size, size):
            at = left // 8
            square = int.from_bytes(b"".join([row[at : at + width] for row in block]), "little")
            content = _turned(square, size).to_bytes(size * width, "little") if square else empty * size
            for column in range(size):
                columns[left + column].append(content[column * width : (column + 1) * width])
    return [int.from_bytes(b"".join(parts), "little") for parts in columns[:count]]


def _turned(square: int, size: int) -> int:
    """A square of bits turned over."""
    step = size // 2
    while step:
        shift = step * (size - 1)
        moved = (square ^ square >> shift) & _corner(size, step)
        square ^= moved ^ moved << shift
        step //= 2
    return square


@lru_cache(maxsize=64)
def _corner(size: int, step: int) -> int:
    """The upper right quarters of all blocks of 2 * step rows and columns."""
    row = sum(((1 << step) - 1) << at for at in range(step, size, 2 * step))
    filled, empty = row.to_bytes(size // 8, "little"), bytes(size // 8)
    return int.from_bytes((filled * step + empty * step) * (size // (2 * step)), "little")


def compose(left: Rows, right: Rows) -> Rows:
    """left ; right. Rows of `left` that are equal are composed once, equal rows of many in `right` joined once. Of two
    neighbours in a thread the earlier one is often related to all that the later one is, and to little more."""
    sources = domain(right)
    together: list[tuple[int, int]] = []
    if sources.bit_count() > FEW_ROWS > len(set(right)):
        together = [(_mask(events, len(right)), row) for row, events in _sources(right).items()]
    known: dict[int, int] = {0: 0}
    by_object: dict[int, int] = {}
    composed = [0] * len(left)
    later = behind = 0
    for event in range(len(left) - 1, -1, -1):
        whole = left[event]
        if not whole:
            continue
        if (seen := by_object.get(id(whole))) is not None:
            composed[event] = seen
            continue
        row = whole & sources
        reached = known.get(row)
        if reached is None:
            done, reached = (0, 0) if later & ~row else (later, behind)
            reached = known[row] = reached | _reached(row & ~done, right, together)
        composed[event] = behind = by_object[id(whole)] = reached
        later = row
    return composed


def _reached(row: int, right: Sequence[int], together: list[tuple[int, int]]) -> int:
    """What the members of a row are related to. `together`: the rows of `right`, each with the events that have it."""
    reached = 0
    if together and row.bit_count() > len(together):
        for events, targets in together:
            if row & events:
                reached |= targets
        return reached
    if len(right) > MANY:
        for event in bits(row):
            reached |= right[event]
        return reached
    while row:
        low = row & -row
        reached |= right[low.bit_length() - 1]
        row ^= low
    return reached


def domain(rows: Sequence[int]) -> int:
    """The set of all a that are related to something."""
    return int("".join(["1" if row else "0" for row in reversed(rows)]), 2) if rows else 0


def range_of(rows: Sequence[int]) -> int:
    """The set of all b that something is related to."""
    return union(rows)


def components(rows: Sequence[int]) -> Iterator[list[int]]:
    """Strongly connected components, each after all that can be reached from it (Tarjan, without recursion)."""
    count = len(rows)
    index, low, on_stack = [0] * count, [0] * count, 0
    done = 0  # components given out, and the roots of the search so far
    stack: list[int] = []
    clock = 0
    for root in range(count):
        if index[root]:
            continue
        clock += 1
        index[root] = low[root] = clock
        stack.append(root)
        on_stack |= 1 << root
        work = [(root, rows[root] & ~(1 << root))]
        while work:
            node, rest = work.pop()
            rest &= ~done
            if rest:
                bit = rest & -rest
                work.append((node, rest ^ bit))
                below = bit.bit_length() - 1
                if not index[below]:
                    clock += 1
                    index[below] = low[below] = clock
                    stack.append(below)
                    on_stack |= bit
                    work.append((below, rows[below] & ~bit))
                elif on_stack & bit:
                    low[node] = min(low[node], index[below])
                continue
            if work:
                above = work[-1][0]
                low[above] = min(low[above], low[node])
            if low[node] == index[node]:
                part = []
                while True:
                    member = stack.pop()
                    part.append(member)
                    on_stack &= ~(1 << member)
                    done |= 1 << member
                    if member == node:
                        break
                yield part


def closure(rows: Rows) -> Rows:
    """The least transitive relation that contains these rows. In the order of the events each is mostly behind one of
    its successors, from which most of its others can be reached."""
    order = _successors_first(rows)
    if order is None:
        return _closure_of_cycles(rows)
    closed = list(rows)
    known: dict[int, int] = {}  # by the object
    sources, before = domain(rows), 0
    for event in order:
        reached = rows[event]
        if (seen := known.get(id(reached))) is not None:
            closed[event] = seen
            continue
        whole, left = id(reached), reached & sources
        if left >> before & 1:
            reached |= closed[before]
            left &= ~(closed[before] | 1 << before)
        before = event
        while left:
            low = left & -left
            behind = closed[low.bit_length() - 1]
            reached |= behind
            left &= ~(behind | low)
        closed[event] = known[whole] = reached
    return closed


def _successors_first(rows: Sequence[int]) -> list[int] | None:
    """The events, each after all that can be reached from it; None if there is a cycle. Depth first."""
    order: list[int] = []
    waiting, open_ = (1 << len(rows)) - 1, 0
    while waiting:
        low = waiting & -waiting
        waiting, open_ = waiting ^ low, open_ | low
        stack = [low.bit_length() - 1]
        while stack:
            row = rows[stack[-1]]
            if row & open_:
                return None
            low = row & waiting
            if low:
                low &= -low
                waiting, open_ = waiting ^ low, open_ | low
                stack.append(low.bit_length() - 1)
            else:
                event = stack.pop()
                open_ ^= 1 << event
                order.append(event)
    return order


def _closure_of_cycles(rows: Sequence[int]) -> Rows:
    closed = [0] * len(rows)
    for part in components(rows):
        inside = 0
        for event in part:
            inside |= 1 << event
        reached = 0
        for event in part:
            rest = rows[event] & ~inside & ~reached
            while rest:
                low = rest & -rest
                reached |= low | closed[low.bit_length() - 1]
                rest &= ~reached
        if len(part) > 1 or rows[part[0]] & inside:
            reached |= inside
        for event in part:
            closed[event] = reached
    return closed


def total_order(over: int, before: Sequence[int], ranks: Sequence[int]) -> Rows:
    """A strict total order on a set: after what is `before` a member, where that has no cycle; lower ranks first.

    Members without a rank come last.
    """
    rows = [0] * len(before)
    waiting = sorted(bits(over), key=lambda member: ranks[member] if member < len(ranks) else len(before))
    while waiting:
        remaining = sum(1 << member for member in waiting)
        first = next((member for member in waiting if not before[member] & remaining), waiting[0])
        waiting.remove(first)
        rows[first] = remaining & ~(1 << first)
    return rows
