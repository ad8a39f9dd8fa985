"""Textures and surfaces: fetches whose result is unknown.

In: the step AccessTexture. Out: what the machine does at it. A launch does not say what a texture or a surface is made
of, and the memory consistency model "does not apply to texture and surface accesses". A fetch is taken to read memory
that nothing writes, and the verdict says so; where a surface is written, the answer is left open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memmodel.base.labels import Side
from memmodel.kernel.machine.parts import LaneGroup, Lanes, Warp
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.machine.values.lanes import forgetting
from memmodel.program.warp_ops import AccessTexture

if TYPE_CHECKING:
    from memmodel.kernel.machine.interpret import Interpreter


def access_texture(interpreter: Interpreter, op: AccessTexture) -> Blocking:
    """A fetch, or a write of a surface."""
    forget = forgetting([interpreter.slot(register) for register in op.registers])
    instruction, writes = interpreter.instruction, op.label.side is Side.WRITE
    what = op.label.proxy.value
    taken = f"line {instruction.line}: this launch does not write the memory of the {what}"
    why = f"line {instruction.line}: {instruction.opcode}: the memory model does not apply to writes of surfaces"

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        forget(warp, lanes)
        if writes:
            machine.version += 1
            machine.run.unchecked.setdefault(why)
        else:
            machine.run.assumed.setdefault(taken, "loads from global memory in its place")
        return True

    return step
