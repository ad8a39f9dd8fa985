"""Which numbers in the parameters of an entry are addresses.

In: entry. Out: the parts of parameters that are pointers, by the text alone: what is said to be one, what the kernel
converts from a generic address, and what an address is the sum of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from memmodel.isa.lowered import LoweredInstruction, body_of, named_registers, widths
from memmodel.kernel.all_sizes.operand_roles import OperandRole, uses_of
from memmodel.kernel.all_sizes.parameters import ParamPart, parts_of
from memmodel.program.expressions import WITHIN, Apply, Expr, Get, stripped
from memmodel.program.ops import Assign, UndefinedIf
from memmodel.ptx.module.syntax import PtxFunction
from memmodel.ptx.operands import Sym, TensorOperand

ADDRESSES = (OperandRole.PLACE, OperandRole.SOURCE, OperandRole.ADDRESS)
POINTER_BYTES = 8
TERMS = {"plus": "add", "minus": "sub"}


@dataclass(slots=True)
class _Carried:
    """By register, the numbers of parameters that it is, or is a sum of."""

    parts: dict[int, set[ParamPart]] = field(default_factory=dict)
    changed: bool = False

    def add(self, slot: int, parts: set[ParamPart]) -> None:
        known = self.parts.setdefault(slot, set())
        self.changed |= not parts <= known
        known |= parts


def pointers(entry: PtxFunction) -> frozenset[ParamPart]:
    """The parts of parameters that hold addresses of global memory."""
    body = body_of(entry)
    wide = {param.name: param for param in entry.params}
    declared = {ParamPart(param.name, 0, POINTER_BYTES) for param in entry.params if param.pointer}
    carried, converted = _Carried(), set[ParamPart]()
    while True:
        carried.changed = False
        for does in body:
            _follow(does, carried, converted)
        if not carried.changed:
            break
    pointer_parts = {part for part in declared | converted if part.name in wide}
    addresses = (slot for does in body for use in uses_of(does) if use.role in ADDRESSES for slot in use.slots)
    for slot in addresses:
        summed = {part for part in carried.parts.get(slot, ()) if part.name in wide}
        if not summed & pointer_parts:  # of a sum, the number that comes first is the address
            pointer_parts |= set(sorted(summed, key=lambda part: (_place(entry, part), part.offset))[:1])
    return frozenset(pointer_parts)


def tensor_map_params(entry: PtxFunction) -> list[str]:
    """The parameters that are tensor maps: their own address is that of a map."""
    body, names = body_of(entry), {param.name for param in entry.params if param.size == 128}
    holding: dict[int, set[str]] = {}
    changed = True
    while changed:
        changed = False
        for does in body:
            named = {operand.name for operand in does.instruction.operands if isinstance(operand, Sym)} & names
            for slot in does.sources:
                named |= holding.get(slot, set())
            if does.computes and named:
                for slot in does.writes:
                    changed |= not named <= holding.setdefault(slot, set())
                    holding[slot] |= named
    used: dict[str, None] = {}
    for does in body:
        for operand in does.instruction.operands:
            if isinstance(operand, TensorOperand):
                base = operand.base
                if isinstance(base, Sym) and base.name in names:
                    used[base.name] = None
                for register in named_registers(operand):
                    used |= dict.fromkeys(sorted(holding.get(register.slot, ())))
    return [param.name for param in entry.params if param.name in used]


def _place(entry: PtxFunction, part: ParamPart) -> int:
    return [param.name for param in entry.params].index(part.name)


def _follow(does: LoweredInstruction, carried: _Carried, converted: set[ParamPart]) -> None:
    """What the registers that an instruction writes carry."""
    loaded = parts_of(does)
    if loaded:
        for slot, part in zip(does.writes, loaded, strict=False):
            if part.size == POINTER_BYTES:
                carried.add(slot, {part})
        return
    bits = widths(does.instruction)
    checked = any(isinstance(op, UndefinedIf) for op in does.ops)
    for op in does.ops:
        if isinstance(op, Assign) and op.register.isdigit() and bits.get(int(op.register)) == 64:
            parts = {part for slot in _terms(op.value) for part in carried.parts.get(slot, ())}
            if parts:
                carried.add(int(op.register), parts)
                converted |= parts if checked and len(parts) == 1 else set()


def _terms(expr: Expr) -> Iterator[int]:
    """The registers that an expression is a sum of."""
    expr = stripped(expr)
    if isinstance(expr, Get):
        if expr.register.isdigit():
            yield int(expr.register)
    elif isinstance(expr, Apply) and (expr.op in TERMS.values() or expr.op.startswith(WITHIN)):
        for arg in expr.args if expr.op != TERMS["minus"] else expr.args[:1]:
            yield from _terms(arg)
