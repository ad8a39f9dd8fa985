"""Textures: fetches whose result is unknown.

In: an Instruction. Out: a step. A launch does not say what a texture is made of. A fetch is taken to read memory that
nothing writes, and the verdict says so.
"""

from __future__ import annotations

from memmodel.kernel.machine.parts import LaneGroup, Lanes, Warp
from memmodel.kernel.machine.pure import Compiler, forgetting
from memmodel.kernel.machine.state import Machine
from memmodel.kernel.machine.warpops import Blocking
from memmodel.kernel.text.polling import written
from memmodel.kernel.text.syntax import PtxInstruction

FETCHES, QUERIES = ("tex", "tld4"), ("txq", "suq")


def texture_step(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    """The step of an instruction of this family."""
    head = instruction.words[0]
    if head not in (*FETCHES, *QUERIES):
        return None
    forget = forgetting(written(instruction))
    note = f"line {instruction.line}: the texture was taken to be memory that this launch does not write"

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        forget(warp, lanes)
        if head in FETCHES:
            machine.run.assumed.setdefault(note)
        return True

    return step
