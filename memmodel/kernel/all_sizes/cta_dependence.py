"""How registers and memory depend on the number of the CTA, for every grid: from the text alone.

In: module, entry, launch, the dimension in which the grid grows. Out: `CtaDependence` by register. A number may be the
same in all CTAs, be linear in the number of the CTA with a constant step (which may differ between threads), or depend
on it, or on the size of the grid, in another way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum

from memmodel.isa.lowered import LoweredInstruction, body_of, registers
from memmodel.kernel.all_sizes.access_kinds import brings, copies, leaves, parts
from memmodel.kernel.all_sizes.parameters import parts_of
from memmodel.kernel.launch import Launch
from memmodel.program.expressions import Apply, Expr, Get, stripped
from memmodel.program.ops import Assign, Gather, IssueAsync, Read, SignalPart, UndefinedIf, Write
from memmodel.program.regions import Box
from memmodel.program.uses import results_of
from memmodel.program.warp_ops import AccessTexture, CopyTogether, MoveMatrix, Note
from memmodel.ptx.module.syntax import PtxFunction, PtxModule
from memmodel.ptx.operands import Arguments, Mem, Operand, Special, TensorOperand
from memmodel.ptx.vocabulary import Space, Window

NUMBERED = ("%ctaid", "%clusterid")
SIZED = ("%nctaid", "%nclusterid", "%gridid")
AXES = "xyz"
SPACES = (Space.GLOBAL, Space.SHARED, Space.LOCAL, Space.CONST, Space.PARAM)
SPACE_OF = {
    Window.GLOBAL: Space.GLOBAL,
    Window.LOCAL: Space.LOCAL,
    Window.CONST: Space.CONST,
    **dict.fromkeys((Window.SHARED_CTA, Window.SHARED_CLUSTER, Window.SHARED_OTHER), Space.SHARED),
    **dict.fromkeys((Window.PARAM, Window.FUNCTION_PARAM, Window.ANY_PARAM), Space.PARAM),
}
"""The state space of a window. Where none is named, an address may be in any but that of parameters."""
LEAST_BITS = 32
"""Numbers of fewer bits wrap too soon to keep a constant step."""


class CtaDependence(IntEnum):
    """How a number depends on the number of the CTA: not at all, linearly, in another way."""

    NONE = 0
    STEP = 1
    OTHER = 2


class CtaDependences:
    """The dependence of every register of an entry, and of what each state space holds."""

    def __init__(self, module: PtxModule, entry: PtxFunction, launch: Launch, axis: str) -> None:
        self._body = body_of(entry)
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
        return self._special(operand.name) if isinstance(operand, Special) else self.slots(registers(operand))

    def _special(self, name: str) -> CtaDependence:
        axis = name.rsplit(".", 1)[-1]
        if axis in AXES and axis != self._axis:
            return CtaDependence.NONE  # the grid grows along one axis
        if name.startswith(NUMBERED):
            return CtaDependence.STEP
        return CtaDependence.OTHER if name.startswith(SIZED) else CtaDependence.NONE

    def _settle(self) -> None:
        """Dependences only grow, so that this ends."""
        changed = True
        while changed:
            before = dict(self.registers), dict(self.memory)
            for does in self._body:
                for slot, dependence in self._results(does):
                    self.registers[slot] = max(self.slots([slot]), dependence)
                if leaves(does):
                    self._store(does)
            changed = before != (self.registers, self.memory)

    def _results(self, does: LoweredInstruction) -> Iterator[tuple[int, CtaDependence]]:
        """The registers that an instruction writes, each with its dependence."""
        operands = does.instruction.operands
        if does.calls:
            yield from ((slot, CtaDependence.OTHER) for operand in operands[:1] for slot in _passed(operand))
        if all(isinstance(op, Assign | UndefinedIf | Note) for op in does.ops):
            values = {int(name): value for name, value in results_of(does.ops).items() if name.isdigit()}
            yield from ((slot, self._expression(value)) for slot, value in values.items())
            yield from ((slot, CtaDependence.OTHER) for slot in does.writes if slot not in values)
            return
        specials = [operand for operand in operands[1:] if isinstance(operand, Special)]
        read = max(self.slots(does.reads), self.of(specials))
        if does.loads:
            result = self._loaded(does, read)
        else:
            result = max(read, *self.memory.values()) if brings(does) or does.atomic else read
            result = CtaDependence.OTHER if result is CtaDependence.STEP else result
        yield from ((slot, result) for slot in does.writes)

    def _expression(self, expr: Expr) -> CtaDependence:
        """The dependence of the value of an expression."""
        expr = stripped(expr)
        if isinstance(expr, Get):
            return self._register(expr.register)
        if not isinstance(expr, Apply):
            return CtaDependence.NONE
        args = [self._expression(arg) for arg in expr.args]
        greatest = max(args, default=CtaDependence.NONE)
        return CtaDependence.OTHER if greatest is CtaDependence.STEP and not _keeps_step(expr, args) else greatest

    def _register(self, name: str) -> CtaDependence:
        if name.isdigit():
            return self.slots([int(name)])
        return self._special(name) if name[0] == "%" else CtaDependence.OTHER  # a note of an earlier instruction

    def _loaded(self, does: LoweredInstruction, dependence: CtaDependence) -> CtaDependence:
        if any(part.name in self._params for part in parts_of(does)):
            return CtaDependence.NONE
        spaces = _spaces(does)
        if dependence is not CtaDependence.NONE and (self._tables or spaces != (Space.GLOBAL,)):
            return CtaDependence.OTHER  # another CTA reads another element
        known = all(self.memory[space] is CtaDependence.NONE for space in spaces)
        return CtaDependence.NONE if known else CtaDependence.OTHER

    def _store(self, does: LoweredInstruction) -> None:
        """Add what an instruction stores, and what its copies bring, to the state spaces."""
        operands, spaces = does.instruction.operands, _spaces(does)
        addresses = [number for number, operand in enumerate(operands) if isinstance(operand, Mem | TensorOperand)]
        behind = addresses[0] + 1 if addresses else 1
        stored = self.of(operand for operand in operands[1:] if not isinstance(operand, Mem | TensorOperand))
        place = self.of(operands[:behind])
        if not any(isinstance(op, Write | MoveMatrix | AccessTexture) for op in does.ops) and not _writes(does):
            sources = self.of(operands[number] for number in addresses[1:])
            if sources is not CtaDependence.NONE and (self._tables or Space.GLOBAL not in spaces):
                stored = CtaDependence.OTHER
            stored = max(stored, *self.memory.values())
            spaces = spaces[:1] if copies(does) else spaces
        if place is not CtaDependence.NONE and spaces != (Space.GLOBAL,):
            stored = CtaDependence.OTHER
        for space in spaces:
            self.memory[space] = max(self.memory[space], stored)


def _keeps_step(expr: Apply, args: list[CtaDependence]) -> bool:
    """True if an operation on numbers of which one is linear in the number of the CTA gives such a number."""
    if expr.type.floating or expr.type.lanes > 1 or expr.type.width < LEAST_BITS:
        return False
    match expr.op:
        case "add" | "sub" | "neg" | "cvt":
            return True
        case "mul" | "mul.wide":
            return CtaDependence.NONE in args
        case "shl":
            return args[1] is CtaDependence.NONE
    return False


def _writes(does: LoweredInstruction) -> bool:
    """True for an asynchronous store or reduction of registers."""
    return bool(does.stored) and not copies(does)


def _spaces(does: LoweredInstruction) -> tuple[Space, ...]:
    """The state spaces of what an instruction accesses, the destination's first; all but that of parameters where it
    names none.
    """
    spaces = [_space(region) for region in _regions(does)]
    return SPACES[:-1] if None in spaces or not spaces else tuple(dict.fromkeys(space for space in spaces if space))


def _regions(does: LoweredInstruction) -> Iterator[object]:
    """What an instruction accesses, what it writes first."""
    accesses = [part for part in parts(does) if not isinstance(part, SignalPart)]
    yield from (part.region for part in accesses if not isinstance(part, Gather))
    yield from (part.region for part in accesses if isinstance(part, Gather))
    for op in does.ops:
        match op:
            case CopyTogether():
                yield from (op.target, op.source)
            case Read() | Write() | MoveMatrix():
                yield op.region
            case Assign() | UndefinedIf() | Note() | IssueAsync():
                pass
            case _:
                yield None


def _space(region: object) -> Space | None:
    if isinstance(region, Box):
        return Space.GLOBAL
    window = getattr(region, "window", None)
    return None if window is None else SPACE_OF.get(window)


def _passed(operand: Operand) -> list[int]:
    return [slot for item in operand.items for slot in registers(item)] if isinstance(operand, Arguments) else []
