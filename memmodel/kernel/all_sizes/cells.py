"""Which bytes of memory hold numbers that drift, and which known numbers were loaded where a loop is stretched.

In: the accesses that an instruction has made. Out: `DriftCells`. Memory that a thread has for itself is not told apart.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from memmodel.base.labels import Access, Side
from memmodel.kernel.machine.state import Machine
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.blocks import Block
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
        """Is there anything that drifts?"""
        return self._own or self._strong or bool(self._cells)

    def brought(
        self, one: PtxInstruction, made: Sequence[WeakAccess], inside: Container[int], threads: set[int]
    ) -> bool:
        """Does a load bring numbers that drift? `inside`: the threads whose loop is stretched just now."""
        if not made:
            strong = not _private(one) and (self._strong or bool(self._cells))
            return strong or self._own or any(thread in inside for thread in threads)
        for each in made:
            if each.thread in inside and each.block.load(each.first, each.size) is not None:
                self.loaded[each.block, each.first, each.size] = one
        return self._strong or any(self.hold(each.block, each.first, each.first + each.size) for each in made)

    def left(self, one: PtxInstruction, made: Sequence[WeakAccess], *, drifts: bool) -> None:
        """What is stored, or put into a tensor map, drifts or not; maps are copied as they are. What a strong store
        leaves is not told apart.
        """
        if not drifts and not self._cells:
            return
        self._own |= drifts and not made
        self._strong |= drifts and not made and not _private(one)
        if one.words[0] == "cp":  # of bytes that nobody knows none is compared
            held = drifts or any(self.hold(each.block, each.first, each.first + each.size) for each in made)
            made = [each for each in made if held and _written(each)]
            drifts = True
        cells = [(each.block, at) for each in made for at in range(each.first, each.first + each.size)]
        copied = len(cells) // 2 if one.words[:2] == ("tensormap", "cp_fenceproxy") else 0
        moved = {to for of, to in zip(cells[:copied], cells[copied:], strict=False) if of in self._cells}
        left = set(cells[copied:])
        self._cells = (self._cells | left) if drifts else (self._cells - left) | moved

    def hold(self, block: Block, first: int, end: int) -> bool:
        """Do some bytes hold numbers that drift?"""
        return any((block, at) in self._cells for at in range(first, end))


def _written(one: WeakAccess) -> bool:
    """Does an access write bytes that are known?"""
    writes = isinstance(one.label, Access) and one.label.side is Side.WRITE
    return writes and one.block.load(one.first, one.size) is not None


def _private(one: PtxInstruction) -> bool:
    """Does it name the memory of its thread?"""
    return any(word.split("::")[0] in ("local", "param") for word in one.words)


def made_since(machine: Machine, single: int, many: int) -> list[WeakAccess]:
    """The accesses that an instruction has made. `single`, `many`: how many the run had before."""
    return [*machine.run.single[single:], *(each for row in machine.run.lanes[many:] for each in row.each())]
