"""Which instructions may follow one another, and which registers are still needed.

In: PtxFunction. Out: `successors`, `liveness`.
"""

from __future__ import annotations

from functools import lru_cache

from memmodel.isa.lowered import body_of
from memmodel.ptx.module.syntax import PtxFunction
from memmodel.ptx.operands import JumpTarget


@lru_cache(maxsize=8)
def successors(entry: PtxFunction) -> tuple[tuple[int, ...], ...]:
    """The numbers of the instructions that may come after each one; a called function is not entered."""
    return tuple(
        (*_listed(entry, does.instruction.operands), *does.follows) if does.jumps_by_table else does.follows
        for does in body_of(entry)
    )


def _listed(entry: PtxFunction, operands: tuple[object, ...]) -> tuple[int, ...]:
    tables = (operand.name for operand in operands if isinstance(operand, JumpTarget))
    return tuple(dict.fromkeys(place for table in tables for place in entry.tables.get(table, ())))


@lru_cache(maxsize=8)
def liveness(entry: PtxFunction) -> list[set[int]]:
    """The registers whose value may still be read, before each instruction."""
    body, after = body_of(entry), successors(entry)
    live: list[set[int]] = [set() for _ in range(len(body) + 1)]
    kills = [set(does.writes) if does.instruction.guard is None else set[int]() for does in body]
    changed = True
    while changed:
        changed = False
        for at in range(len(body) - 1, -1, -1):
            new = body[at].reads | set[int]().union(*(live[later] for later in after[at])) - kills[at]
            changed |= new != live[at]
            live[at] = set(new)
    return live
