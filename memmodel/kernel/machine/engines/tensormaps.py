"""Changing tensor maps on the device: tensormap.replace and tensormap.cp_fenceproxy.

In: an Instruction. Out: a step that changes the number that stands for a map. Source: PTX ISA "tensormap.replace",
"tensormap.cp_fenceproxy".
"""

from __future__ import annotations

from memmodel.base.labels import Access, ProxyFence, Side
from memmodel.kernel.machine.accesses import SCOPES, address, gathered
from memmodel.kernel.machine.parts import LaneGroup, Lanes, Warp
from memmodel.kernel.machine.pure import Compiler
from memmodel.kernel.machine.regions.maps import replaced
from memmodel.kernel.machine.state import Machine
from memmodel.kernel.machine.warpops import Blocking
from memmodel.kernel.trace.problems import Refused
from memmodel.memory.tensormap import TENSORMAP_BYTES
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Imm
from memmodel.ptx.vocabulary import Proxy, Scope, Sem, Window

PIECE = 4
"""Bytes of a map that each lane copies."""


def map_step(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    """The step of an instruction of this family."""
    words = instruction.words
    if words[:2] == ("tensormap", "replace"):
        return _replace(compiler, instruction)
    if words[:2] == ("tensormap", "cp_fenceproxy"):
        return _publish(compiler, instruction)
    return None


def _replace(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """A weak read and a weak write of the whole map."""
    words, operands = instruction.words, instruction.operands
    field = words[3]
    where, new = address(compiler, instruction, operands[0]), compiler.get(operands[-1], instruction)
    axis = operands[1].value if len(operands) > 2 and isinstance(operands[1], Imm) else 0
    space = "shared" if "shared::cta" in words else "global" if "global" in words else "generic"
    reads, writes = Access(Side.READ), Access(Side.WRITE)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        places, values = list(where(warp)), list(new(warp))
        for lane in lanes:
            block, at = machine.place(warp, space, places[lane], TENSORMAP_BYTES, instruction, Window.OWN_DATA)
            value, number = values[lane], block.load(at, TENSORMAP_BYTES)
            if value is None:
                machine.unknown("the new value", instruction)
            changed = None if number is None else replaced(number, field, axis, value)
            if number is not None and changed is None:
                raise Refused(f"the value {value} of .{field} is not known", instruction.span)
            thread = warp.threads[lane]
            machine.weak(block, at, TENSORMAP_BYTES, thread, reads, instruction.number, None)
            machine.weak(block, at, TENSORMAP_BYTES, thread, writes, instruction.number, None)
            machine.forget(block, at, TENSORMAP_BYTES)
            block.store(at, TENSORMAP_BYTES, changed)
        return True

    return step


def _publish(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """A warp copies a map from shared to global memory; then each lane has the release half of a proxy fence."""
    target, source = (address(compiler, instruction, one) for one in instruction.operands[:2])
    scope = next((SCOPES[word] for word in instruction.words if word in SCOPES), Scope.GPU)
    fence = ProxyFence(Proxy.TENSORMAP, Sem.RELEASE, scope)
    reads, writes = Access(Side.READ), Access(Side.WRITE)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if not gathered(warp, lanes):
            return False
        to, start = target(warp)[lanes[0]], source(warp)[lanes[0]]
        block, at = machine.place(warp, "global", to, TENSORMAP_BYTES, instruction)
        origin, begin = machine.place(warp, "shared", start, TENSORMAP_BYTES, instruction)
        offsets = list(range(0, TENSORMAP_BYTES, PIECE))
        movers = [lanes[number % len(lanes)] for number in range(len(offsets))]
        number, scalar = instruction.number, PIECE
        machine.weak_lanes(warp, movers, origin, [begin + one for one in offsets], PIECE, reads, number, scalar)
        machine.weak_lanes(warp, movers, block, [at + one for one in offsets], PIECE, writes, number, scalar)
        machine.forget(block, at, TENSORMAP_BYTES)
        block.copy(at, origin, begin, TENSORMAP_BYTES)
        for lane in lanes:
            machine.event(warp.threads[lane], number, fence)
        return True

    return step
