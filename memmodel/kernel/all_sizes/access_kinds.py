"""The kinds of accesses that instructions make, and the step of a register, for runs that are followed.

In: instructions, blocks, values. Out: as above.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memmodel.base.labels import Access
from memmodel.isa.module import tests_phase, words_of
from memmodel.kernel.all_sizes.drift import centred
from memmodel.kernel.machine.rows import Value
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.memory.tensormap import MAX_DIMENSIONS, insertion, size_field, stride_field
from memmodel.program.expressions import Apply, Expr, registers_of
from memmodel.program.ops import AsyncRead, AsyncWrite, Gather, IssueAsync, Op, Scatter, Update, Write
from memmodel.program.regions import Box, Chunk, TensorMapAt
from memmodel.program.warp_ops import CopyTogether, WarpOp
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Mem, Sym, TensorOperand
from memmodel.ptx.vocabulary import Proxy, Space, Window

SIZES = frozenset(insertion(field(axis)) for axis in range(MAX_DIMENSIONS) for field in (size_field, stride_field))
"""The operations that change a size or a stride of a tensor map."""


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


def copied_in(ops: Sequence[Op | WarpOp]) -> list[Expr]:
    """Where a copy from global to shared memory reads: its address, or the coordinates of its box."""
    parts = (part for op in ops if isinstance(op, IssueAsync) for part in op.parts if isinstance(part, Gather))
    places: list[Expr] = []
    for part in parts:
        match part.region:
            case Box(coordinates=coordinates):
                places += coordinates
            case Chunk(address=address, window=Window.GLOBAL):
                places.append(address)
    return places


def maps_of(ops: Sequence[Op | WarpOp]) -> list[Expr]:
    """The addresses of tensor maps that say what an asynchronous instruction touches."""
    parts = (part for op in ops if isinstance(op, IssueAsync) for part in op.parts if isinstance(part, AsyncRead))
    return [part.region.address for part in parts if isinstance(part.region, TensorMapAt)]


def stores(ops: Sequence[Op | WarpOp]) -> bool:
    """True if an instruction leaves something in memory."""
    parts = (part for op in ops if isinstance(op, IssueAsync) for part in op.parts)
    writes = any(isinstance(part, Scatter | Update | AsyncWrite) for part in parts)
    return writes or any(isinstance(op, Write | CopyTogether) for op in ops)


def copies(ops: Sequence[Op | WarpOp]) -> bool:
    """True if what an asynchronous instruction leaves comes out of memory."""
    return any(isinstance(op, IssueAsync) and any(isinstance(part, Gather) for part in op.parts) for op in ops)


def resized(ops: Sequence[Op | WarpOp]) -> list[Expr]:
    """The values that a tensor map receives as sizes or strides, which change what lies where, and nothing else."""
    values = (value for op in ops if isinstance(op, Write) for value in op.values)
    return [value for value in values if isinstance(value, Apply) and value.op in SIZES]


def slots_of(exprs: Iterable[Expr]) -> set[int]:
    """The registers of the function that expressions read."""
    return {int(name) for expr in exprs for name in registers_of(expr) if name.isdigit()}


def tiles(accesses: Sequence[WeakAccess]) -> list[Block]:
    """The blocks outside of shared memory that are accessed, without tensor maps, whose places are fixed."""
    labels = [(access.block, access.label) for access in accesses if not in_shared(access.block)]
    return [block for block, label in labels if not (isinstance(label, Access) and label.proxy is Proxy.TENSORMAP)]
