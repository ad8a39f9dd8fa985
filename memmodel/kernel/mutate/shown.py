"""Something new that a run shows of a changed kernel.

In: a finding. Out: `Shown`.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.kernel.order.verdict import KernelFinding


@dataclass(frozen=True, slots=True)
class Shown:
    """Something new that a run shows. `at`: the instructions of the finding; none for an open condition."""

    at: frozenset[int] = frozenset()

    @classmethod
    def of(cls, finding: KernelFinding) -> Shown:
        return cls(frozenset(side.instruction.number for side in finding.sides))
