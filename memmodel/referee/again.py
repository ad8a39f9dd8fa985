"""An execution of one test, tried on another that differs from it in a few instructions.

In: a choice of one test, another test, a model. Out: `Replay`, or None if the other test has no such execution, or none
that is soon found. Settled here: which instruction of the one is which of the other. All else is the replay's: what it
hands back is an execution of the other test, whatever the first one was.
"""

from __future__ import annotations

from dataclasses import replace

from memmodel.cat.syntax import Model
from memmodel.concrete.records import RecordName
from memmodel.errors import BudgetSpent, InternalError, TooLarge
from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Thread
from memmodel.memory.bytes import Cell, Instance
from memmodel.program.lowered import LoweredTest
from memmodel.referee.choice import Choice, Ordered, Place, Writer
from memmodel.referee.replay import Replay, Wanted, replay, whatever


def again(old: LoweredTest, choice: Choice, new: LoweredTest, model: Model, wanted: Wanted = whatever) -> Replay | None:
    """The execution that a choice of the old test describes, as one of the new test.

    `wanted`: None is handed back, and soon, for one that is not.
    """
    if len(old.programs) != len(new.programs) or choice.starts.count:
        return None
    names = Renaming(old, new)
    if names.instances is None:
        return None
    try:
        again = replay(new, model, names.choice(choice), wanted)
    except (InternalError, TooLarge, BudgetSpent, _Gone):
        return None
    return None if again.failed else again


class _Gone(Exception):
    """Something that the choice names is not in the new test."""


class Renaming:
    """What the records and cells of one test are called in another one. `instances`: None if these are others."""

    def __init__(self, old: LoweredTest, new: LoweredTest) -> None:
        self.steps = [_steps(old, new, number) for number in range(len(old.programs))]
        before, after = old.space.instances, new.space.instances
        same = len(before) == len(after) and all(
            (a.name, a.size) == (b.name, b.size) for a, b in zip(before, after, strict=True)
        )
        self.instances: dict[Instance, Instance] | None = dict(zip(before, after, strict=True)) if same else None

    def choice(self, choice: Choice) -> Choice:
        """The choice in the names of the new test. Raises _Gone."""
        return replace(
            choice,
            values=tuple((self.name(one), self.cell(cell), value) for one, cell, value in choice.values),
            answers={self.name(one): told for one, told in choice.answers.items()},
            rf=tuple((self.writer(a), self.name(b), self.cell(cell)) for a, b, cell in choice.rf),
            co=tuple((self.name(a), self.name(b), self.cell(cell)) for a, b, cell in choice.co),
            sync_fence=tuple((self.name(a), self.name(b)) for a, b in choice.sync_fence),
            generations={self.name(one): number for one, number in choice.generations.items()},
            mbar=tuple((self.cell(cell), tuple(map(self.name, order))) for cell, order in choice.mbar),
            seen={self.name(one): self.place(place) for one, place in choice.seen.items()},
            finals=tuple((self.cell(cell), self.writer(one)) for cell, one in choice.finals),
            waiting=tuple(map(self.writer, choice.waiting)),
            orders=tuple((index, tuple(map(self.ordered, events))) for index, events in choice.orders),
            partial=True,
        )

    def name(self, one: RecordName) -> RecordName:
        step = self.steps[one.thread].get(one.step)
        if step is None:
            raise _Gone
        return replace(one, step=step)

    def writer(self, one: Writer) -> Writer:
        return None if one is None else self.name(one)

    def cell(self, cell: Cell) -> Cell:
        assert self.instances is not None
        return replace(cell, instance=self.instances[cell.instance])

    def place(self, place: Place) -> Place:
        return self.writer(place[0]), place[1]

    def ordered(self, one: Ordered) -> Ordered:
        writer, side, cell = one
        return self.writer(writer), side, None if cell is None else self.cell(cell)


def _steps(old: LoweredTest, new: LoweredTest, thread: int) -> dict[int, int]:
    """For each step of a thread, the step of the new test that it is there; of instructions that differ, step by step
    as far as they do things of one kind."""
    alike = _alike(old.test.threads[thread], new.test.threads[thread])
    before, after = old.programs[thread].steps, new.programs[thread].steps
    found = {len(before): len(after)}
    there: dict[int, list[int]] = {}
    for number, step in enumerate(after):
        there.setdefault(step.index, []).append(number)
    passed: dict[int, int] = {}
    for number, step in enumerate(before):
        turn = passed[step.index] = passed.get(step.index, -1) + 1
        others = there.get(alike.get(step.index, -1), [])
        if turn < len(others) and type(after[others[turn]].op) is type(step.op):
            found[number] = others[turn]
    return found


def _alike(old: Thread, new: Thread) -> dict[int, int]:
    """For each instruction, which one of the new thread it is: those that differ stand between the same ones."""
    before, after = ([item.span.text for item in instructions(one)] for one in (old, new))
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    found = {at: at for at in range(start)}
    found |= {len(before) - 1 - at: len(after) - 1 - at for at in range(end)}
    left = list(range(start, len(after) - end))
    others = []
    for at in range(start, len(before) - end):
        same = next((one for one in left if after[one] == before[at]), None)
        if same is None:
            others.append(at)
        else:
            found[at] = same
            left.remove(same)
    if len(others) == len(left):
        found |= dict(zip(others, left, strict=True))
    return found
