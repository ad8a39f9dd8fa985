"""Memory that only one thread accesses (local memory, parameters of calls), and the parameters of the entry.

In: where an instruction accesses what. Out: a step that moves values and leaves no access in the traces. Where values
are followed, the memory of terms hears of what is moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memmodel.kernel.machine.parts import Faulty, LaneGroup, Lanes, Warp
from memmodel.kernel.machine.regions.locate import aligned
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.machine.values.lanes import Get, forgetting
from memmodel.kernel.machine.values.widths import extended
from memmodel.kernel.trace.blocks import Block
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Window

if TYPE_CHECKING:
    from memmodel.kernel.machine.interpret import Pointer

OWN_WINDOWS = (Window.LOCAL, Window.PARAM, Window.FUNCTION_PARAM, Window.ANY_PARAM)
"""State spaces whose memory is the thread's own, and parameters of the entry."""


def read_lane(warp: Warp, lane: int, slots: list[int | None], block: Block, at: int, unit: int, extend: int) -> None:
    """Load elements into registers of one lane."""
    for part, slot in enumerate(slots):
        if slot is not None:
            warp.own(slot)[lane] = extended(block.load(at + part * unit, unit), unit, extend)


def note_access(
    machine: Machine, warp: Warp, lane: int, at: tuple[Block, int], size: int, number: int, *, put: bool
) -> None:
    """Tell the memory of terms, if there is one, that a thread loads from its own memory or stores there (`put`)."""
    if machine.memory_terms is not None:
        machine.memory_terms.own(warp.threads[lane].number, *at, size, number, put=put)


def private_step(
    instruction: PtxInstruction, pointer: Pointer, slots: list[int | None], sources: list[Get], unit: int,
    *, extend: int = 0,
) -> Blocking:  # fmt: skip
    """Parameters of the entry are read by all; local memory and the parameters of calls are a thread's own."""
    size, number = unit * (len(slots) or len(sources)), instruction.number

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        addresses = list(pointer.address(warp))
        rows = [source(warp) for source in sources]
        for lane in lanes:
            at = addresses[lane]
            if at is None and pointer.window is Window.LOCAL:
                _somewhere(machine, warp, lane, slots, instruction)
                continue
            if at is None:
                machine.unknown("the address", instruction)
            block, first = _place(machine, warp, lane, at, size, pointer.window, stores=bool(sources))
            aligned(block, first, size, at)
            read_lane(warp, lane, slots, block, first, unit, extend)
            for part, row in enumerate(rows):
                block.store(first + part * unit, unit, row[lane])
            note_access(machine, warp, lane, (block, first), size, number, put=bool(sources))
        return True

    return step


def _place(
    machine: Machine, warp: Warp, lane: int, at: int, size: int, window: Window, *, stores: bool
) -> tuple[Block, int]:
    """The bytes at an address of these state spaces. Raises Faulty."""
    own = machine.addressing.private(warp, lane, at, size)
    if own is not None and window is not Window.PARAM:
        return own
    params = machine.memory.params
    if own is not None or stores or window in (Window.LOCAL, Window.FUNCTION_PARAM):
        raise Faulty("undefined-address", f"address {at:#x} is outside the window .{window.value}")
    if not 0 <= at <= params.size - size:
        raise Faulty("undefined-address", f"offset {at} is outside the parameters")
    return params, at


def _somewhere(machine: Machine, warp: Warp, lane: int, slots: list[int | None], instruction: PtxInstruction) -> None:
    """An access to local memory at an unknown address: what is loaded is unknown, and after a store all of it."""
    forgetting([slot for slot in slots if slot is not None])(warp, [lane])
    own = warp.locals[lane]
    if not slots and own is not None:
        own.forget(0, own.size)
        note_access(machine, warp, lane, (own, 0), own.size, instruction.number, put=True)
    what = f"line {instruction.line}: an unknown address in local memory lies in a variable of the thread"
    machine.run.assumed.setdefault(what, "known data, or an array in registers")
