"""Operands of instructions: what they yield in the lanes of a warp, and the registers that they are.

In: operands of a PtxInstruction. Out: `Compiler`, which has what all instructions of an entry share.
"""

from __future__ import annotations

from memmodel.kernel.machine.memory import Symbols
from memmodel.kernel.machine.parts import Warp
from memmodel.kernel.machine.rows import UNKNOWN, Row, Uniform, uniform
from memmodel.kernel.machine.values.lanes import Get
from memmodel.kernel.machine.values.specials import special
from memmodel.kernel.trace.problems import Refused
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Imm, Negated, Operand, Real, Register, Special, Sym
from memmodel.ptx.vocabulary import Space


class Compiler:
    """Turns operands into what they yield. `peeks`: tests that only look ahead; `packed`: as in `text.packing`."""

    def __init__(
        self,
        memory: Symbols,
        peeks: frozenset[int] = frozenset(),
        packed: frozenset[int] = frozenset(),
        registers: int = 0,
    ) -> None:
        self.memory, self.peeks, self.packed = memory, peeks, packed
        self.registers, self._temporaries = registers, dict[str, int]()

    @property
    def slots(self) -> int:
        """How many registers a thread has, temporaries of instructions included."""
        return self.registers + len(self._temporaries)

    def temporary(self, name: str) -> int:
        """The number of a register that only the steps of one instruction use."""
        return self.registers + self._temporaries.setdefault(name, len(self._temporaries))

    def slot_of(self, operand: Operand) -> int | None:
        """The register of a result; None for one that is thrown away."""
        return operand.slot if isinstance(operand, Register) else None

    def get(self, operand: Operand, instruction: PtxInstruction, width: int = 64) -> Get:
        """The values of an operand in all lanes."""
        if isinstance(operand, Register):
            slot = operand.slot
            return lambda warp: warp.registers[slot]
        if isinstance(operand, Negated):
            assert isinstance(operand.operand, Register)
            return self._negated(operand.operand.slot)
        if isinstance(operand, Imm):
            constant = uniform(operand.value & (1 << max(width, 1)) - 1)
            return lambda warp: constant
        if isinstance(operand, Real):
            bits = uniform(operand.bits)
            return lambda warp: bits
        if isinstance(operand, Special):
            return special(operand.name)
        if isinstance(operand, Sym):
            return self.symbol(operand.name, operand.offset, instruction)
        raise Refused(f"this operand of {instruction.opcode} is not known", instruction.span)

    def _negated(self, slot: int) -> Get:
        def get(warp: Warp) -> Row:
            row = warp.registers[slot]
            if type(row) is Uniform:
                return UNKNOWN if row.value is None else uniform(row.value ^ 1)
            return [None if one is None else one ^ 1 for one in row]

        return get

    def symbol(self, name: str, offset: int, instruction: PtxInstruction) -> Get:
        """The address of a variable."""
        found = self.memory.symbols.get(name)
        if found is None:
            raise Refused(f"the address of {name} is not known", instruction.span)
        space, at = found
        at += offset
        if space is Space.SHARED:
            return lambda warp: uniform(warp.cta.base + at)
        constant = uniform(at)
        return lambda warp: constant
