"""Textures and surfaces: fetches whose result is unknown.

In: an Instruction. Out: a step. A launch does not say what a texture or a surface is made of, and the memory
consistency model "does not apply to texture and surface accesses". A fetch is taken to read memory that nothing writes,
and the verdict says so; where a surface is written, the answer is left open.
"""

from __future__ import annotations

from memmodel.kernel.flow.registers import written
from memmodel.kernel.machine.parts import LaneGroup, Lanes, Warp
from memmodel.kernel.machine.pure import Compiler, forgetting
from memmodel.kernel.machine.state import Machine
from memmodel.kernel.machine.warpops import Blocking
from memmodel.ptx.module.syntax import PtxInstruction

FETCHES, QUERIES, UPDATES = ("tex", "tld4", "suld"), ("txq", "suq", "istypep"), ("sust", "sured")


def texture_step(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    """The step of an instruction of this family."""
    head = instruction.words[0]
    if head not in (*FETCHES, *QUERIES, *UPDATES):
        return None
    forget = forgetting([] if head in UPDATES else written(instruction))
    what = "surface" if head == "suld" else "texture"
    note = f"line {instruction.line}: the {what} was taken to be memory that this launch does not write"
    why = f"line {instruction.line}: {instruction.opcode}: the memory model does not apply to writes of surfaces"

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        forget(warp, lanes)
        if head in FETCHES:
            machine.run.assumed.setdefault(note)
        if head in UPDATES:
            machine.version += 1
            machine.run.unchecked.setdefault(why)
        return True

    return step
