"""Which registers an instruction reads and writes, and whose values are still needed.

In: instructions. Out: `registers`, `written`, `liveness`.
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


def written(one: PtxInstruction) -> list[int]:
    """The registers that an instruction writes: its first operand, unless it stores, branches or only reads."""
    if "red" in one.words[1:] and one.words[0] in ("bar", "barrier"):
        return registers(one.operands[0]) if one.operands else []
    if one.words[0] in NO_RESULT or one.words[:2] == ("tcgen05", "dealloc"):
        return []
    return registers(one.operands[0]) if one.operands and not isinstance(one.operands[0], Mem | TensorOperand) else []


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
    kills = [set(written(one)) if one.guard is None else set() for one in body]
    reads = [{slot for each in one.operands[written(one) != [] :] for slot in registers(each)} for one in body]
    changed = True
    while changed:
        changed = False
        for at in range(len(body) - 1, -1, -1):
            one, out = body[at], set[int]()
            if one.words[0] == "bra" and one.operands and isinstance(one.operands[0], JumpTarget):
                out |= live[one.operands[0].at]
            for table in one.operands if one.words[0] == "brx" else ():
                out |= {slot for place in entry.tables.get(getattr(table, "name", ""), ()) for slot in live[place]}
            if one.guard is not None or one.words[0] not in (*ENDS, "bra", "brx"):
                out |= live[at + 1]
            new = reads[at] | out - kills[at] | ({one.guard.slot} if one.guard is not None else set())
            changed |= new != live[at]
            live[at] = new
    return live
