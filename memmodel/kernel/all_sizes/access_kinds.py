"""The kinds of accesses that instructions make, and the step of a register, for runs that are followed.

In: instructions, blocks, values. Out: as above.
"""

from __future__ import annotations

from collections.abc import Sequence

from memmodel.base.labels import Access
from memmodel.isa.module import tests_phase, words_of
from memmodel.kernel.all_sizes.drift import centred
from memmodel.kernel.machine.rows import Value
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Mem, Sym, TensorOperand
from memmodel.ptx.vocabulary import Proxy, Space


def step_of(before: Value, after: Value, width: int) -> int | None:
    """The step of a register in a period; None where it is not known, or a predicate changes."""
    if before is None or after is None:
        return None
    return centred(after - before, width) if width > 1 or before == after else None


def in_shared(block: Block) -> bool:
    return block.instance.space is Space.SHARED


def tests_state(instruction: PtxInstruction) -> bool:
    """True for test_wait and try_wait by state, not by parity."""
    return tests_phase(instruction.opcode) and "parity" not in words_of(instruction.opcode)


def named_in(instruction: PtxInstruction) -> str:
    """The variable that a load names."""
    place = instruction.operands[1]
    return place.base.name if isinstance(place, Mem | TensorOperand) and isinstance(place.base, Sym) else ""


def copies_in(instruction: PtxInstruction) -> bool:
    """True for a copy from global to shared memory."""
    if instruction.words[0] != "cp" or len(instruction.operands) < 2:
        return False
    spaces = [word for word in instruction.words if word.startswith(("shared", "global"))]
    return len(spaces) >= 2 and spaces[0].startswith("shared") and spaces[1] == "global"


def tiles(accesses: Sequence[WeakAccess]) -> list[Block]:
    """The blocks outside of shared memory that are accessed, without tensor maps, whose places are fixed."""
    labels = [(access.block, access.label) for access in accesses if not in_shared(access.block)]
    return [block for block, label in labels if not (isinstance(label, Access) and label.proxy is Proxy.TENSORMAP)]
