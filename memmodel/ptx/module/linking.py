"""An entry with the functions that it calls, as one list of instructions.

In: PtxModule, PtxFunction. Out: PtxFunction whose body has the bodies of these functions after its own. Their
registers, labels and variables have numbers and names of their own, so that a call is a jump with a way back.
"""

from __future__ import annotations

from collections.abc import Iterable
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
        start, moved = len(body), _Moved(function, len(body), registers)
        body += [moved.instruction(instruction) for instruction in function.body or ()]
        params, results = moved.variables(function.params), moved.variables(function.results)
        local = (*moved.variables(function.variables), *params, *results)
        own, returns = (registers, function.registers), "noreturn" not in function.directives
        callees[function.name] = Callee(start, len(body), params, results, own, local, returns)
        variables += local
        registers += function.registers
    return replace(entry, body=tuple(body), variables=tuple(variables), registers=registers, callees=callees)


def _called(module: PtxModule, entry: PtxFunction) -> list[PtxFunction]:
    """The functions with a body that are called or whose address is taken, in the order in which they are named."""
    called: dict[str, PtxFunction] = {}
    seen: set[str] = set()
    waiting = _named(entry)
    while waiting:
        name = waiting.pop(0)
        function, variable = module.functions.get(name), module.variables.get(name)
        if name in seen:
            continue
        seen.add(name)
        if variable is not None and variable.initial is not None:
            waiting += [address.name for address in variable.initial.addresses]
        if function is not None and function.body is not None and not function.entry:
            called[name] = function
            waiting += _named(function)
    return list(called.values())


def _named(function: PtxFunction) -> list[str]:
    """The symbols that a function names."""
    operands = [operand for instruction in function.body or () for operand in instruction.operands]
    bases = [operand.base for operand in operands if isinstance(operand, Mem | TensorOperand)]
    return [symbol.name for symbol in (*operands, *bases) if isinstance(symbol, Sym)]


class _Moved:
    """A function whose instructions and registers begin at other numbers."""

    def __init__(self, function: PtxFunction, start: int, registers: int) -> None:
        self._function = function.name
        self._start = start
        self._registers = registers
        self._own = {variable.name for variable in (*function.variables, *function.params, *function.results)}

    def name(self, name: str) -> str:
        """What a label or variable of the function is called in the entry."""
        return f"{self._function}::{name}"

    def variables(self, variables: Iterable[ModuleVariable]) -> tuple[ModuleVariable, ...]:
        """Variables under their new names."""
        return tuple(replace(variable, name=self.name(variable.name)) for variable in variables)

    def instruction(self, instruction: PtxInstruction) -> PtxInstruction:
        """An instruction at its new place."""
        return replace(
            instruction,
            number=instruction.number + self._start,
            operands=self._operands(instruction.operands),
            guard=None if instruction.guard is None else self._register(instruction.guard),
        )

    def _register(self, register: Reg) -> Register:
        assert isinstance(register, Register)
        return replace(register, slot=register.slot + self._registers)

    def _operands(self, operands: Iterable[Operand]) -> tuple[Operand, ...]:
        return tuple(map(self._operand, operands))

    def _operand(self, operand: Operand) -> Operand:
        match operand:
            case Register():
                return self._register(operand)
            case Negated(register):
                return Negated(self._register(register))
            case Part(register, selector):
                return Part(self._register(register), selector)
            case Sym(name):
                return replace(operand, name=self.name(name)) if name in self._own else operand
            case JumpTarget(name, at):
                return JumpTarget(self.name(name), at) if at < 0 else JumpTarget(name, at + self._start)
            case JumpTable(name, targets):
                return JumpTable(self.name(name), tuple(at + self._start for at in targets))
            case Vector(items):
                return Vector(self._operands(items))
            case Arguments(items):
                return Arguments(self._operands(items))
            case Pair(first, second):
                return Pair(self._operand(first), self._operand(second))
            case Mem(base):
                return replace(operand, base=self._base(base))
            case TensorOperand(base, rest):
                return replace(operand, base=self._base(base), rest=self._operands(rest))
            case _:
                return operand

    def _base(self, base: Reg | Sym | Imm) -> Reg | Sym | Imm:
        moved = self._operand(base)
        assert isinstance(moved, Reg | Sym | Imm)
        return moved
