"""Which registers an instruction reads and writes, and whose values are still needed.

In: instructions. Out: `written`, `read_slots`, `reads`, `registers`, `liveness`.
"""

from __future__ import annotations

from functools import lru_cache

from memmodel.isa.lowered import lowered, registers
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import JumpTarget

ENDS = ("ret", "exit", "trap")


def written(instruction: PtxInstruction) -> list[int]:
    """The registers that receive the results of an instruction."""
    return list(lowered(instruction).writes)


def read_slots(instruction: PtxInstruction) -> set[int]:
    """The registers that the operands of an instruction read."""
    return set(lowered(instruction).sources)


def reads(instruction: PtxInstruction) -> set[int]:
    """The registers that an instruction reads, its guard's included."""
    return read_slots(instruction) | (set() if instruction.guard is None else {instruction.guard.slot})


@lru_cache(maxsize=4)
def liveness(entry: PtxFunction) -> list[set[int]]:
    """The registers whose value may still be read, before each instruction."""
    body = entry.body or ()
    live: list[set[int]] = [set() for _ in range(len(body) + 1)]
    kills = [set(written(instruction)) if instruction.guard is None else set() for instruction in body]
    reads = [
        {slot for operand in instruction.operands[written(instruction) != [] :] for slot in registers(operand)}
        for instruction in body
    ]
    changed = True
    while changed:
        changed = False
        for at in range(len(body) - 1, -1, -1):
            instruction, out = body[at], set[int]()
            if (
                instruction.words[0] == "bra"
                and instruction.operands
                and isinstance(instruction.operands[0], JumpTarget)
            ):
                out |= live[instruction.operands[0].at]
            for table in instruction.operands if instruction.words[0] == "brx" else ():
                out |= {slot for place in entry.tables.get(getattr(table, "name", ""), ()) for slot in live[place]}
            if instruction.guard is not None or instruction.words[0] not in (*ENDS, "bra", "brx"):
                out |= live[at + 1]
            new = reads[at] | out - kills[at] | ({instruction.guard.slot} if instruction.guard is not None else set())
            changed |= new != live[at]
            live[at] = new
    return live
