"""Which registers an instruction reads and writes."""

from __future__ import annotations

from memmodel.isa.lowered import lowered
from memmodel.ptx.module.syntax import PtxInstruction

ENDS = ("ret", "exit", "trap")


def written(instruction: PtxInstruction) -> list[int]:
    """The registers that receive the results of an instruction."""
    return list(lowered(instruction).writes)


def read_slots(instruction: PtxInstruction) -> set[int]:
    """The registers that the operands of an instruction read."""
    return set(lowered(instruction).sources)
