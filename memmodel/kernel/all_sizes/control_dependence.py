"""The instructions that depend on a branch: those between it and the place where its sides meet.

In: the control-flow graph, the loops. Out: instructions by branch. A side that leads only to the end of the thread
meets no other, and all instructions of a loop depend on a branch that leaves the loop or begins it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx

END = -1
"""The node after all ends."""


class ControlDependence:
    """`graph`: of control flow; `back`: the jumps back to heads of loops; `around`: the instructions of each loop."""

    def __init__(
        self, graph: networkx.DiGraph[int], back: Iterable[tuple[int, int]], around: Iterable[frozenset[int]]
    ) -> None:
        self._graph, self._around = graph, list(around)
        self._forward = graph.copy()
        self._forward.remove_edges_from(back)
        self._found: dict[int, frozenset[int]] = {}

    def of(self, branch: int) -> frozenset[int]:
        """The instructions that depend on a branch."""
        if branch not in self._found:
            self._found[branch] = frozenset(self._decided(branch)) if branch in self._graph else frozenset()
        return self._found[branch]

    def _decided(self, branch: int) -> set[int]:
        decided, ways = self._between(branch), set(self._graph.successors(branch))
        jumps_back = bool(ways - set(self._forward.successors(branch)))
        for inside in self._around:
            if branch in inside and (jumps_back or not inside.issuperset(ways)):
                decided |= inside
        return decided

    def _between(self, branch: int) -> set[int]:
        """The instructions up to where the sides meet, without jumps back."""
        import networkx

        forward = self._forward
        reached = [{at, *networkx.descendants(forward, at)} for at in forward.successors(branch)]
        common = set.intersection(*reached) if reached else set[int]()
        if not common:
            return set()
        kept = {at for side in reached for at in side}
        kept = {at for at in kept if at in common or not common.isdisjoint(networkx.descendants(forward, at))}
        turned = forward.subgraph({branch, *kept}).reverse(copy=True)
        turned.add_edges_from([(END, at) for at in list(turned) if not turned.in_degree(at)])
        meeting = networkx.immediate_dominators(turned, END)[branch]
        behind = set() if meeting == END else {meeting, *networkx.descendants(forward, meeting)}
        return kept - behind
