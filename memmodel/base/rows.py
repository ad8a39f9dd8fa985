"""Relations as lists of integers: bit b of row a says that event a is related to event b.

In: rows and masks. Out: rows and masks. One operation on an integer handles a whole row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Rows = list[int]
"""A relation: `rows[a] >> b & 1` says that a is related to b."""


def members(mask: int) -> Iterator[int]:
    """The members of a set, smallest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def inverse(rows: Sequence[int]) -> Rows:
    """The rows as columns: Python's formatting and zip turn the matrix."""
    count = len(rows)
    if not any(rows):
        return [0] * count
    written = [format(row, f"0{count}b") for row in reversed(rows)]
    turned = [int("".join(column), 2) for column in zip(*written, strict=True)]
    turned.reverse()
    return turned


def compose(left: Sequence[int], right: Sequence[int]) -> Rows:
    """left ; right. Rows that are equal are composed once."""
    sources = domain(right)
    known: dict[int, int] = {0: 0}
    found = []
    for whole in left:
        row = key = whole & sources
        reached = known.get(key)
        if reached is None:
            reached = 0
            while row:
                low = row & -row
                reached |= right[low.bit_length() - 1]
                row ^= low
            known[key] = reached
        found.append(reached)
    return found


def domain(rows: Sequence[int]) -> int:
    """The set of all a that are related to something."""
    found, bit = 0, 1
    for row in rows:
        if row:
            found |= bit
        bit <<= 1
    return found


def range_of(rows: Sequence[int]) -> int:
    """The set of all b that something is related to."""
    found = 0
    for row in rows:
        found |= row
    return found


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


def closure(rows: Sequence[int]) -> Rows:
    """The least transitive relation that contains these rows."""
    closed = [0] * len(rows)
    for part in components(rows):
        inside = 0
        for one in part:
            inside |= 1 << one
        reached = 0
        for one in part:
            rest = rows[one] & ~inside & ~reached
            while rest:
                low = rest & -rest
                reached |= low | closed[low.bit_length() - 1]
                rest &= ~reached
        if len(part) > 1 or rows[part[0]] & inside:
            reached |= inside
        for one in part:
            closed[one] = reached
    return closed
