"""Steps on registers whose bits are looked at one by one.

In: `Code` of an instruction, what it did before. Out: the same with what is known of single bits, in `Warp.bits`.
Settled here: an entry of `Warp.bits` is of a register that is not known as a whole; any other write of the register
takes the entry away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memmodel.isa.lowered import lowered
from memmodel.kernel.machine.parts import LaneGroup, Lanes, Warp
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.machine.values.lanes import Step
from memmodel.program.expressions import Const, leaves_of
from memmodel.program.fields import known_bits
from memmodel.program.uses import results_of
from memmodel.ptx.module.syntax import PtxInstruction

if TYPE_CHECKING:
    from memmodel.kernel.machine.interpret import Interpreter


def with_bits(interpreter: Interpreter, step: Step) -> Step:
    """An instruction that only computes: what it says of single bits, where the result is not known."""
    results = {int(register): expr for register, expr in results_of(interpreter.ops).items() if register.isdigit()}
    widths = {slot: interpreter.width(slot) for slot in results}
    left = [(slot, widths[slot], known_bits(expr, widths[slot])) for slot, expr in results.items()]
    leaves = {leaf for expr in results.values() for leaf in leaves_of(expr) if not isinstance(leaf, Const)}
    sources = [(leaf, interpreter.value(leaf), interpreter.register(leaf)) for leaf in leaves]
    slots = lowered(interpreter.instruction).writes

    def change(warp: Warp, lanes: Lanes) -> None:
        rows = [(leaf, list(get(warp)), slot) for leaf, get, slot in sources]
        known = [{leaf: warp.bits_of(slot, row, lane) for leaf, row, slot in rows} for lane in lanes]
        warp.clear(slots, lanes)
        step(warp, lanes)
        for lane, bits in zip(lanes, known, strict=True):
            for slot, width, result in left:
                warp.learn(slot, lane, result(bits), width)

    return change


def cleared_first(instruction: PtxInstruction, step: Blocking) -> Blocking:
    """One that does more than compute; it may find out bits itself."""
    slots = lowered(instruction).writes

    def change(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        warp.clear(slots, lanes)
        return step(machine, warp, lanes, group)

    return change
