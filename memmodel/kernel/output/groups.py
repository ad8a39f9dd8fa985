"""Findings that come from the same places of the source, as one.

In: findings. Out: `FindingGroup`s in the order of their first findings. Without .loc those are one whose instructions
have the same opcodes, between which the same synchronization stands, and lacks the same: steps of an unrolled loop.
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
        return self.first.count + sum(one.count for one in self.others)

    @property
    def lines(self) -> list[int]:
        """The PTX lines of the others."""
        return sorted({side.instruction.line for one in self.others for side in one.sides})


def groups(findings: Iterable[KernelFinding]) -> list[FindingGroup]:
    """The findings, grouped."""
    found: dict[object, FindingGroup] = {}
    for number, one in enumerate(findings):
        places = [(side.instruction.opcode, str(side.instruction.location), side.what) for side in one.sides]
        key: object = (one.rule, one.reason, tuple(sorted(places))) if places else number
        if any(side.instruction.location is None for side in one.sides):
            between = [step.instruction.number for step in one.way]
            own = {side.instruction.number for side in one.sides}
            key = (key, one.missing, tuple(step for step in between if step not in own))
        if key in found:
            found[key].others.append(one)
        else:
            found[key] = FindingGroup(one)
    return list(found.values())
