"""The other parity in each round, where a thread waits in a loop for a parity that a register keeps.

In: a lowered test. Out: changes. Settled here: the register is one that nothing changes after its first value, and the
line stands at the end of the smallest loop around the wait that does more than wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memmodel.concrete.loops import find_loops
from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction
from memmodel.program.lowered import LoweredTest
from memmodel.program.uses import assigned
from memmodel.ptx.operands import Imm, Reg
from memmodel.repair.costs import OTHER
from memmodel.repair.edits import Edit
from memmodel.repair.insertion.gaps import Opening


def flips(lowered: LoweredTest) -> Iterator[Edit]:
    """A line that turns the parity, for each register that keeps one."""
    for number, thread in enumerate(lowered.test.threads):
        program, items = lowered.programs[number], list(instructions(thread))
        loops = [loop for loop in find_loops(program).values() if not loop.spins]
        ends = [(program.steps[loop.first].index, program.steps[loop.last].index) for loop in loops]
        waits = [(index, item.operands[2]) for index, item in enumerate(items) if "wait.parity" in item.mnemonic]
        for register in dict.fromkeys(parity for _, parity in waits if isinstance(parity, Reg)):
            width = _width(lowered, number, items, register)
            at = next(index for index, parity in waits if parity == register)
            around = [(last - first, last) for first, last in ends if first <= at <= last]
            if width and around:
                last = min(around)[1]
                gap = Opening(number, thread.name, last, items[last], items[last].span.start, (), ())
                line = f"xor.b{width} %{register.name}, %{register.name}, 1;"
                yield gap.insertion(line, f"{line[:-1]}, for the other parity in the next round,", OTHER, 0)


def _width(lowered: LoweredTest, number: int, items: list[Instruction], register: Reg) -> str:
    """The bits of a register that has one value, 0 or 1; empty for another one."""
    program = lowered.programs[number]
    sets = [n for n in range(len(items)) if any(register.name in assigned(op) for op in program.ops(n))]
    first = items[sets[0]] if len(sets) == 1 else None
    if first is None or first.parts[0] != "mov" or not isinstance(first.operands[1], Imm):
        return ""
    width = re.search(r"(32|64)$", first.mnemonic)
    return width[1] if width is not None and first.operands[1].value in (0, 1) else ""
