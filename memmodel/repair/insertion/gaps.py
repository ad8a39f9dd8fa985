"""Where a line may be put into a thread.

In: a lowered test, the number of a thread. Out: gaps, in order. Settled here: nothing is put into a loop that only
waits. What order it needs stands before the loop or after it, and in the loop it would be done again in every round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from memmodel.concrete.loops import find_loops
from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction, Label, Thread
from memmodel.program.lowered import LoweredTest, Program
from memmodel.program.ops import Assign, Jump, Op
from memmodel.repair.edits import Edit, place, whole
from memmodel.source import Source


@dataclass(frozen=True, slots=True)
class Opening:
    """A place before instruction `index` of a thread; `last`: after it, at the end of the thread.

    `start`: where in the text; `label`: before that label, which begins a loop. `past`, `ahead`: the operations of the
    thread before and after the gap. `name`: of the thread. `behind`: the label at the end of the thread behind which it
    is, to which branches lead.
    """

    thread: int
    name: str
    index: int
    item: Instruction
    start: int
    past: tuple[Op, ...]
    ahead: tuple[Op, ...]
    label: bool = False
    last: bool = False
    behind: str = ""

    @property
    def where(self) -> str:
        """In words."""
        if self.behind:
            return f"behind {self.behind}"
        if self.last:
            return f"after {self.item.mnemonic}"
        return f"before {self.item.mnemonic}" if not self.label else f"before the loop of {self.item.mnemonic}"

    def insertion(
        self,
        line: str,
        called: str,
        cost: float,
        rank: int,
        *,
        name: str = "",
        implied: Iterable[str] = (),
        more: tuple[Edit, ...] = (),
    ) -> Edit:
        """The change that puts lines here. `called`: in words; `name`, `implied`: in its group and in those implied."""
        start, text = self.put(line)
        what = f"{self.name}, line {self.item.span.line}: {called} {self.where}"
        group = (self.thread, self.index, name or called)
        implies = frozenset((self.thread, self.index, other) for other in implied)
        return Edit(start, start, text, what, cost, group, 0, implies, line.count(";"), rank, more)

    def put(self, line: str) -> tuple[int, str]:
        """The offset in the text and the text to be put there, so that the lines stand in the gap. Labels are not
        indented.
        """
        text = self.item.span.source.text
        begin = text.rfind("\n", 0, self.item.span.start) + 1
        indent = text[begin : self.item.span.start]
        if indent.strip() and not self.last and not text[begin : self.start].strip():  # a label is in between
            parts = (part if part.endswith(":") else " " * len(indent) + part for part in line.split("\n"))
            return begin, "".join(f"{part}\n" for part in parts)
        if indent.strip():
            return self.start, f" {line}" if self.last else f"{line} "
        lines = [part if part.endswith(":") else indent + part for part in line.split("\n")]
        block = "\n".join(lines)
        if self.last:
            return self.start, f"\n{block}"
        return (self.start if self.label else begin), f"{block}\n"


def gaps(lowered: LoweredTest, number: int, *, branches: bool = False, behind_loops: bool = False) -> list[Opening]:
    """Before every instruction that does more than compute, and at the end. `branches`: also before each branch that
    may skip instructions. `behind_loops`: also behind each loop that only waits, where a computation follows.
    """
    thread, program = lowered.test.threads[number], lowered.programs[number]
    source = lowered.test.source
    inside, heads, rounds = _loops(program)
    items = list(instructions(thread))
    labels = _labels(thread)
    openings: list[Opening] = []
    for index, item in enumerate(items):
        skips = branches and item.guard is not None and item.parts[0] == "bra" and index not in inside
        behind = behind_loops and index - 1 in inside and index not in inside and index not in labels
        if not visible(lowered, number, index) and not skips and not behind:
            continue
        start, label = item.span.start, False
        if index in inside:
            head = heads[index]
            if any(gap.label and gap.index == head for gap in openings):
                continue
            label = head in labels and _alone(source, labels[head])
            if label:
                start, index = source.text.rfind("\n", 0, labels[head].span.start) + 1, head
            elif head != index:
                continue
            elif head in labels:
                start = labels[head].span.start
        past, ahead = _around(program, rounds, index)
        openings.append(Opening(number, thread.name, index, item, start, past, ahead, label))
    if items:
        everything = tuple(step.op for step in program.steps)
        end = source.text.index(";", items[-1].span.end) + 1
        openings.append(Opening(number, thread.name, len(items), items[-1], end, everything, (), last=True))
    return openings


def behind_the_label(lowered: LoweredTest, number: int) -> Opening | None:
    """The end of a thread behind the label that stands there, which threads come to that skip what is before it."""
    body = lowered.test.threads[number].body
    if not body or not isinstance(body[-1], Label):
        return None
    end = lowered.test.source.text.index(":", body[-1].span.start) + 1
    last = next((gap for gap in gaps(lowered, number) if gap.last), None)
    return None if last is None else replace(last, start=end, behind=body[-1].name)


def moved(thread: Thread, items: Sequence[Instruction], index: int, gap: Opening, cost: float, rank: int = 0) -> Edit:
    """The change that moves instructions of a thread, the last of which is number `index`, to a gap. `rank`: the turn
    of what is moved among what is put there."""
    *others, last = items
    text = "\n".join(f"{item.span.text};" for item in items)
    words = " and ".join(item.mnemonic for item in items)
    what = f"{place(thread, last)}: move {words} {gap.where} (line {gap.item.span.line})"
    at, new = gap.put(text)
    put = Edit(at, at, new, what, 0.0, (gap.thread, gap.index, f"moved {text}"), adds=len(items), rank=rank)
    gone = [
        Edit(*whole(item), "", what, 0.0, (gap.thread, index - number, "move"), adds=-1)
        for number, item in enumerate(reversed(others), 1)
    ]
    return Edit(*whole(last), "", what, cost * len(items), (gap.thread, index, "move"), adds=-1, more=(put, *gone))


def waiting(lowered: LoweredTest, number: int) -> set[int]:
    """The instructions of loops that only wait."""
    return _loops(lowered.programs[number])[0]


def visible(lowered: LoweredTest, number: int, index: int) -> bool:
    """True if an instruction does more than compute."""
    return any(not isinstance(op, Assign | Jump) for op in lowered.programs[number].ops(index))


def _loops(program: Program) -> tuple[set[int], dict[int, int], list[tuple[int, int]]]:
    """The instructions of loops that only wait, the first of its loop for each, and the ends of all other loops."""
    inside: set[int] = set()
    heads: dict[int, int] = {}
    rounds: list[tuple[int, int]] = []
    for loop in find_loops(program).values():
        first, last = program.steps[loop.first].index, program.steps[loop.last].index
        if not loop.spins:
            rounds.append((first, last))
            continue
        for index in range(first, last + 1):
            inside.add(index)
            heads[index] = first
    return inside, heads, rounds


def _around(program: Program, rounds: list[tuple[int, int]], index: int) -> tuple[tuple[Op, ...], tuple[Op, ...]]:
    """The operations that come before and after a gap; those of a loop around it do both."""
    within = [(first, last) for first, last in rounds if first < index <= last]
    start = min((first for first, _ in within), default=index)
    end = max((last + 1 for _, last in within), default=index)
    past = [step.op for step in program.steps if index <= step.index < end]
    past += [step.op for step in program.steps if step.index < index]
    ahead = [step.op for step in program.steps if step.index >= index]
    ahead += [step.op for step in program.steps if start <= step.index < index]
    return tuple(past), tuple(ahead)


def _labels(thread: Thread) -> dict[int, Label]:
    """The label before each instruction that has one; of several the first."""
    return dict(_labelled(thread))


def _labelled(thread: Thread) -> Iterator[tuple[int, Label]]:
    first: Label | None = None
    index = 0
    for item in thread.body:
        if isinstance(item, Label):
            first = first or item
            continue
        if first is not None:
            yield index, first
        first = None
        index += 1


def _alone(source: Source, label: Label) -> bool:
    """True if a label is alone on its line."""
    text, start = source.text, label.span.start
    begin, end = text.rfind("\n", 0, start) + 1, text.find("\n", start)
    rest = text[start : len(text) if end < 0 else end].split("//")[0]
    return not text[begin:start].strip() and rest.replace(" ", "") == f"{label.name}:"
