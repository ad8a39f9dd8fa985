"""What registers and memory hold of the number of the CTA, for every grid: from the text alone.

In: module, entry, launch, the dimension in which the grid grows. Out: `Share` by register. A number may be the same in
all CTAs, go with the number of the CTA by a constant step (which may differ between threads), or depend on it or on the
size of the grid, in another way.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from memmodel.kernel.flow.origin import read_slots
from memmodel.kernel.flow.registers import registers, written
from memmodel.kernel.launch import Launch
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction, PtxModule
from memmodel.ptx.operands import Arguments, Mem, Operand, Register, Special, Sym, TensorOperand

NUMBERED = ("%ctaid", "%clusterid")
SIZED = ("%nctaid", "%nclusterid", "%gridid")
SPACES = ("global", "shared", "local", "const", "param")
STEPS = ("mov", "cvt", "cvta", "add", "sub", "mul", "mad", "shl", "neg")
"""First words of instructions that keep a constant step, if they work on whole numbers of 32 bits or more."""
WHOLE = frozenset(f"{kind}{width}" for kind in "usb" for width in (32, 64))
ROUNDED = ("hi", "sat", "rn", "rz", "rm", "rp")
READS = ("ld", "ldu", "ldmatrix", "atom", "tex", "tld4", "suld", "mma", "wgmma", "tcgen05", "multimem")
"""First words of instructions whose result may come out of memory."""
STORES = ("st", "red", "atom", "stmatrix", "cp", "tcgen05", "multimem", "tensormap", "sust", "sured")
"""First words of instructions that may leave in memory what they are given, or what was elsewhere in memory."""


class Share(IntEnum):
    """How a number depends on the number of the CTA."""

    NONE = 0
    STEP = 1
    OTHER = 2


class Shares:
    """The share of every register of an entry, and of what each state space holds."""

    def __init__(self, module: PtxModule, entry: PtxFunction, launch: Launch, axis: str) -> None:
        self._body = entry.body or ()
        self._params = {one.name for one in entry.params}
        self._axis = axis
        contents = any(one.init or one.hex or one.file for one in launch.all_buffers)
        self._tables = contents or any(one.initial for one in (*module.variables.values(), *entry.variables))
        self.registers: dict[int, Share] = {}
        self.memory = dict.fromkeys(SPACES, Share.NONE)
        self._settle()

    def of(self, operands: Iterable[Operand]) -> Share:
        """The greatest share of some operands."""
        found = [self._operand(one) for one in operands]
        return max(found, default=Share.NONE)

    def slots(self, slots: Iterable[int]) -> Share:
        """The greatest share of some registers."""
        return max((self.registers.get(slot, Share.NONE) for slot in slots), default=Share.NONE)

    def _operand(self, one: Operand) -> Share:
        if isinstance(one, Special):
            axis = one.name.rsplit(".", 1)[-1]
            if axis in ("y", "z", "x") and axis != self._axis:
                return Share.NONE  # the grid grows along one axis
            return Share.STEP if one.name.startswith(NUMBERED) else Share(2 * one.name.startswith(SIZED))
        return self.slots(registers(one))

    def _settle(self) -> None:
        """Shares only grow, so that this ends."""
        changed = True
        while changed:
            before = dict(self.registers), dict(self.memory)
            for one in self._body:
                given = self._given(one)
                for slot in written(one):
                    self.registers[slot] = max(self.registers.get(slot, Share.NONE), self._result(one, given))
                if one.words[0] == "call":
                    for slot in [slot for operand in one.operands[:1] for slot in _passed(operand)]:
                        self.registers[slot] = Share.OTHER
                if one.words[0] in STORES:
                    self._store(one, given)
            changed = before != (self.registers, self.memory)

    def _given(self, one: PtxInstruction) -> Share:
        """The greatest share of what an instruction reads."""
        specials = (operand for operand in one.operands[1:] if isinstance(operand, Special))
        return max(self.slots(read_slots(one)), self.of(specials))

    def _result(self, one: PtxInstruction, given: Share) -> Share:
        if one.words[0] == "ld":
            return self._loaded(one, given)
        if one.words[0] in READS:
            given = max(given, *self.memory.values())
        if given is Share.STEP and not self._keeps_step(one):
            return Share.OTHER
        return given

    def _keeps_step(self, one: PtxInstruction) -> bool:
        types = [word for word in one.words[1:] if word[0] in "usbfet" and word[-1].isdigit()]
        whole = bool(types) and all(word in WHOLE for word in types) and not any(word in ROUNDED for word in one.words)
        if one.words[0] not in STEPS or not whole or not isinstance(one.operands[0], Register):
            return False
        shares = [self._operand(operand) for operand in one.operands[1:]]
        if one.words[0] in ("mul", "mad"):
            return Share.NONE in shares[:2]
        return one.words[0] != "shl" or shares[1] is Share.NONE

    def _loaded(self, one: PtxInstruction, given: Share) -> Share:
        place = one.operands[1] if len(one.operands) > 1 else None
        base = place.base if isinstance(place, Mem | TensorOperand) else None
        if "param" in one.words and isinstance(base, Sym) and base.name in self._params:
            return Share.NONE
        spaces = _spaces(one)
        if given is not Share.NONE and (self._tables or spaces != ("global",)):
            return Share.OTHER  # another CTA reads another element
        return Share.OTHER if any(self.memory[space] is not Share.NONE for space in spaces) else Share.NONE

    def _store(self, one: PtxInstruction, given: Share) -> None:
        """What is stored, where it goes, and what copies bring along."""
        spaces = _spaces(one)
        values = [operand for operand in one.operands[1:] if not isinstance(operand, Mem | TensorOperand)]
        stored, place = self.of(values), self.of(one.operands[: 1 + (one.words[0] == "atom")])
        if one.words[0] not in ("st", "red", "atom", "stmatrix", "sust", "sured"):
            sources = self.of(operand for operand in one.operands[1:] if isinstance(operand, Mem | TensorOperand))
            if sources is not Share.NONE and (self._tables or "global" not in spaces):
                stored = Share.OTHER
            stored, spaces = max(stored, *self.memory.values()), spaces[:1] if one.words[0] == "cp" else spaces
        if place is not Share.NONE and spaces != ("global",):
            stored = Share.OTHER
        for space in spaces:
            self.memory[space] = max(self.memory[space], stored)


def _spaces(one: PtxInstruction) -> tuple[str, ...]:
    """The state spaces that an instruction names, that of the destination first. None: all but that of parameters."""
    named = [word.split("::")[0] for word in one.words]
    return tuple(dict.fromkeys(word for word in named if word in SPACES)) or SPACES[:-1]


def _passed(operand: Operand) -> list[int]:
    return [slot for item in operand.items for slot in registers(item)] if isinstance(operand, Arguments) else []
