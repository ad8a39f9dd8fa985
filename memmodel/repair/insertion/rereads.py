"""A loop around an instruction that sees once what another thread tells: it repeats the instruction until it has.

In: a lowered test, the place of a load or of a test of an mbarrier object, the value that tells. Out: the change.
"""

from __future__ import annotations

from collections.abc import Iterator

from memmodel.isa.lower import read_instruction
from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction
from memmodel.program.lowered import LoweredTest
from memmodel.ptx.operands import Reg
from memmodel.repair.costs import OTHER, WAIT
from memmodel.repair.edits import Edit, place
from memmodel.repair.insertion.gaps import waiting
from memmodel.repair.insertion.lines import fresh

COMPARED = ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64")
"""Types of which setp says that two values are not equal."""

REPEATS = "repeats"
"""How the group of such a change begins, before the number of its instruction."""


def repeats(edit: Edit) -> bool:
    """True if a change repeats an instruction until it has seen another thread."""
    return str(edit.group[2]).startswith(REPEATS)


def repeated(lowered: LoweredTest, thread: int, index: int, value: int | None) -> Edit | None:
    """Instruction `index` of a thread in a loop until a load reads `value`, or a test returns true.

    None for an instruction that is under a guard, waits in a loop already, or returns no value to compare.
    """
    test = lowered.test
    item = list(instructions(test.threads[thread]))[index]
    jump = None if item.guard is not None or index in waiting(lowered, thread) else _again(lowered, item, value)
    if jump is None:
        return None
    text = test.source.text
    label = fresh(text, f"SEEN{index}")
    begin = text.rfind("\n", 0, item.span.start) + 1
    indent = text[begin : item.span.start]
    alone = not indent.strip()
    start, end = begin if alone else item.span.start, text.index(";", item.span.end) + 1
    branch = f"{jump} bra {label};".split("\n")
    after = "".join(f"\n{indent}{line}" if alone else f" {line}" for line in branch)
    named = Edit(start, start, f"{label}:\n" if alone else f"{label}: ", "", 0.0, (thread, index, "label"))
    what = f"{place(test.threads[thread], item)}: repeat {item.mnemonic} until it has seen the other thread"
    group = (thread, index + 1, f"{REPEATS} {index}")
    more = (named, *_swap(item, (thread, index), value))
    return Edit(end, end, after, what, WAIT + OTHER, group, adds=len(branch), more=more)


def _swap(item: Instruction, at: tuple[int, int], value: int | None) -> Iterator[Edit]:
    """A compare-and-swap in place of an exchange: in a loop it writes once."""
    if "exch" in item.parts:
        span, last = item.mnemonic_span, item.operands[-1].span
        words = item.mnemonic.replace(".exch.", ".cas.")
        yield Edit(span.start, span.end, words, "", 0.0, (*at, "name"))
        yield Edit(last.start, last.start, f"{value}, ", "", 0.0, (*at, "expected value"))


def _again(lowered: LoweredTest, item: Instruction, value: int | None) -> str | None:
    """The lines that lead to a branch back, up to its guard."""
    register = item.operands[0] if item.operands else None
    if not isinstance(register, Reg):
        return None
    reading = read_instruction(item, lowered.test)
    if item.parts[0] == "mbarrier":
        return f"@!%{register.name}"
    kind = reading.words.get("type", "s64")
    takes = reading.head == "atom" and {"exch", "cas"} & set(item.parts)  # a lock: it stays as it is until it is free
    if not (reading.head == "ld" or takes) or "vec" in reading.words or kind not in COMPARED or value is None:
        return None
    predicate = fresh(lowered.test.source.text, "%early")
    return f"setp.ne.{kind} {predicate}, %{register.name}, {value};\n@{predicate}"
