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
    one, values = body[at], dict(known)
    guard = None if one.guard is None else values.get(one.guard.slot)
    runs = None if one.guard is None or guard is None else bool(guard) != one.negated
    if one.words[0] == "bra":
        target = one.operands[0] if one.operands else None
        if not isinstance(target, JumpTarget):
            return []
        found = [] if runs is False else [(target.at, known)]
        return found if runs is True or one.guard is None else [*found, (at + 1, known)]
    if runs is not False:
        value = _value(one, values) if one.guard is None or runs else None
        for slot in written(one):
            values.pop(slot, None)
            if value is not None:
                values[slot] = value
    return [(at + 1, tuple(sorted(values.items())))]


def _value(one: PtxInstruction, values: Mapping[int, int]) -> int | None:
    """The result of an instruction, if what is known says it."""
    if not one.operands or not isinstance(one.operands[0], Register):
        return None
    given = [_known(operand, values) for operand in one.operands[1:]]
    if one.words[0] == "selp" and len(given) == 3 and given[2] is not None:
        return _narrowed(given[0] if given[2] else given[1], one)
    if one.words[0] == "mov" and len(given) == 1:
        return _narrowed(given[0], one)
    if one.words[0] == "setp":
        return _compared(one, given)
    if one.words[-1] == "pred":
        return _joined(one.words[0], given)
    fn = function(one.words)
    try:
        return None if fn is None or None in given else fn(*given)
    except TypeError:  # too few operands, or too many: no assembler takes that
        return None


def _compared(one: PtxInstruction, given: list[int | None]) -> int | None:
    """setp, alone or joined with another predicate."""
    fn = comparison(one.words)
    if fn is None or len(given) not in (2, 3):
        return None
    result = None if given[0] is None or given[1] is None else fn(given[0], given[1])
    logic = next((word for word in one.words[2:-1] if word in ("and", "or", "xor")), None)
    if logic is None:
        return result if len(given) == 2 else None
    return _joined(logic, [result, given[2]]) if len(given) == 3 else None


def _joined(logic: str, given: list[int | None]) -> int | None:
    """An operation on predicates, of which one may decide it alone."""
    if logic in ("and", "or") and int(logic == "or") in given:
        return int(logic == "or")
    known = [value for value in given if value is not None]
    fits = logic in ("and", "or", "xor", "not") and len(given) == (1 if logic == "not" else 2)
    return predicate(logic)(*known) if fits and len(known) == len(given) else None


def _narrowed(value: int | None, one: PtxInstruction) -> int | None:
    width = width_of(one.words[-1])
    return value if value is None or width is None else value & (1 << width) - 1


def _known(operand: Operand, values: Mapping[int, int]) -> int | None:
    if isinstance(operand, Imm):
        return operand.value & (1 << 64) - 1
    if isinstance(operand, Negated):
        value = values.get(operand.operand.slot) if isinstance(operand.operand, Register) else None
        return None if value is None else value ^ 1
    return values.get(operand.slot) if isinstance(operand, Register) else None
