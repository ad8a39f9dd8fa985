"""Relations as lists of integers: bit b of row a says that event a is related to event b.

In: rows and masks. Out: rows and masks. One operation on an integer handles a whole row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

Rows = list[int]
"""A relation: `rows[a] >> b & 1` says that a is related to b."""

TILE = 2048
"""Rows and columns that are turned over at once: what a cache of the processor holds."""


def members(mask: int) -> Iterator[int]:
    """The members of a set, smallest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def inverse(rows: Sequence[int]) -> Rows:
    """The rows as columns. Few pairs are turned one by one, many all at once."""
    count = len(rows)
    if sum([row.bit_count() for row in rows]) > 2 * count:
        return transposed(rows)
    found = [0] * count
    bit = 1
    for row in rows:
        while row:
            low = row & -row
            found[low.bit_length() - 1] |= bit
            row ^= low
        bit <<= 1
    return found


def transposed(rows: Sequence[int]) -> Rows:
    """A relation turned over: tile by tile, each a large square of bits in which ever smaller blocks change places."""
    count = len(rows)
    size = min(TILE, max(8, 1 << (count - 1).bit_length()))
    width, tiles = size // 8, -(-count // size)
    found: list[list[bytes]] = [[] for _ in range(tiles * size)]
    empty = bytes(width)
    for top in range(0, count, size):
        block = [row.to_bytes(tiles * width, "little") for row in rows[top : top + size]]
        for left in range(0, tiles * size, size):
            at = left // 8
            square = int.from_bytes(b"".join([row[at : at + width] for row in block]), "little")
            content = _turned(square, size).to_bytes(size * width, "little") if square else empty * size
            for column in range(size):
                found[left + column].append(content[column * width : (column + 1) * width])
    return [int.from_bytes(b"".join(parts), "little") for parts in found[:count]]


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
