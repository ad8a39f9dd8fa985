"""Instructions that synchronize on the wrong side of an access, and would be right on the other one.

In: a finding about two accesses, the entry. Out: pairs of an instruction and the place where it may stand. Settled
here: nothing leaves its basic block, and no register that the instruction reads is written on the way. What tells other
threads of an access stands behind it, or behind the last of a row of accesses; what waits stands in front.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memmodel.answer import HANG
from memmodel.isa.lowered import lowered
from memmodel.isa.rows.row import Effect
from memmodel.kernel.flow.polling import basic_blocks
from memmodel.kernel.order.missing_order import UNFINISHED, MissingOrder
from memmodel.kernel.order.verdict import KernelFinding
from memmodel.kernel.repair.lines import committed
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction

REASONS = (*UNFINISHED, MissingOrder.SYNCHRONIZATION.value, MissingOrder.PROXY_PLACE.value)
"""What a move may cure."""

SIGNALS = "mbarrier::complete_tx::bytes"
COUNTED = (HANG, "undefined-mbarrier")
"""The findings after which an arrival may have to be that of one lane."""

NEAREST = 2
"""At most this many instructions are moved, each by itself, over one access."""


@dataclass(frozen=True, slots=True)
class MovedInstruction:
    """`instruction` goes before or, if `after`, behind `beside`."""

    instruction: PtxInstruction
    beside: PtxInstruction
    after: bool


def moves(finding: KernelFinding, entry: PtxFunction) -> Iterator[MovedInstruction]:
    """Moves of synchronizing instructions over one of the two accesses, and of an arrival by many lanes to the copy of
    one lane.
    """
    if finding.rule in COUNTED and len(finding.sides) < 2:
        yield from _to_its_copy(entry)
    if finding.reason not in REASONS or len(finding.sides) < 2:
        return
    block = _Blocks(entry)
    first, second = finding.sides[0].instruction.number, finding.sides[-1].instruction.number
    complete = committed(finding.sides[0].instruction, entry)  # another commit behind it would be of an empty group
    for instruction in (*block.synchronizing(first, -1), *block.releasing(first)):
        if complete and "commit_group" in block.body[instruction].words:
            continue
        for beside in dict.fromkeys((block.end_of_row(first, 1), first)):
            if block.free(instruction, beside):
                yield MovedInstruction(block.body[instruction], block.body[beside], after=True)
    for instruction in block.synchronizing(second, 1):
        for beside in dict.fromkeys((block.end_of_row(second, -1), second)):
            if block.free(instruction, beside):
                yield MovedInstruction(block.body[instruction], block.body[beside], after=False)


def _to_its_copy(entry: PtxFunction) -> Iterator[MovedInstruction]:
    """An arrival that expects bytes, in front of the copy that brings them, where more lanes arrive than copy."""
    body = entry.body or ()
    for arrival in body:
        if arrival.words[:3] != ("mbarrier", "arrive", "expect_tx") or len(arrival.operands) < 2:
            continue
        place = arrival.span.text.partition("[")[2].partition("]")[0].strip()
        copies = [it for it in body[arrival.number + 1 :] if SIGNALS in it.words and f"[{place}]" in it.span.text]
        written = {
            slot for it in body[arrival.number : copies[0].number if copies else 0] for slot in lowered(it).writes
        }
        if copies and not written & lowered(arrival).reads and arrival.number + 1 < copies[0].number:
            yield MovedInstruction(arrival, copies[0], after=False)


class _Blocks:
    """The basic blocks of a function."""

    def __init__(self, entry: PtxFunction) -> None:
        self.body = entry.body or ()
        self.begins = basic_blocks(entry)[0]

    def around(self, start: int, step: int) -> Iterator[int]:
        """The instructions of the block on one side of an instruction, the nearest first."""
        at = start
        while 0 <= at + step < len(self.body) and (at if step < 0 else at + step) not in self.begins:
            at += step
            yield at

    def synchronizing(self, access: int, step: int) -> list[int]:
        """The nearest instructions on one side of an access that synchronize and leave no result in a register."""
        does = ((at, lowered(self.body[at])) for at in self.around(access, step))
        return [at for at, it in does if it.synchronizes and not it.writes][:NEAREST]

    def releasing(self, access: int) -> list[int]:
        """The nearest store or reduction in front of an access that releases."""
        ahead = (self.body[at] for at in self.around(access, -1))
        return [it.number for it in ahead if it.words[0] in ("st", "red") and "release" in it.words][:1]

    def end_of_row(self, access: int, step: int) -> int:
        """The last access of a row, on one side of an access; between these the thread only computes."""
        last = access
        for at in self.around(access, step):
            it = lowered(self.body[at])
            if it.row is not None and it.row.effect in (Effect.MEMORY, Effect.ASYNCHRONOUS):
                last = at
            elif not it.computes:
                break
        return last

    def free(self, instruction: int, beside: int) -> bool:
        """True if nothing up to the new place writes a register that the instruction reads."""
        step = 1 if beside > instruction else -1
        written = {
            slot for at in range(instruction + step, beside + step, step) for slot in lowered(self.body[at]).writes
        }
        return not written & lowered(self.body[instruction]).reads


__all__ = ["MovedInstruction", "moves"]
