"""The orders of an execution that its outcome does not tell: coherence, and the order of fences.

In: Folded, a valuation. Out: what the variables of these orders are where every program has the order of slots that
this execution has. A model forbids an outcome if it does with every such order. One that it allows is put into its
formula, and refutes all programs that it fits at once.
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.base.graphs import reached
from memmodel.base.labels import InitialWrite
from memmodel.base.logic import FALSE
from memmodel.events.graph import MemoryEvent
from memmodel.search.solving.folded import Folded

Pairs = set[tuple[int, int]]


class HiddenOrders:
    """The orders of one superposed program. `variables`: all of theirs."""

    def __init__(self, folded: Folded) -> None:
        self.folded, self.logic = folded, folded.logic
        communication = folded.base.communication
        both = self.logic.both
        runs = [event.runs for event in folded.graph.events]
        self._co = [
            (formula, a, b, both(runs[a], runs[b]))
            for a, row in enumerate(communication.co)
            if not isinstance(folded.graph.events[a].label, InitialWrite)
            for b, formula in row.items()
        ]
        self._fences = [
            (formula, a, b, both(runs[a], runs[b]))
            for a, row in enumerate(communication.sync_fence)
            for b, formula in row.items()
        ]
        names = ("co(", "sync_fence(")
        self.variables = {variable for variable, name in self.logic.variables() if name.startswith(names)}

    def _slot(self, event: int) -> int:
        owner = self.folded.owners[event]
        assert owner is not None, "an initial write is in no order but as the first"
        return owner[0]

    def as_in(self, holds: Callable[[int], bool]) -> tuple[dict[int, int], int]:
        """The values of the variables, and when these are orders that agree with what is left in memory in the end."""
        logic = self.logic
        values: dict[int, int] = {}
        impossible: list[int] = []
        after = {
            name: _closed({(self._slot(a), self._slot(b)) for formula, a, b, _ in pairs if holds(formula)})
            for name, pairs in (("co", self._co), ("fences", self._fences))
        }
        for formula, a, b, both in self._co:
            values[formula] = both if (self._slot(a), self._slot(b)) in after["co"] else FALSE
        for formula, a, b, both in self._fences:
            pair = self._slot(a), self._slot(b)
            edge = next(part for part in logic.conjuncts(formula) if abs(part) in self.variables)
            if edge > 0:
                values[edge] = both if pair in after["fences"] else FALSE
            elif pair not in after["fences"] and pair[::-1] not in after["fences"]:
                impossible.append(both)  # their scopes include each other, so that one of them comes first
        for cell, finals in self.folded.base.communication.finals.items():
            for uid, final in finals.items():
                write = self.folded.graph.events[uid]
                if isinstance(write.label, InitialWrite):
                    continue
                for other in self.folded.base.communication.writes[cell]:
                    if not isinstance(other.label, InitialWrite) and other.uid != uid:
                        assert isinstance(other, MemoryEvent)
                        if (self._slot(uid), self._slot(other.uid)) in after["co"]:
                            impossible.append(logic.both(final, other.runs))
        return values, -logic.disj(impossible)


def _closed(pairs: Pairs) -> Pairs:
    """What is reached by following pairs."""
    after: dict[int, set[int]] = {}
    for a, b in pairs:
        after.setdefault(a, set()).add(b)
    return {(a, b) for a in after for b in reached(after[a], lambda other: after.get(other, ()))}
