"""What the addresses of lanes reach.

In: an address, and the state space that it is relative to. Out: a block of memory and the offset in it. Settled here:
the windows of shared memory and of parameters, the memory of other CTAs of a cluster, each lane's own local memory.
"""

from __future__ import annotations

from collections.abc import Mapping

from memmodel.kernel.machine.memory import PRIVATE_START, START_OF, DeviceMemory
from memmodel.kernel.machine.parts import Cta, Faulty, Lanes, Warp
from memmodel.kernel.machine.rows import Row, Value
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.problems import UNKNOWN_VALUE, Refused
from memmodel.memory.bytes import BadAddress
from memmodel.program.addresses import WINDOW_SPACES
from memmodel.program.windows import OWN_LOCAL, PARAM_WINDOW, RANK_BITS, SHARED_WINDOW, is_in
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Space, Window

WINDOWS: Mapping[Space | None, Window] = {Space.GLOBAL: Window.GLOBAL, Space.CONST: Window.CONST}
"""What is reached through an address that names its state space; shared memory is found by its own addresses."""

REACHES_OWN = (Window.GENERIC, Window.DATA_OR_LOCAL)
"""Generic addresses that may be those of local memory."""


class Addressing:
    """The memory of a launch, as its threads address it. `ctas`: by cluster and rank."""

    def __init__(self, memory: DeviceMemory, ctas: Mapping[tuple[int, int], Cta]) -> None:
        self._memory = memory
        self._ctas = ctas

    def place(
        self, warp: Warp, space: Space | None, address: Value, size: int, instruction: PtxInstruction,
        window: Window = Window.GENERIC,
    ) -> tuple[Block, int]:  # fmt: skip
        """The bytes that an access of `size` bytes touches. `space`: what the address is relative to, None if it is
        generic. `window`: which of these addresses the instruction takes.

        Raises Faulty, or Refused for an unknown address.
        """
        if address is None:
            raise Refused(f"the address depends on {UNKNOWN_VALUE}", instruction.span)
        target = self._find(warp, space, address, window)
        if target is None:
            raise Faulty("undefined-address", f"address {address:#x} is {_nowhere(space, address, window)}")
        block, at = target
        if not self.takes(warp, WINDOWS.get(space, window), block):
            raise Faulty("undefined-address", f"address {address:#x} is {BadAddress.WINDOW.value}")
        first, end = self._memory.bounds(block, at)
        if at < first or at + size > end:
            where = f"reach beyond the {block.instance.name}"
            if block.instance.space is Space.SHARED and at + size <= block.size:
                where = f"are not all in one variable in the {block.instance.name}"
            raise Faulty("undefined-address", f"{size} bytes at {address:#x} {where}")
        return block, at

    def takes(self, warp: Warp, window: Window, block: Block) -> bool:
        """True if an address in a window reaches this memory."""
        own = block.instance.owner is None or block is warp.cta.shared
        if own and window is Window.SHARED_OTHER:
            return False
        if not own and window in (Window.OWN_DATA, Window.SHARED_CTA):
            return False
        return block.instance.space in WINDOW_SPACES[window]

    def _find(self, warp: Warp, space: Space | None, address: int, window: Window) -> tuple[Block, int] | None:
        # No bits of a 64-bit register are dropped: an address in .shared that has more than 32 is no such address.
        if space is Space.SHARED:
            target = self._shared(warp, address)
            if target is not None and window is Window.SHARED_CTA and target[0] is not warp.cta.shared:
                raise Faulty("undefined-address", f"address {address:#x} is in another CTA, outside .shared::cta")
            return target
        if space is None and SHARED_WINDOW <= address < SHARED_WINDOW + (1 << 32):
            return self._shared(warp, address - SHARED_WINDOW)
        if space is None and PARAM_WINDOW <= address < PARAM_WINDOW + self._memory.params.size:
            return self._memory.params, address - PARAM_WINDOW
        generic = address + START_OF.get(space, 0)
        block = self._memory.find(generic)
        return None if block is None else (block, generic - block.address)

    def _shared(self, warp: Warp, address: int) -> tuple[Block, int] | None:
        cta = self._ctas.get((warp.cta.cluster, address >> RANK_BITS))
        return None if cta is None else (cta.shared, address & (1 << RANK_BITS) - 1)

    def places(
        self, warp: Warp, space: Space | None, addresses: Row, lanes: Lanes, size: int, window: Window
    ) -> tuple[Block, list[int]] | None:
        """The block and the offsets of what lanes access, if it all lies in one block; otherwise None."""
        known = [addresses[lane] for lane in lanes]
        first = known[0]
        if first is None or None in known:
            return None
        target = self._find(warp, space, first, window)
        if target is None or target[0] is self._memory.params:
            return None
        block, at = target
        if not self.takes(warp, WINDOWS.get(space, window), block):
            return None
        shift = at - first
        offsets = [address + shift for address in known if address is not None]
        low, high = self._memory.bounds(block, at)
        if min(offsets) < low or max(offsets) + size > high:
            return None
        return block, offsets

    def private_at_generic(self, warp: Warp, lane: int, address: Value, size: int) -> tuple[Block, int] | None:
        """The local memory of a lane at a generic address; None for any other address."""
        start = warp.special[OWN_LOCAL][lane]
        assert start is not None
        return None if address is None else self.private(warp, lane, address - start, size)

    def private(self, warp: Warp, lane: int, address: int, size: int) -> tuple[Block, int] | None:
        """The local memory of a lane at an address in .local; None above the end of the stack."""
        at = address - PRIVATE_START
        if not 0 <= at <= self._memory.private_size - size:
            return None
        if at + size > self._memory.variables_end and at < self._memory.private_size - warp.stacked[lane]:
            return None
        block = warp.locals[lane]
        if block is None:
            block = warp.locals[lane] = self._memory.private()
        return block, at


def _nowhere(space: Space | None, address: int, window: Window) -> str:
    """The place of an address at which there is no object, in words."""
    if is_in(address, Space.LOCAL) and window in REACHES_OWN:
        return "outside the local memory of this thread"
    if is_in(address, Space.LOCAL):
        return "in local memory, which this instruction does not take"
    if space is Space.SHARED and is_in(address, Space.SHARED):
        return "a generic address, and the instruction names .shared: cvta.to.shared converts it"
    return "outside every object"
