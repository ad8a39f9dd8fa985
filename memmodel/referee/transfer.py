"""An execution of one test, tried on a test that differs from it in a few instructions.

In: a choice of the old test, the new test, a model. Out: `Replay`, or None if the new test has no such execution, or
none that is soon found. Settled here: which instruction of the old test is which of the new test. `replay` does the
rest: what it returns is an execution of the new test, whatever the choice was.
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


def transferred(
    old: LoweredTest, choice: Choice, new: LoweredTest, model: Model, wanted: Wanted = whatever
) -> Replay | None:
    """The execution that a choice of the old test describes, as one of the new test.

    `wanted`: an execution for which it is False is not judged; the answer is None.
    """
    if len(old.programs) != len(new.programs) or choice.starts.count:
        return None
    names = Renaming(old, new)
    if names.instances is None:
        return None
    try:
        judged = replay(new, model, names.choice(choice), wanted)
    except (InternalError, TooLarge, BudgetSpent, _Gone):
        return None
    return None if judged.failed else judged


class _Gone(Exception):
    """Something that the choice names is not in the new test."""


class Renaming:
    """What the records and cells of one test are called in another test.

    `instances`: the instances of the other test; None if the two tests have different ones.
    """

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
            values=tuple((self.name(record), self.cell(cell), value) for record, cell, value in choice.values),
            answers={self.name(record): answers for record, answers in choice.answers.items()},
            rf=tuple((self.writer(a), self.name(b), self.cell(cell)) for a, b, cell in choice.rf),
            co=tuple((self.name(a), self.name(b), self.cell(cell)) for a, b, cell in choice.co),
            sync_fence=tuple((self.name(a), self.name(b)) for a, b in choice.sync_fence),
            generations={self.name(record): number for record, number in choice.generations.items()},
            mbar=tuple((self.cell(cell), tuple(map(self.name, order))) for cell, order in choice.mbar),
            seen={self.name(record): self.place(place) for record, place in choice.seen.items()},
            finals=tuple((self.cell(cell), self.writer(writer)) for cell, writer in choice.finals),
            waiting=tuple(map(self.writer, choice.waiting)),
            orders=tuple((index, tuple(map(self.ordered, events))) for index, events in choice.orders),
            partial=True,
        )

    def name(self, record: RecordName) -> RecordName:
        step = self.steps[record.thread].get(record.step)
        if step is None:
            raise _Gone
        return replace(record, step=step)

    def writer(self, record: Writer) -> Writer:
        return None if record is None else self.name(record)

    def cell(self, cell: Cell) -> Cell:
        assert self.instances is not None
        return replace(cell, instance=self.instances[cell.instance])

    def place(self, place: Place) -> Place:
        return self.writer(place[0]), place[1]

    def ordered(self, event: Ordered) -> Ordered:
        writer, side, cell, issue = event
        return self.writer(writer), side, None if cell is None else self.cell(cell), issue


def _steps(old: LoweredTest, new: LoweredTest, thread: int) -> dict[int, int]:
    """For each step of a thread, the step of the new test that corresponds to it. The steps of instructions that
    differ correspond as far as they are of the same kind."""
    alike = _alike(old.test.threads[thread], new.test.threads[thread])
    before, after = old.programs[thread].steps, new.programs[thread].steps
    matches = {len(before): len(after)}
    steps_of: dict[int, list[int]] = {}
    for number, step in enumerate(after):
        steps_of.setdefault(step.index, []).append(number)
    passed: dict[int, int] = {}
    for number, step in enumerate(before):
        turn = passed[step.index] = passed.get(step.index, -1) + 1
        candidates = steps_of.get(alike.get(step.index, -1), [])
        if turn < len(candidates) and type(after[candidates[turn]].op) is type(step.op):
            matches[number] = candidates[turn]
    return matches


def _alike(old: Thread, new: Thread) -> dict[int, int]:
    """For each instruction, the number of the same instruction in the new thread. Instructions that differ correspond
    if they stand between the same instructions, and are as many."""
    before, after = ([instruction.span.text for instruction in instructions(thread)] for thread in (old, new))
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    matches = {at: at for at in range(start)}
    matches |= {len(before) - 1 - at: len(after) - 1 - at for at in range(end)}
    left = list(range(start, len(after) - end))
    changed = []
    for at in range(start, len(before) - end):
        same = next((number for number in left if after[number] == before[at]), None)
        if same is None:
            changed.append(at)
        else:
            matches[at] = same
            left.remove(same)
    if len(changed) == len(left):
        matches |= dict(zip(changed, left, strict=True))
    return matches
