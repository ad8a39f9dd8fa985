"""Something new that a run shows of a changed kernel.

In: a finding. Out: `Shown`, with the events that may order its accesses.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.base.rows import Rows
from memmodel.kernel.order.verdict import KernelFinding


@dataclass(frozen=True, slots=True)
class Shown:
    """Something new that a run shows. `at`, `ends`: the instructions and the events of the finding; none for an open
    condition."""

    at: frozenset[int] = frozenset()
    ends: tuple[int, ...] = ()

    @classmethod
    def of(cls, finding: KernelFinding) -> Shown:
        return cls(frozenset(side.instruction.number for side in finding.sides), finding.events)

    def between(self, after: Rows, before: Rows) -> int:
        """The events on the way from one of its events to the other in the run as it is, and these. All, if it is no
        pair. `after`, `before`: causality and its inverse."""
        if len(self.ends) != 2:
            return -1
        first, second = self.ends
        return after[first] & before[second] | after[second] & before[first] | 1 << first | 1 << second
