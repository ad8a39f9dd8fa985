"""Graphs as the successors of their nodes: what is reached, and whether there is a cycle.

In: nodes, and their successors as a mapping or a function. Out: sets of nodes. Relations between numbered events are
rows of bits instead (`base.rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def reached(starts: Iterable[T], follows: Callable[[T], Iterable[T]]) -> set[T]:
    """The nodes on paths from some nodes, these included. `follows`: the successors of a node."""
    seen: set[T] = set()
    waiting = list(starts)
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += follows(node)
    return seen


def has_cycle(graph: Mapping[T, Iterable[T]]) -> bool:
    """True if a graph, as the neighbours of each of its nodes, has a cycle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return True
    return False
