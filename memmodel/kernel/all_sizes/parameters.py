"""Numbers in the parameters of an entry: where they are loaded, and which of them lead to a register.

In: entry. Out: `ParamPart`, and what a register comes from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from memmodel.isa.lowered import LoweredInstruction, body_of, named_registers
from memmodel.kernel.all_sizes.access_kinds import brings
from memmodel.program.expressions import AddressOf, stripped
from memmodel.program.ops import Read
from memmodel.program.regions import Elements
from memmodel.ptx.module.syntax import PtxFunction
from memmodel.ptx.operands import Mem, Sym, TensorOperand
from memmodel.ptx.vocabulary import Window

PARAMETERS = frozenset((Window.PARAM, Window.FUNCTION_PARAM, Window.ANY_PARAM))
"""The windows of parameters, of the kernel and of functions."""

Body = tuple[LoweredInstruction, ...]


class ParamPart(NamedTuple):
    """A number in the parameters of an entry: the parameter, its first byte, how many bytes."""

    name: str
    offset: int
    size: int

    def meets(self, other: ParamPart) -> bool:
        """True if they have a byte in common."""
        return self.name == other.name and (
            self.offset < other.offset + other.size and other.offset < self.offset + self.size
        )

    def __str__(self) -> str:
        return self.name if not self.offset else f"{self.name} + {self.offset}"


def parts_of(does: LoweredInstruction) -> list[ParamPart]:
    """The numbers that a load takes from a parameter that it names."""
    for op in does.ops:
        if isinstance(op, Read) and isinstance(op.region, Elements) and op.region.window in PARAMETERS:
            place, size = stripped(op.region.address), op.region.size or 1
            if isinstance(place, AddressOf):
                return [ParamPart(place.name, place.offset + size * n, size) for n in range(op.region.count)]
    return []


def address_taken(body: Body, param: ParamPart) -> bool:
    """True if a parameter is named elsewhere than in a load from it."""
    operands = (operand for does in body if not parts_of(does) for operand in does.instruction.operands)
    bases = (operand.base if isinstance(operand, Mem | TensorOperand) else operand for operand in operands)
    return any(isinstance(base, Sym) and base.name == param.name for base in bases)


def widths(body: Body) -> dict[int, int]:
    """The width of each register in bits."""
    operands = (operand for does in body for operand in (*does.instruction.operands, does.instruction.guard) if operand)
    return {register.slot: register.width for operand in operands for register in named_registers(operand)}


def origin(body: Body, slot: int) -> str:
    """The first load, backwards through the text, that a register comes from."""
    for does in _backwards(body, slot):
        if brings(does):
            named = next((part.name for part in parts_of(does)), "")
            parameter = f"the parameter {named}, " if named else ""
            return f"{parameter}{does.instruction.at_line}"
    return "a parameter"


def parameters(entry: PtxFunction, slots: Iterable[int]) -> list[ParamPart]:
    """The numbers in parameters that lead to some registers, the nearest first."""
    body, names = body_of(entry), {parameter.name for parameter in entry.params}
    parts = (part for slot in slots for does in _backwards(body, slot) for part in parts_of(does))
    return list(dict.fromkeys(part for part in parts if part.name in names))


def feeding_loads(entry: PtxFunction, slots: Iterable[int]) -> list[LoweredInstruction]:
    """The loads from memory, not from parameters, that lead to some registers."""
    body = body_of(entry)
    loads = (does for slot in slots for does in _backwards(body, slot) if brings(does) and not parts_of(does))
    return list(dict.fromkeys(loads))


def _backwards(body: Body, slot: int) -> Iterator[LoweredInstruction]:
    """The instructions that may contribute to the value of a register, the nearest first, up to loads."""
    waiting, seen = [slot], {slot}
    while waiting:
        wanted = waiting.pop(0)
        for does in body:
            if wanted not in does.writes:
                continue
            yield does
            if not brings(does):
                new = does.reads - seen
                seen |= new
                waiting += sorted(new)
