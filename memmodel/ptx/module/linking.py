"""An entry with the functions that it calls, as one list of instructions.

In: PtxModule, PtxFunction. Out: PtxFunction whose body has the bodies of these functions behind its own. Their
registers, labels and variables have numbers and names of their own, so that a call is a jump with a way back.
"""

from __future__ import annotations

from dataclasses import replace

from memmodel.ptx.module.syntax import Callee, ModuleVariable, PtxFunction, PtxInstruction, PtxModule
from memmodel.ptx.operands import (
    Arguments,
    Imm,
    JumpTable,
    JumpTarget,
    Mem,
    Negated,
    Operand,
    Pair,
    Part,
    Reg,
    Register,
    Sym,
    TensorOperand,
    Vector,
)


def linked(module: PtxModule, entry: PtxFunction) -> PtxFunction:
    """The entry with all that it calls, directly or not."""
    needed = _called(module, entry)
    if not needed or entry.body is None:
        return entry
    body, variables = list(entry.body), list(entry.variables)
    callees = dict(entry.callees)
    registers = entry.registers
    for function in needed:
        moved = _Moved(function, len(body), registers)
        params, results, own = (
            tuple(moved.variable(one) for one in listed)
            for listed in (function.params, function.results, function.variables)
        )
        callees[function.name] = Callee(
            len(body),
            len(body) + len(function.body or ()),
            params,
            results,
            (registers, function.registers),
            (*own, *params, *results),
        )
        variables += callees[function.name].variables
        body += [moved.instruction(one) for one in function.body or ()]
        registers += function.registers
    return replace(entry, body=tuple(body), variables=tuple(variables), registers=registers, callees=callees)


def _called(module: PtxModule, entry: PtxFunction) -> list[PtxFunction]:
    """The functions with a body that are called or whose address is taken, in the order in which they are named."""
    found: dict[str, PtxFunction] = {}
    seen: set[str] = set()
    waiting = _named(entry)
    while waiting:
        name = waiting.pop(0)
        target, variable = module.functions.get(name), module.variables.get(name)
        if name in seen:
            continue
        seen.add(name)
        if variable is not None and variable.initial is not None:
            waiting += [one.name for one in variable.initial.addresses]
        if target is not None and target.body is not None and not target.entry:
            found[name] = target
            waiting += _named(target)
    return list(found.values())


def _named(function: PtxFunction) -> list[str]:
    """The symbols that a function names."""
    operands = [operand for one in function.body or () for operand in one.operands]
    inner = [operand.base for operand in operands if isinstance(operand, Mem | TensorOperand)]
    return [one.name for one in (*operands, *inner) if isinstance(one, Sym)]


class _Moved:
    """A function whose instructions and registers begin at other numbers."""

    def __init__(self, function: PtxFunction, start: int, registers: int) -> None:
        self._function = function.name
        self._start = start
        self._registers = registers
        self._own = {one.name for one in (*function.variables, *function.params, *function.results)}

    def name(self, name: str) -> str:
        return f"{self._function}::{name}"

    def variable(self, one: ModuleVariable) -> ModuleVariable:
        return replace(one, name=self.name(one.name))

    def instruction(self, one: PtxInstruction) -> PtxInstruction:
        return replace(
            one,
            number=one.number + self._start,
            operands=tuple(self._operand(operand) for operand in one.operands),
            guard=None if one.guard is None else self._register(one.guard),
        )

    def _register(self, one: Reg) -> Register:
        assert isinstance(one, Register)
        return replace(one, slot=one.slot + self._registers)

    def _operand(self, one: Operand) -> Operand:
        match one:
            case Register():
                return self._register(one)
            case Negated(register):
                return Negated(self._register(register))
            case Part(register, selector):
                return Part(self._register(register), selector)
            case Sym(name):
                return replace(one, name=self.name(name)) if name in self._own else one
            case JumpTarget(name, at):
                return JumpTarget(self.name(name), at) if at < 0 else JumpTarget(name, at + self._start)
            case JumpTable(name, targets):
                return JumpTable(self.name(name), tuple(at + self._start for at in targets))
            case Vector(items):
                return Vector(tuple(self._operand(item) for item in items))
            case Arguments(items):
                return Arguments(tuple(self._operand(item) for item in items))
            case Pair(first, second):
                return Pair(self._operand(first), self._operand(second))
            case Mem(base):
                return replace(one, base=self._base(base))
            case TensorOperand(base, rest):
                return replace(one, base=self._base(base), rest=tuple(self._operand(item) for item in rest))
            case _:
                return one

    def _base(self, base: Reg | Sym | Imm) -> Reg | Sym | Imm:
        moved = self._operand(base)
        assert isinstance(moved, Reg | Sym | Imm)
        return moved
