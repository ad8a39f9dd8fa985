"""What kind of access an instruction makes, and how a register goes on, for runs that are followed.

In: instructions, blocks, values. Out: yes or no, a name, a step.
"""

from __future__ import annotations

from collections.abc import Sequence

from memmodel.base.labels import Access
from memmodel.kernel.all_sizes.drift import centred
from memmodel.kernel.machine.rows import Value
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Mem, Sym, TensorOperand
from memmodel.ptx.vocabulary import Proxy, Space


def step_of(before: Value, after: Value, width: int) -> int | None:
    """By how much a register goes on in a period; None where that is not known, or a predicate changes."""
    if before is None or after is None:
        return None
    return centred(after - before, width) if width > 1 or before == after else None


def in_shared(block: Block) -> bool:
    return block.instance.space is Space.SHARED


def tests_state(one: PtxInstruction) -> bool:
    """Is it a test of a state? That is the one of its phase, whichever this is."""
    return one.words[:2] in (("mbarrier", "test_wait"), ("mbarrier", "try_wait")) and "parity" not in one.words


def named_in(one: PtxInstruction) -> str:
    """The variable that a load names."""
    place = one.operands[1]
    return place.base.name if isinstance(place, Mem | TensorOperand) and isinstance(place.base, Sym) else ""


def copies_in(one: PtxInstruction) -> bool:
    """Is it a copy from global to shared memory?"""
    if one.words[0] != "cp" or len(one.operands) < 2:
        return False
    spaces = [word for word in one.words if word.startswith(("shared", "global"))]
    return len(spaces) >= 2 and spaces[0].startswith("shared") and spaces[1] == "global"


def tiles(made: Sequence[WeakAccess]) -> list[Block]:
    """The memory outside of shared memory that accesses are to, but for tensor maps, which are where they are."""
    described = [isinstance(one.label, Access) and one.label.proxy is Proxy.TENSORMAP for one in made]
    return [one.block for one, maps in zip(made, described, strict=True) if not maps and not in_shared(one.block)]
