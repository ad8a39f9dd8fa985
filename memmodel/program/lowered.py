"""A test as steps: the result of lowering, and all that an engine reads of a test.

In: nothing. Out: `Step`, `Program`, `LoweredTest`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

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

    def rewritten(self, rewrite: Callable[[Sequence[Step]], Iterable[Step]]) -> Program:
        """The program with other steps for each instruction; a label stays in front of its instruction."""
        steps: list[Step] = []
        moved: dict[int, int] = {}
        at = 0
        for _, group in groupby(self.steps, key=lambda step: step.index):
            whole = tuple(group)
            moved[at] = len(steps)
            steps += rewrite(whole)
            at += len(whole)
        moved[at] = len(steps)
        return replace(self, steps=tuple(steps), labels={name: moved[place] for name, place in self.labels.items()})

    def target(self, label: str | None) -> int:
        """The step that a jump to a label leads to."""
        return len(self.steps) if label is None else self.labels[label]


@dataclass(frozen=True, slots=True)
class LoweredTest:
    """A test with its addresses and the steps of its threads, in order: what both engines start from."""

    test: LitmusTest
    space: AddressSpace
    programs: tuple[Program, ...]
