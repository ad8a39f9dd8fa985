"""A test without its synchronization: what `sync` is to find again.

In: a test as blocks. Out: its text without fences and waits for groups, with the weakest semantics and scopes that its
spellings have; on request without the waits for phases and the barriers, too. Settled here: what stays. Accesses stay,
copies, branches, and what signals: arrivals, commits to mbarrier objects, flags. Weak accesses are weak, strong ones
relaxed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from memmodel.isa.lower import read_instruction
from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction, Label, Thread
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import AtBarrier, CommitGroup, OnObject, WaitForGroups
from memmodel.repair.costs import Costs
from memmodel.repair.edits import Edit, apply, respelled, whole
from memmodel.repair.insertion.gaps import waiting
from memmodel.repair.spellings import is_fence, narrowest, semantics

TAKEN_OUT = "// taken out"


class Strip(Enum):
    """What is taken out. WAITS: waits for phases and barriers, beside ORDER."""

    NOTHING = "nothing"
    ORDER = "order"
    WAITS = "waits"


@dataclass(frozen=True, slots=True)
class Stripped:
    """`text`: the lines have the numbers that they had; a line that is removed is a comment."""

    text: str

    def clean(self, text: str) -> str:
        """A changed text without the lines that are removed."""
        return "".join(line for line in text.splitlines(keepends=True) if line.strip() != TAKEN_OUT)


def stripped(lowered: LoweredTest, strip: Strip, costs: Costs) -> Stripped:
    """The text of a test without its synchronization."""
    text = lowered.test.source.text
    if strip is Strip.NOTHING:
        return Stripped(text)
    edits: list[Edit] = []
    for number, thread in enumerate(lowered.test.threads):
        loops = _waits_for_phases(lowered, number) if strip is Strip.WAITS else set()
        for index, item in enumerate(instructions(thread)):
            ops = lowered.programs[number].ops(index)
            group = (number, index)
            removed = is_fence(lowered, number, index) or (
                bool(ops) and all(isinstance(op, CommitGroup | WaitForGroups) for op in ops)
            )
            meets = strip is Strip.WAITS and any(isinstance(op, AtBarrier) for op in ops)
            if removed or meets or index in loops:
                edits.append(_taken_out(text, *whole(item), group))
                continue
            forms = [
                (costs.of(spelling), mnemonic)
                for mnemonic, spelling in narrowest(item, lowered.test)
                if semantics(spelling) != "weak"
            ]
            if forms and min(forms)[0] < costs.of(read_instruction(item, lowered.test)):
                edits.append(respelled(thread, item, min(forms)[1], 0.0, group))
        edits += _labels(thread, loops, number, text)
    return Stripped(apply(text, edits))


def _taken_out(text: str, start: int, end: int, group: tuple[object, ...]) -> Edit:
    """A line becomes a comment that says so; part of a line goes."""
    line = text[start:end]
    removed = f"{TAKEN_OUT}\n" if line.endswith("\n") else ""
    return Edit(start, end, removed, "", 0.0, group)


def _waits_for_phases(lowered: LoweredTest, number: int) -> set[int]:
    """The instructions of loops that wait for a phase of an mbarrier object and do nothing else."""
    program = lowered.programs[number]
    items = list(instructions(lowered.test.threads[number]))
    inside = sorted(waiting(lowered, number))
    removed: set[int] = set()
    for index in inside:
        tests = any(isinstance(op, OnObject) for op in program.ops(index)) and "wait" in items[index].mnemonic
        if tests and index + 1 in inside and items[index + 1].parts[0] == "bra":
            removed |= {index, index + 1}
    return removed


def _labels(thread: Thread, removed: set[int], number: int, text: str) -> list[Edit]:
    """The labels of loops that are removed, as far as they stand alone on their lines."""
    edits: list[Edit] = []
    index, label = 0, None
    for item in thread.body:
        if isinstance(item, Label):
            label = item
            continue
        if isinstance(item, Instruction) and index in removed and label is not None:
            start = text.rfind("\n", 0, label.span.start) + 1
            end = text.find("\n", start) + 1
            if text[start:end].strip() == f"{label.name}:":
                edits.append(_taken_out(text, start, end, (number, index, "label")))
        label = None
        index += 1
    return edits
