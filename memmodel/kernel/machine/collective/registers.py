"""The registers that a warp owns: those that it gives back to the pool of its CTA, and those that it takes.

In: a TakeRegisters step. Out: what the machine does at it. It orders nothing. A launch does not say how many registers
its threads begin with: as many as they can have, unless `.maxnreg` says fewer. Where `.maxnreg` or an earlier
setmaxnreg says how many they own, .dec to more and .inc to fewer are undefined ("setmaxnreg").
"""

from __future__ import annotations

from memmodel.kernel.machine.collective.checks import RULE
from memmodel.kernel.machine.parts import LaneGroup, Lanes, Warp
from memmodel.kernel.machine.rows import LANES
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.trace.launch import RegisterChange
from memmodel.program.warp_ops import TakeRegisters
from memmodel.ptx.module.syntax import PtxInstruction


def take_registers(op: TakeRegisters, instruction: PtxInstruction) -> Blocking:
    """An increase waits until the CTA has as many registers to give."""
    word, side = ("inc", "more") if op.increases else ("dec", "fewer")

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        more = (op.count - warp.limit) * LANES
        if more and (more > 0) is not op.increases and warp.limit_known:
            what = f"setmaxnreg.{word} to {op.count} registers by a warp that owns {side}: {warp.limit}"
            machine.problem(RULE, what, instruction)
        if (more > 0) is not op.increases:
            return True
        if more > warp.cta.spare:
            return False
        warp.cta.spare -= more
        places = tuple((warp.threads[lane].number, len(warp.threads[lane].events)) for lane in lanes)
        change = RegisterChange(instruction.number, warp.threads[lanes[0]].cta, more, warp.cta.spare, places)
        machine.run.register_changes += [change] if more else []
        warp.limit, warp.limit_known = op.count, True
        machine.version += 1
        return True

    return run
