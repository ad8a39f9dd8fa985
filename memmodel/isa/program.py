"""A thread as steps: what lowering leaves behind, and all that an engine reads of a thread.

In: nothing. Out: `Step` and `Program`.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.isa.ops import Op
from memmodel.litmus.syntax import Guard, Instruction


@dataclass(frozen=True, slots=True)
class Step:
    """One op of a thread. `guard` is that of its instruction, whose number in the thread is `index`."""

    op: Op
    guard: Guard | None
    instruction: Instruction
    index: int


@dataclass(frozen=True, slots=True)
class Program:
    """`labels` maps a label to the index of the step it stands before (len(steps): the end)."""

    steps: tuple[Step, ...]
    labels: dict[str, int]
