"""The instructions whose execution a branch decides: those between it and where its sides meet.

In: which instruction may follow which, the loops. Out: instructions by branch. A side that leads to the end of the
thread only meets nobody, and a branch that leaves a loop or begins it again decides what is done in the loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx

END = -1
"""Stands behind all ends."""


class BranchSides:
    """`graph`: which instruction may follow which; `back`: the jumps back to heads of loops; `around`: what is in each
    loop.
    """

    def __init__(
        self, graph: networkx.DiGraph[int], back: Iterable[tuple[int, int]], around: Iterable[frozenset[int]]
    ) -> None:
        self._graph, self._around = graph, list(around)
        self._forward = graph.copy()
        self._forward.remove_edges_from(back)
        self._found: dict[int, frozenset[int]] = {}

    def of(self, branch: int) -> frozenset[int]:
        """The instructions that a branch decides about."""
        if branch not in self._found:
            self._found[branch] = frozenset(self._decided(branch)) if branch in self._graph else frozenset()
        return self._found[branch]

    def _decided(self, branch: int) -> set[int]:
        found, ways = self._between(branch), set(self._graph.successors(branch))
        again = bool(ways - set(self._forward.successors(branch)))
        for inside in self._around:
            if branch in inside and (again or not inside.issuperset(ways)):
                found |= inside
        return found

    def _between(self, branch: int) -> set[int]:
        """Up to where the sides meet, without jumps back."""
        import networkx

        reached = [{one, *networkx.descendants(self._forward, one)} for one in self._forward.successors(branch)]
        common = set.intersection(*reached) if reached else set[int]()
        if not common:
            return set()
        kept = {one for each in reached for one in each}
        kept = {one for one in kept if one in common or not common.isdisjoint(networkx.descendants(self._forward, one))}
        turned = self._forward.subgraph({branch, *kept}).reverse(copy=True)
        turned.add_edges_from([(END, one) for one in list(turned) if not turned.in_degree(one)])
        meeting = networkx.immediate_dominators(turned, END)[branch]
        behind = set() if meeting == END else {meeting, *networkx.descendants(self._forward, meeting)}
        return kept - behind
