"""Findings that come from the same places of the source, as one.

In: findings. Out: `FindingGroup`s in the order of their first findings. Without .loc every finding is its own group.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from memmodel.kernel.judge.verdict import KernelFinding


@dataclass(slots=True)
class FindingGroup:
    """`others`: findings of the same rule whose instructions have the same opcodes and places in the source."""

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
        located = bool(places) and all(side.instruction.location is not None for side in one.sides)
        key: object = (one.rule, one.reason, tuple(sorted(places))) if located else number
        if key in found:
            found[key].others.append(one)
        else:
            found[key] = FindingGroup(one)
    return list(found.values())
