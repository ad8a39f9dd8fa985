"""Steps on registers whose bits are looked at one by one.

In: `Code` of an instruction, what it did before. Out: the same with what is known of single bits, in `Warp.bits`.
Settled here: an entry of `Warp.bits` is of a register that is not known as a whole; whoever else writes the register
takes the entry away.
"""

from __future__ import annotations

from memmodel.kernel.arithmetic.alu import width_of
from memmodel.kernel.flow.registers import written
from memmodel.kernel.machine.parts import LaneGroup, Lanes, Warp
from memmodel.kernel.machine.pure import Compiler
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.machine.values.lanes import Step
from memmodel.program.fields import BitsFn, fields, packed
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Vector


def with_bits(compiler: Compiler, instruction: PtxInstruction, step: Step) -> Step:
    """An instruction that only computes: what it says of single bits, where the result is not known."""
    operands, width = instruction.operands, width_of(instruction.words[-1]) or 1
    targets = operands[0].items if isinstance(operands[0], Vector) else operands[:1]
    slots = [compiler.slot_of(one) for one in targets]
    wide = width_of(instruction.words[1]) or width if instruction.words[0] == "cvt" else width
    wide = 1 if instruction.words[0] == "setp" else wide // len(slots)
    fn = _told(instruction, width)
    if fn is None or any(slot is None for slot in slots):
        return cleared(instruction, step)
    source = operands[1] if len(operands) == 2 else None
    inputs = source.items if isinstance(source, Vector) else operands[1:]
    gets = [compiler.get(one, instruction, width) for one in inputs]
    sources = [compiler.slot_of(one) for one in inputs]

    def change(warp: Warp, lanes: Lanes) -> None:
        rows = [list(get(warp)) for get in gets]
        given = [[warp.bits_of(slot, row, lane) for slot, row in zip(sources, rows, strict=True)] for lane in lanes]
        step(warp, lanes)
        for lane, known in zip(lanes, given, strict=True):
            result = fn(*known)
            for number, slot in enumerate(slots):
                assert slot is not None
                warp.learn(slot, lane, result.part(number * wide, wide), wide)

    return change


def _told(instruction: PtxInstruction, width: int) -> BitsFn | None:
    """What an instruction says of single bits; a vector packs its elements or takes them apart."""
    operands = instruction.operands
    if instruction.words[0] == "mov" and len(operands) == 2 and isinstance(operands[1], Vector):
        return lambda *parts: packed(list(parts), width)
    return fields(instruction.words, width)


def cleared(instruction: PtxInstruction, step: Step) -> Step:
    """An instruction of which nothing is known about single bits."""
    slots = written(instruction)

    def change(warp: Warp, lanes: Lanes) -> None:
        warp.clear(slots, lanes)
        step(warp, lanes)

    return change


def cleared_first(instruction: PtxInstruction, step: Blocking) -> Blocking:
    """The same for one that does more than compute; it may find out bits itself."""
    slots = written(instruction)

    def change(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        warp.clear(slots, lanes)
        return step(machine, warp, lanes, group)

    return change
