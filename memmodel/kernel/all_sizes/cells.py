"""The bytes of memory that hold numbers that drift, and the known numbers that were loaded where a loop is stretched.

In: the accesses that an instruction has made. Out: `DriftCells`. The private memory of threads is not divided.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from memmodel.base.labels import is_write
from memmodel.isa.lowered import LoweredInstruction
from memmodel.kernel.all_sizes.access_kinds import copies
from memmodel.kernel.machine.state import Machine
from memmodel.kernel.trace.accesses import WeakAccess, each_once
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.program.ops import Read
from memmodel.program.warp_ops import CopyTogether
from memmodel.ptx.module.syntax import PtxInstruction


class DriftCells:
    """The memory of one run. `loaded`: bytes whose values were known, by block, first byte and size, and what loaded
    them.
    """

    def __init__(self) -> None:
        self.loaded: dict[tuple[Block, int, int], PtxInstruction] = {}
        self._cells: set[tuple[Block, int]] = set()
        self._own = self._strong = False

    @property
    def any(self) -> bool:
        """True if anything in memory drifts."""
        return self._own or self._strong or bool(self._cells)

    def brought(
        self, does: LoweredInstruction, accesses: Sequence[WeakAccess], inside: Container[int], threads: set[int]
    ) -> bool:  # fmt: skip
        """True if a load returns numbers that drift. `inside`: the threads whose loop is stretched at present."""
        if not accesses:
            strong = not does.private and (self._strong or bool(self._cells))
            return strong or self._own or any(thread in inside for thread in threads)
        for access in accesses:
            if access.thread in inside and access.block.load(access.first, access.size) is not None:
                self.loaded[access.block, access.first, access.size] = does.instruction
        return self._strong or any(
            self.hold(access.block, access.first, access.first + access.size) for access in accesses
        )

    def left(self, does: LoweredInstruction, accesses: Sequence[WeakAccess], *, drifts: bool) -> None:
        """Note whether what is stored, or put into a tensor map, drifts. Maps are copied as they are. The places of
        strong stores are not distinguished.
        """
        if not drifts and not self._cells:
            return
        self._own |= drifts and not accesses
        self._strong |= drifts and not accesses and not does.private
        if copies(does):  # unknown bytes are never compared
            held = drifts or any(
                self.hold(access.block, access.first, access.first + access.size) for access in accesses
            )
            accesses = [access for access in accesses if held and _written(access)]
            drifts = True
        cells = [(access.block, at) for access in accesses for at in range(access.first, access.first + access.size)]
        copied = len(cells) // 2 if any(isinstance(op, CopyTogether) for op in does.ops) else 0
        moved = {to for of, to in zip(cells[:copied], cells[copied:], strict=False) if of in self._cells}
        left = set(cells[copied:])
        if any(isinstance(op, Read) for op in does.ops):  # what is changed, or kept beside what is replaced
            moved = left & self._cells
        self._cells = (self._cells | left) if drifts else (self._cells - left) | moved

    def combined(self, accesses: Iterable[TraceEvent]) -> None:
        """Note what atomic operations of a loop leave: it is another number after more rounds."""
        self._cells |= {
            (access.block, byte)
            for access in accesses
            if access.block is not None
            for byte in range(access.first, access.first + access.size)
        }

    def hold(self, block: Block, first: int, end: int) -> bool:
        """True if some bytes hold numbers that drift."""
        return any((block, at) in self._cells for at in range(first, end))


def _written(access: WeakAccess) -> bool:
    """True if an access writes known bytes."""
    return is_write(access.label) and access.block.load(access.first, access.size) is not None


def accesses_since(machine: Machine, single: int, many: int) -> list[WeakAccess]:
    """The accesses that an instruction has made. `single`, `many`: how many the run had before."""
    return [*machine.run.single[single:], *each_once(machine.run.lanes[many:])]
