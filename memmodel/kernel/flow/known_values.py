"""Where an instruction leads, with the registers whose value is known.

In: instructions, values of registers. Out: `following`.
"""

from __future__ import annotations

from collections.abc import Mapping

from memmodel.isa.lowered import lowered
from memmodel.kernel.flow.registers import written
from memmodel.program.unknowns import evaluated
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import JumpTarget

Known = tuple[tuple[int, int], ...]


def following(body: tuple[PtxInstruction, ...], state: tuple[int, Known]) -> list[tuple[int, Known]]:
    """Where an instruction leads, with what is known of registers."""
    at, known = state
    instruction, values = body[at], dict(known)
    guard = None if instruction.guard is None else values.get(instruction.guard.slot)
    runs = None if instruction.guard is None or guard is None else bool(guard) != instruction.negated
    if instruction.words[0] == "bra":
        target = instruction.operands[0] if instruction.operands else None
        if not isinstance(target, JumpTarget):
            return []
        ways = [] if runs is False else [(target.at, known)]
        return ways if runs is True or instruction.guard is None else [*ways, (at + 1, known)]
    if runs is not False:
        results = _results(instruction, values) if instruction.guard is None or runs else {}
        for slot in written(instruction):
            values.pop(slot, None)
        values |= results
    return [(at + 1, tuple(sorted(values.items())))]


def _results(instruction: PtxInstruction, values: Mapping[int, int]) -> dict[int, int]:
    """The registers that an instruction leaves with a value that follows from what is known."""
    known = {str(slot): value for slot, value in values.items()}
    results = {slot: evaluated(function, known) for slot, function in lowered(instruction).values.items()}
    return {slot: value for slot, value in results.items() if value is not None}
