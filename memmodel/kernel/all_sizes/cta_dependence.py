"""How registers and memory depend on the number of the CTA, for every grid: from the text alone.

In: module, entry, launch, the dimension in which the grid grows. Out: `CtaDependence` by register. A number may be the
same in all CTAs, be linear in the number of the CTA with a constant step (which may differ between threads), or depend
on it, or on the size of the grid, in another way.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from memmodel.isa.lowered import registers
from memmodel.kernel.flow.registers import read_slots, written
from memmodel.kernel.launch import Launch
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction, PtxModule
from memmodel.ptx.operands import Arguments, Mem, Operand, Register, Special, Sym, TensorOperand

NUMBERED = ("%ctaid", "%clusterid")
SIZED = ("%nctaid", "%nclusterid", "%gridid")
SPACES = ("global", "shared", "local", "const", "param")
STEPS = ("mov", "cvt", "cvta", "add", "sub", "mul", "mad", "shl", "neg")
"""First words of instructions that keep a constant step, if they work on integers of 32 bits or more."""
WHOLE = frozenset(f"{kind}{width}" for kind in "usb" for width in (32, 64))
ROUNDED = ("hi", "sat", "rn", "rz", "rm", "rp")
READS = ("ld", "ldu", "ldmatrix", "atom", "tex", "tld4", "suld", "mma", "wgmma", "tcgen05", "multimem")
"""First words of instructions whose result may come out of memory."""
STORES = ("st", "red", "atom", "stmatrix", "cp", "tcgen05", "multimem", "tensormap", "sust", "sured")
"""First words of instructions that may store their operands, or what was elsewhere in memory."""


class CtaDependence(IntEnum):
    """How a number depends on the number of the CTA: not at all, linearly, in another way."""

    NONE = 0
    STEP = 1
    OTHER = 2


class CtaDependences:
    """The dependence of every register of an entry, and of what each state space holds."""

    def __init__(self, module: PtxModule, entry: PtxFunction, launch: Launch, axis: str) -> None:
        self._body = entry.body or ()
        self._params = {item.name for item in entry.params}
        self._axis = axis
        contents = any(item.init or item.hex or item.file for item in launch.all_buffers)
        self._tables = contents or any(item.initial for item in (*module.variables.values(), *entry.variables))
        self.registers: dict[int, CtaDependence] = {}
        self.memory = dict.fromkeys(SPACES, CtaDependence.NONE)
        self._settle()

    def of(self, operands: Iterable[Operand]) -> CtaDependence:
        """The greatest dependence of some operands."""
        dependences = [self._operand(operand) for operand in operands]
        return max(dependences, default=CtaDependence.NONE)

    def slots(self, slots: Iterable[int]) -> CtaDependence:
        """The greatest dependence of some registers."""
        return max((self.registers.get(slot, CtaDependence.NONE) for slot in slots), default=CtaDependence.NONE)

    def _operand(self, operand: Operand) -> CtaDependence:
        if isinstance(operand, Special):
            axis = operand.name.rsplit(".", 1)[-1]
            if axis in ("y", "z", "x") and axis != self._axis:
                return CtaDependence.NONE  # the grid grows along one axis
            return (
                CtaDependence.STEP
                if operand.name.startswith(NUMBERED)
                else CtaDependence(2 * operand.name.startswith(SIZED))
            )
        return self.slots(registers(operand))

    def _settle(self) -> None:
        """Dependences only grow, so that this ends."""
        changed = True
        while changed:
            before = dict(self.registers), dict(self.memory)
            for instruction in self._body:
                dependence = self._given(instruction)
                for slot in written(instruction):
                    self.registers[slot] = max(
                        self.registers.get(slot, CtaDependence.NONE), self._result(instruction, dependence)
                    )
                if instruction.words[0] == "call":
                    for slot in [slot for operand in instruction.operands[:1] for slot in _passed(operand)]:
                        self.registers[slot] = CtaDependence.OTHER
                if instruction.words[0] in STORES:
                    self._store(instruction, dependence)
            changed = before != (self.registers, self.memory)

    def _given(self, instruction: PtxInstruction) -> CtaDependence:
        """The greatest dependence of what an instruction reads."""
        specials = (operand for operand in instruction.operands[1:] if isinstance(operand, Special))
        return max(self.slots(read_slots(instruction)), self.of(specials))

    def _result(self, instruction: PtxInstruction, dependence: CtaDependence) -> CtaDependence:
        if instruction.words[0] == "ld":
            return self._loaded(instruction, dependence)
        if instruction.words[0] in READS:
            dependence = max(dependence, *self.memory.values())
        if dependence is CtaDependence.STEP and not self._keeps_step(instruction):
            return CtaDependence.OTHER
        return dependence

    def _keeps_step(self, instruction: PtxInstruction) -> bool:
        types = [word for word in instruction.words[1:] if word[0] in "usbfet" and word[-1].isdigit()]
        whole = (
            bool(types)
            and all(word in WHOLE for word in types)
            and not any(word in ROUNDED for word in instruction.words)
        )
        if instruction.words[0] not in STEPS or not whole or not isinstance(instruction.operands[0], Register):
            return False
        dependences = [self._operand(operand) for operand in instruction.operands[1:]]
        if instruction.words[0] in ("mul", "mad"):
            return CtaDependence.NONE in dependences[:2]
        return instruction.words[0] != "shl" or dependences[1] is CtaDependence.NONE

    def _loaded(self, instruction: PtxInstruction, dependence: CtaDependence) -> CtaDependence:
        place = instruction.operands[1] if len(instruction.operands) > 1 else None
        base = place.base if isinstance(place, Mem | TensorOperand) else None
        if "param" in instruction.words and isinstance(base, Sym) and base.name in self._params:
            return CtaDependence.NONE
        spaces = _spaces(instruction)
        if dependence is not CtaDependence.NONE and (self._tables or spaces != ("global",)):
            return CtaDependence.OTHER  # another CTA reads another element
        return (
            CtaDependence.OTHER
            if any(self.memory[space] is not CtaDependence.NONE for space in spaces)
            else CtaDependence.NONE
        )

    def _store(self, instruction: PtxInstruction, dependence: CtaDependence) -> None:
        """Add what an instruction stores, and what its copies bring, to the state spaces."""
        spaces = _spaces(instruction)
        values = [operand for operand in instruction.operands[1:] if not isinstance(operand, Mem | TensorOperand)]
        stored, place = self.of(values), self.of(instruction.operands[: 1 + (instruction.words[0] == "atom")])
        if instruction.words[0] not in ("st", "red", "atom", "stmatrix", "sust", "sured"):
            sources = self.of(
                operand for operand in instruction.operands[1:] if isinstance(operand, Mem | TensorOperand)
            )
            if sources is not CtaDependence.NONE and (self._tables or "global" not in spaces):
                stored = CtaDependence.OTHER
            stored, spaces = max(stored, *self.memory.values()), spaces[:1] if instruction.words[0] == "cp" else spaces
        if place is not CtaDependence.NONE and spaces != ("global",):
            stored = CtaDependence.OTHER
        for space in spaces:
            self.memory[space] = max(self.memory[space], stored)


def _spaces(instruction: PtxInstruction) -> tuple[str, ...]:
    """The state spaces that an instruction names, the destination's first; all but parameters if it names none."""
    named = [word.split("::")[0] for word in instruction.words]
    return tuple(dict.fromkeys(word for word in named if word in SPACES)) or SPACES[:-1]


def _passed(operand: Operand) -> list[int]:
    return [slot for item in operand.items for slot in registers(item)] if isinstance(operand, Arguments) else []
