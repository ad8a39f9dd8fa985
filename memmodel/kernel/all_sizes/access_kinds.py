"""What instructions do with memory, and the step of a register, for runs that are followed.

In: an instruction of a module, blocks, values. Out: as above.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memmodel.base.labels import Access
from memmodel.isa.lowered import LoweredInstruction
from memmodel.kernel.machine.rows import Value
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.program.ops import AsyncRead, AsyncWrite, Gather, IssueAsync, Part, Read, Scatter, Update, Write
from memmodel.program.regions import TensorMapAt
from memmodel.program.warp_ops import (
    AccessReplicas,
    AccessTexture,
    AllocateColumns,
    CopyTogether,
    CopyToTensorMemory,
    Forget,
    MoveMatrix,
    MoveTensorMemory,
    MultiplyInRegisters,
    MultiplyInTensorMemory,
    ShiftTensorMemory,
)
from memmodel.ptx.vocabulary import DataType, Proxy, Space

BRINGING = AccessReplicas | AccessTexture | Forget | MoveMatrix | MoveTensorMemory | MultiplyInRegisters
"""Steps of warps by which registers may receive what is in memory, or unknown values."""

LEAVING = (
    AccessReplicas
    | AccessTexture
    | AllocateColumns
    | CopyToTensorMemory
    | MoveMatrix
    | MoveTensorMemory
    | MultiplyInTensorMemory
    | ShiftTensorMemory
)
"""Steps of warps by which memory may receive something."""


def step_of(before: Value, after: Value, width: int) -> int | None:
    """The step of a register in a period; None where it is not known, or a predicate changes."""
    if before is None or after is None:
        return None
    return DataType("s", width).wrap(after - before) if width > 1 or before == after else None


def in_shared(block: Block) -> bool:
    return block.instance.space is Space.SHARED


def parts(does: LoweredInstruction) -> Iterator[Part]:
    """The parts of an asynchronous instruction."""
    for op in does.ops:
        if isinstance(op, IssueAsync):
            yield from op.parts


def mapped(does: LoweredInstruction) -> bool:
    """True if a tensor map says what an asynchronous instruction touches."""
    return any(isinstance(part, AsyncRead) and isinstance(part.region, TensorMapAt) for part in parts(does))


def changes_memory(does: LoweredInstruction) -> bool:
    """True if an instruction leaves something in memory."""
    writes = any(isinstance(part, Scatter | Update | AsyncWrite) for part in parts(does))
    return writes or any(isinstance(op, Write | CopyTogether) for op in does.ops)


def combines(does: LoweredInstruction) -> bool:
    """True for an atomic operation: what it leaves may depend on how often it was made before."""
    return any(isinstance(op, Write) and op.rmw for op in does.ops)


def copies(does: LoweredInstruction) -> bool:
    """True if what an asynchronous instruction leaves comes out of memory."""
    return any(isinstance(part, Gather) for part in parts(does))


def brings(does: LoweredInstruction) -> bool:
    """True if what an instruction leaves in registers may come out of memory."""
    return any(isinstance(op, Read | BRINGING) for op in does.ops)


def leaves(does: LoweredInstruction) -> bool:
    """True if an instruction may leave numbers in memory: its operands, or what was elsewhere in memory."""
    return changes_memory(does) or any(isinstance(op, LEAVING) for op in does.ops)


def tiles(accesses: Sequence[WeakAccess]) -> list[Block]:
    """The blocks outside of shared memory that are accessed, without tensor maps, whose places are fixed."""
    labels = [(access.block, access.label) for access in accesses if not in_shared(access.block)]
    return [block for block, label in labels if not (isinstance(label, Access) and label.proxy is Proxy.TENSORMAP)]
