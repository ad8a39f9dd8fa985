"""Barriers of CTAs and clusters, the pool of registers, and hints.

In: an Instruction. Out: a step that waits as the instruction does and leaves its events in the traces.
"""

from __future__ import annotations

from memmodel.kernel.machine.accesses import gathered
from memmodel.kernel.machine.parts import LaneGroup, Lanes, PairTurn, Warp
from memmodel.kernel.machine.pure import Compiler
from memmodel.kernel.machine.rows import LANES
from memmodel.kernel.machine.state import Machine
from memmodel.kernel.machine.warpops import Blocking
from memmodel.kernel.trace.objects import AwaitedPhase
from memmodel.kernel.trace.problems import Refused
from memmodel.kernel.trace.stuck import StuckLanes
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Imm

NOTHING = ("nanosleep", "pmevent", "griddepcontrol")


def sync_step(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    """The step of an instruction of this family."""
    words = instruction.words
    if words[0] in NOTHING:
        return lambda machine, warp, lanes, group: True
    if words[0] == "setmaxnreg":
        return _pool(instruction)
    return None


def _pool(instruction: PtxInstruction) -> Blocking:
    """setmaxnreg: an increase waits until the CTA has as many registers to give; it orders nothing."""
    operand = instruction.operands[0]
    if not isinstance(operand, Imm):
        raise Refused(f"{instruction.opcode} takes a number of registers", instruction.span)
    wanted, increases = operand.value, "inc" in instruction.words

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        if not gathered(warp, lanes):
            return False
        more = (wanted - warp.limit) * LANES
        if (more > 0) is not increases:
            return True
        if more > warp.cta.spare:
            return False
        warp.cta.spare -= more
        warp.limit = wanted
        machine.version += 1
        return True

    return step


def lacks(machine: Machine, warp: Warp, group: LaneGroup) -> str:
    """What the barrier, the mbarrier object or the peer CTA that threads wait for lacks."""
    if isinstance(group.waits, PairTurn):
        return ": no warp of the peer CTA does the same"
    if isinstance(group.waits, tuple) and group.waits[0] in warp.cta.barriers:
        counts = warp.cta.barriers[group.waits[0]].counts
        arrived = counts.who.bit_count() if counts.needed is None else counts.arrived
        needed = counts.size(warp.cta.everyone)
        return f": {arrived} of {needed} threads have arrived at barrier {group.waits[0]}"
    if group.on is None:
        return ""
    one = machine.object(*group.on)
    if not one.live:
        return ": its mbarrier object is not initialised"
    found = [f"lacks {one.pending} of {one.expected} arrivals"] if one.pending else []
    found += [f"lacks {one.tx} bytes that were announced"] if one.tx > 0 else []
    found += [f"got {-one.tx} bytes that nobody announced"] if one.tx < 0 else []
    return f": phase {one.over} of its mbarrier object {' and '.join(found) or 'has not ended'}"


def stuck(machine: Machine, warp: Warp, group: LaneGroup) -> StuckLanes:
    """Lanes that wait for ever."""
    threads = tuple(warp.threads[lane].number for lane in group.lanes)
    if group.on is None:
        return StuckLanes(threads, group.at)
    one = machine.object(*group.on)
    return StuckLanes(threads, group.at, AwaitedPhase(*group.on, one.over, one.pending, one.tx, one.live))
