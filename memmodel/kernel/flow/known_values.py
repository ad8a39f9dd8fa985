"""Where an instruction leads, with the registers whose value is known.

In: instructions, values of registers. Out: `following`.
"""

from __future__ import annotations

from collections.abc import Mapping

from memmodel.kernel.arithmetic.alu import comparison, function, predicate, width_of
from memmodel.kernel.flow.registers import written
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import (
    Imm,
    JumpTarget,
    Negated,
    Operand,
    Register,
)

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
        value = _value(instruction, values) if instruction.guard is None or runs else None
        for slot in written(instruction):
            values.pop(slot, None)
            if value is not None:
                values[slot] = value
    return [(at + 1, tuple(sorted(values.items())))]


def _value(instruction: PtxInstruction, values: Mapping[int, int]) -> int | None:
    """The result of an instruction, if what is known says it."""
    if not instruction.operands or not isinstance(instruction.operands[0], Register):
        return None
    sources = [_known(operand, values) for operand in instruction.operands[1:]]
    if instruction.words[0] == "selp" and len(sources) == 3 and sources[2] is not None:
        return _narrowed(sources[0] if sources[2] else sources[1], instruction)
    if instruction.words[0] == "mov" and len(sources) == 1:
        return _narrowed(sources[0], instruction)
    if instruction.words[0] == "setp":
        return _compared(instruction, sources)
    if instruction.words[-1] == "pred":
        return _joined(instruction.words[0], sources)
    fn = function(instruction.words)
    try:
        return None if fn is None or None in sources else fn(*sources)
    except TypeError:  # too few operands, or too many: no assembler takes that
        return None


def _compared(instruction: PtxInstruction, sources: list[int | None]) -> int | None:
    """setp, alone or joined with another predicate."""
    fn = comparison(instruction.words)
    if fn is None or len(sources) not in (2, 3):
        return None
    result = None if sources[0] is None or sources[1] is None else fn(sources[0], sources[1])
    logic = next((word for word in instruction.words[2:-1] if word in ("and", "or", "xor")), None)
    if logic is None:
        return result if len(sources) == 2 else None
    return _joined(logic, [result, sources[2]]) if len(sources) == 3 else None


def _joined(logic: str, sources: list[int | None]) -> int | None:
    """An operation on predicates, of which one may decide it alone."""
    if logic in ("and", "or") and int(logic == "or") in sources:
        return int(logic == "or")
    known = [value for value in sources if value is not None]
    fits = logic in ("and", "or", "xor", "not") and len(sources) == (1 if logic == "not" else 2)
    return predicate(logic)(*known) if fits and len(known) == len(sources) else None


def _narrowed(value: int | None, instruction: PtxInstruction) -> int | None:
    width = width_of(instruction.words[-1])
    return value if value is None or width is None else value & (1 << width) - 1


def _known(operand: Operand, values: Mapping[int, int]) -> int | None:
    if isinstance(operand, Imm):
        return operand.value & (1 << 64) - 1
    if isinstance(operand, Negated):
        value = values.get(operand.operand.slot) if isinstance(operand.operand, Register) else None
        return None if value is None else value ^ 1
    return values.get(operand.slot) if isinstance(operand, Register) else None
