"""Findings from the same places of the source, grouped.

In: findings. Out: `FindingGroup`s in the order of their first findings. Without .loc, findings are alike if their
instructions have the same opcodes, the same synchronization stands between them, and the same is missing: steps of an
unrolled loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from memmodel.kernel.order.verdict import KernelFinding


@dataclass(slots=True)
class FindingGroup:
    """`others`: findings of the same rule whose instructions have the same opcodes and places in the source, or
    the same synchronization between them.
    """

    first: KernelFinding
    others: list[KernelFinding] = field(default_factory=list)

    @property
    def count(self) -> int:
        return self.first.count + sum(finding.count for finding in self.others)

    @property
    def lines(self) -> list[int]:
        """The PTX lines of the others."""
        return sorted({side.instruction.line for finding in self.others for side in finding.sides})


def groups(findings: Iterable[KernelFinding]) -> list[FindingGroup]:
    """The findings, grouped."""
    grouped: dict[object, FindingGroup] = {}
    for number, finding in enumerate(findings):
        places = [(side.instruction.opcode, str(side.instruction.location), side.what) for side in finding.sides]
        key: object = (finding.rule, finding.reason, tuple(sorted(places))) if places else number
        if any(side.instruction.location is None for side in finding.sides):
            between = [place.instruction.number for place in finding.way]
            own = {side.instruction.number for side in finding.sides}
            key = (key, finding.missing, tuple(place for place in between if place not in own))
        if key in grouped:
            grouped[key].others.append(finding)
        else:
            grouped[key] = FindingGroup(finding)
    return list(grouped.values())
