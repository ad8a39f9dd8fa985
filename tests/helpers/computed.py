"""What instructions that only compute leave in registers, by the steps of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from memmodel.errors import InputError
from memmodel.isa.module import lower_in_module
from memmodel.program.expressions import Expr
from memmodel.program.unknowns import evaluated, in_register
from memmodel.program.uses import results_of
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Blank, Imm, Operand, Register

WIDTHS = (1, 8, 16, 32, 64, 128)
RESULT = 0
"""The register of the result; those of the sources are 1, 2, and so on."""


def computed(opcode: str, *numbers: int, carry: int | None = None) -> int | None:
    """The result of an instruction on numbers in registers; None if PTX leaves it open."""
    return results(opcode, numbers, carry)[str(RESULT)]


def results(opcode: str, numbers: Sequence[int], carry: int | None = None) -> dict[str, int | None]:
    """What an instruction leaves in its register, and in the carry flag. Raises InputError for an illegal one."""
    values, width = expressions(opcode, tuple(numbers))
    known = {str(n): number for n, number in enumerate(numbers, RESULT + 1)}
    known |= {} if carry is None else {"#carry": carry}
    return {
        register: evaluated(in_register(expr, width if register == str(RESULT) else 1), known)
        for register, expr in values.items()
    }


def expressions(opcode: str, numbers: Sequence[int]) -> tuple[dict[str, Expr], int]:
    """What registers hold after an instruction, and the bits of its result."""
    target, sources = _operands(opcode, len(numbers))
    operands = [Imm(number) if source is None else source for source, number in zip(sources, numbers, strict=True)]
    return results_of(_lowered(opcode, [target, *operands])), target.width


def is_legal(opcode: str, count: int) -> bool:
    """True if there is such an instruction with so many sources."""
    try:
        _operands(opcode, count)
    except InputError:
        return False
    return True


@lru_cache(maxsize=4096)
def _operands(opcode: str, count: int) -> tuple[Register, tuple[Register | None, ...]]:
    """Registers of the sizes that an instruction takes; None for a number that has to be written in place."""
    operands: list[Operand] = [Blank(), *(Imm(0) for _ in range(count))]
    chosen: list[Register | None] = []
    for place in range(count + 1):
        tries = _registers(place)
        legal = [one for one in tries if _legal(opcode, [*operands[:place], one, *operands[place + 1 :]])]
        chosen.append(legal[0] if legal else None)
        operands[place] = operands[place] if not legal else legal[0]
    target, *sources = chosen
    if target is None:
        _lowered(opcode, [_registers(RESULT)[-1], *operands[1:]])  # the error says why
    assert target is not None
    return target, tuple(sources)


def _registers(slot: int) -> list[Register]:
    return [Register(f"r{slot}", slot=slot, kind="pred" if width == 1 else "b", width=width) for width in WIDTHS]


def _legal(opcode: str, operands: Sequence[Operand]) -> bool:
    try:
        _lowered(opcode, operands)
    except InputError:
        return False
    return True


def _lowered(opcode: str, operands: Sequence[Operand]) -> tuple[object, ...]:
    instruction = PtxInstruction(0, tuple(opcode.split(".")), tuple(operands), None)  # type: ignore[arg-type]
    return lower_in_module(instruction)
