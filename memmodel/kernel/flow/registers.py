"""Which registers an instruction reads and writes, and whose values are still needed.

In: instructions. Out: `written`, `read_slots`, `reads`, `registers`, `liveness`.
"""

from __future__ import annotations

from functools import lru_cache

from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import (
    Arguments,
    JumpTarget,
    Mem,
    Negated,
    Operand,
    Pair,
    Part,
    Register,
    TensorOperand,
    Vector,
)

ENDS = ("ret", "exit", "trap")


_NO_RESULT = "st red bra bar barrier fence membar ret exit brx call nanosleep stackrestore"


NO_RESULT = frozenset(_NO_RESULT.split())


def written(instruction: PtxInstruction) -> list[int]:
    """The registers that an instruction writes: its first operand, unless it stores, branches or only reads."""
    if "red" in instruction.words[1:] and instruction.words[0] in ("bar", "barrier"):
        return registers(instruction.operands[0]) if instruction.operands else []
    if instruction.words[0] in NO_RESULT or instruction.words[:2] == ("tcgen05", "dealloc"):
        return []
    return (
        registers(instruction.operands[0])
        if instruction.operands and not isinstance(instruction.operands[0], Mem | TensorOperand)
        else []
    )


def read_slots(instruction: PtxInstruction) -> set[int]:
    """The registers that the operands of an instruction read."""
    first = [] if written(instruction) else instruction.operands[:1]
    return {slot for operand in (*first, *instruction.operands[1:]) for slot in registers(operand)}


def reads(instruction: PtxInstruction) -> set[int]:
    """The registers that an instruction reads, its guard's included."""
    return read_slots(instruction) | (set() if instruction.guard is None else {instruction.guard.slot})


def registers(operand: Operand) -> list[int]:
    """The registers in an operand."""
    if isinstance(operand, Register):
        return [operand.slot]
    if isinstance(operand, Negated | Part):
        return registers(operand.operand if isinstance(operand, Negated) else operand.register)
    if isinstance(operand, Pair):
        return [*registers(operand.first), *registers(operand.second)]
    if isinstance(operand, Vector | Arguments):
        return [slot for item in operand.items for slot in registers(item)]
    if isinstance(operand, Mem | TensorOperand):
        rest = operand.rest if isinstance(operand, TensorOperand) else ()
        return [*registers(operand.base), *(slot for item in rest for slot in registers(item))]
    return []


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
