"""A test as steps: the result of lowering, and all that an engine reads of a test.

In: nothing. Out: `Step`, `Program`, `LoweredTest`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memmodel.litmus.syntax import Guard, Instruction, LitmusTest
from memmodel.program.addresses import AddressSpace
from memmodel.program.ops import Op


@dataclass(frozen=True, slots=True)
class Step:
    """One op of a thread. `guard` is that of its instruction, whose number in the thread is `index`."""

    op: Op
    guard: Guard | None
    instruction: Instruction
    index: int


@dataclass(frozen=True, slots=True)
class Program:
    """`labels` maps a label to the index of the step it stands before (len(steps): the end). `initial`: registers.

    `choices`: groups of registers, one of each group is 1 at the start and the others are 0; which one is left open. A
    search has them, for a program that stands for many; only `events` can run it.
    """

    steps: tuple[Step, ...]
    labels: Mapping[str, int]
    initial: Mapping[str, int]
    choices: tuple[tuple[str, ...], ...] = ()

    def ops(self, index: int) -> list[Op]:
        """The ops of instruction number `index`."""
        return [step.op for step in self.steps if step.index == index]

    def target(self, label: str | None) -> int:
        """The step that a jump to a label leads to."""
        return len(self.steps) if label is None else self.labels[label]


@dataclass(frozen=True, slots=True)
class LoweredTest:
    """A test with its addresses and the steps of its threads, in order: what both engines start from."""

    test: LitmusTest
    space: AddressSpace
    programs: tuple[Program, ...]
