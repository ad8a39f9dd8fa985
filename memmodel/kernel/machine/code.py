"""The instructions of an entry, each with what is to be done at it.

In: PtxFunction, DeviceMemory. Out: `Code`. What is not known is refused when it is reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from memmodel.base.labels import Fence, ProxyFence
from memmodel.isa.lowered import body_of, lowered, registers
from memmodel.isa.module import head_row
from memmodel.isa.place import CTAS
from memmodel.isa.table import file_of, stray
from memmodel.kernel.flow.detours import Detour
from memmodel.kernel.flow.packing import packed_registers
from memmodel.kernel.flow.registers import written
from memmodel.kernel.machine.accesses import access_step
from memmodel.kernel.machine.collective.checks import Collective, collective_of, is_aligned
from memmodel.kernel.machine.compiler import Compiler
from memmodel.kernel.machine.engines.calls import HEAP, CallPlan, stack_step
from memmodel.kernel.machine.engines.multimem import multimem_step
from memmodel.kernel.machine.engines.stasync import async_step
from memmodel.kernel.machine.interpret import Interpreter
from memmodel.kernel.machine.memory import PRIVATE_START, DeviceMemory
from memmodel.kernel.machine.objects import object_step
from memmodel.kernel.machine.parts import Lanes, Warp
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.machine.values.lanes import Get, Step
from memmodel.kernel.machine.values.packing import cleared_first, with_bits
from memmodel.kernel.trace.problems import Refused
from memmodel.program.ops import Emit, Op
from memmodel.program.warp_ops import MultiplyInRegisters, WarpOp
from memmodel.ptx.module.syntax import Callee, ModuleVariable, PtxFunction, PtxInstruction
from memmodel.ptx.operands import Arguments, JumpTarget, Operand, Register, Sym

ENDS = ("ret", "exit")
CONTROL = (*ENDS, "bra", "brx", "trap", "brkpt", "call")
STEPS = (
    access_step, object_step, async_step, multimem_step, stack_step,
)  # fmt: skip
INTERPRETED = (
    "synchronization.barrier",
    "synchronization.fence",
    "synchronization.fence_async",
    "synchronization.grids",
    "synchronization.groups",
    "synchronization.launch",
    "synchronization.mbarrier",
    "synchronization.votes",
    "matrix.fragments",
    "matrix.warp_mma",
    "synchronization.atomic",
    "movement.access",
    "movement.bulk",
    "movement.cluster",
    "movement.cpasync",
    "movement.fill",
    "movement.hints",
    "movement.spaces",
    "movement.tensor",
    "movement.tensormap",
    "matrix.wgmma",
    "matrix.tcgen_mma",
    "matrix.tcgen_move",
    "matrix.tcgen_sync",
    "movement.textures",
    "scalar.compute",
    "scalar.control",
    "scalar.compare",
    "scalar.convert",
    "scalar.extended",
    "scalar.floats",
    "scalar.video",
)
"""Files of the instruction table whose rows are run by their steps."""
SYSTEM_CALLS = ("vprintf", *HEAP, "__assertfail")
"""Functions of the system that are known. The first one touches no memory of the kernel."""


@dataclass(slots=True)
class Code:
    """What to do at one instruction: one of the steps, or a change of control.

    `ops`: the steps of its row. `fences`: one of them is a fence of memory or of a proxy. `touched`, `written`:
    registers of wgmma.mma_async that the instruction uses, and those of them that it writes.
    """

    instruction: PtxInstruction
    guard: int | None
    negated: bool
    ops: tuple[Op | WarpOp, ...] = ()
    fences: bool = False
    pure: Step | None = None
    blocking: Blocking | None = None
    collective: Collective | None = None
    control: str = ""
    targets: tuple[int, ...] = ()
    index: Get | None = None
    calls: tuple[CallPlan, ...] = ()
    refusal: Refused | None = None
    touched: tuple[int, ...] = ()
    written: tuple[int, ...] = ()

    @property
    def aligned(self) -> bool:
        """True if all lanes of the warp have to come to the same instruction."""
        return is_aligned(self.instruction)

    @property
    def fails(self) -> bool:
        """Is it the call by which an assertion ends the kernel?"""
        return any(isinstance(one, Sym) and one.name == "__assertfail" for one in self.instruction.operands)

    @property
    def computes(self) -> bool:
        """Does it change nothing but registers and what its thread alone has?"""
        words = self.instruction.words
        private = words[0] in ("ld", "st") and self.instruction.kind.split("::")[0] in ("local", "const", "param")
        known = self.refusal is None and private
        return known or (self.pure is not None and not self.touched)


class Follower:
    """Goes along with one run."""

    def follow(self, machine: Machine, codes: Sequence[Code], assumed: Sequence[str]) -> None:
        """Before the run begins: the steps of `codes` may be wrapped."""

    def detoured(self, warp: Warp, lanes: Lanes, branch: int, way: Detour) -> dict[tuple[int, int], int]:
        """Lanes are where the sides of a branch on unknown data meet: the terms of what was written there."""
        return {}

    def guarded(self, warp: Warp, lanes: Lanes, code: Code) -> None:
        """Lanes come to an instruction with a guard."""

    def jumped(self, warp: Warp, lanes: Lanes, code: Code, target: int) -> None:
        """Lanes take a branch."""


def compile_function(
    entry: PtxFunction, memory: DeviceMemory, peeks: frozenset[int] = frozenset(), assumed: tuple[str, ...] = ()
) -> tuple[list[Code], int]:
    """The instructions of an entry, and how many registers they use.

    What is not known is refused when it is reached. `assumed`: as in `Schedule`.
    """
    compiler = Compiler(memory, peeks, packed_registers(body_of(entry)), entry.registers)
    codes = [_assumed(one) if begins(one, assumed) else _compiled(compiler, entry, one) for one in entry.body or ()]
    multiplies = [op for code in codes for op in code.ops if isinstance(op, MultiplyInRegisters)]
    watched = {int(register) for op in multiplies for register in (*op.accumulator, *op.fragment)}
    for code in codes if watched else ():
        if not any(isinstance(op, MultiplyInRegisters) for op in code.ops):
            used = {slot for operand in code.instruction.operands for slot in registers(operand)}
            code.touched = tuple(used & watched)
            code.written = tuple(set(written(code.instruction)) & watched)
    return codes, compiler.slots


def only_computes(codes: Sequence[Code], at: int, within: tuple[int, ...] = ()) -> bool:
    """Does an instruction change nothing but what its thread alone has? A call: does all of its function?"""
    code = codes[at]
    if code.control != "call" or len(code.calls) != 1 or code.index is not None or at in within:
        return code.computes
    callee = code.calls[0].callee
    jumps = ("bra", "ret")
    return all(codes[n].control in jumps or only_computes(codes, n, (*within, at)) for n in _body(codes, callee))


def may_loop(codes: Sequence[Code], call: int) -> bool:
    """Does the function that is called jump back, or call another one?"""
    inside = list(_body(codes, codes[call].calls[0].callee))
    return any(codes[n].control == "call" or any(to <= n for to in codes[n].targets) for n in inside)


def _body(codes: Sequence[Code], callee: Callee) -> range:
    return range(callee.start, min(callee.end, len(codes)))


class _Nowhere:
    """Stands for memory where nothing is run."""

    def __init__(self) -> None:
        self.symbols: dict[str, tuple[str, int]] = {}
        self.cluster_size = CTAS


def unknown(functions: Iterable[PtxFunction]) -> Iterator[PtxInstruction]:
    """The instructions that are not known, and would be refused when they are reached."""
    compiler = Compiler(_Nowhere())
    for function in functions:
        codes = (_compiled(compiler, function, one) for one in function.body or ())
        yield from (one.instruction for one in codes if one.refusal is not None and one.refusal.message in _said(one))


def _said(code: Code) -> tuple[str, str]:
    """How an instruction is refused that is not known, and one of a family of which others are."""
    opcode = code.instruction.opcode
    return f"the instruction {opcode} is not known", f"{opcode} is not known"


def begins(instruction: PtxInstruction, opcodes: Sequence[str]) -> bool:
    """Does an opcode begin with one of these?"""
    return any(f"{instruction.opcode}.".startswith(f"{one}.") for one in opcodes)


def _assumed(instruction: PtxInstruction) -> Code:
    """An instruction that is taken to leave unknown values in its first operand and to do nothing else."""
    slots = written(instruction)

    def step(warp: Warp, lanes: Lanes) -> None:
        for slot in slots:
            for lane in lanes:
                warp.own(slot)[lane] = None

    guard = None if instruction.guard is None else instruction.guard.slot
    return Code(instruction, guard, instruction.negated, pure=step)


def _compiled(compiler: Compiler, entry: PtxFunction, instruction: PtxInstruction) -> Code:
    guard = None if instruction.guard is None else instruction.guard.slot
    code = Code(instruction, guard, instruction.negated)
    try:
        if instruction.words[0] in CONTROL:
            _control_code(compiler, entry, code)
            return code
        _by_steps(compiler, code)
        if code.pure is None and code.blocking is None:
            steps = (make(compiler, instruction) for make in STEPS)
            code.blocking = next((step for step in steps if step is not None), None)
        if not compiler.packed.isdisjoint(written(instruction)):
            interpreter = Interpreter(compiler, instruction, code.ops)
            code.pure = None if code.pure is None else with_bits(interpreter, code.pure)
            code.blocking = None if code.blocking is None else cleared_first(instruction, code.blocking)
    except Refused as error:
        code.refusal = error
        return code
    except (IndexError, KeyError, TypeError, ValueError, AttributeError, StopIteration):
        code.pure = None
        code.refusal = Refused(f"these operands of {instruction.opcode} are not known", instruction.span)
        return code
    code.collective = collective_of(compiler, instruction)
    odd = stray(instruction.opcode)
    if odd is not None:
        code.pure = code.blocking = None
        code.refusal = Refused(odd.message, instruction.span, odd.hint)
    elif code.pure is None and code.blocking is None:
        hint = "it cannot be run, and nothing is skipped"
        code.refusal = Refused(_said(code)[0], instruction.span, hint)
    return code


def _by_steps(compiler: Compiler, code: Code) -> None:
    """Fill in an instruction from the steps of its row, if its family is run so. Raises Refused."""
    instruction = code.instruction
    row = head_row(instruction.opcode)
    if row is None or file_of(row.heads[0]) not in INTERPRETED:
        return
    does = lowered(instruction, compiler.memory.cluster_size)
    if does.refusal is not None:
        raise Refused(does.refusal.message, does.refusal.span, does.refusal.hint)
    code.ops = ops = does.ops
    interpreter = Interpreter(compiler, instruction, ops)
    code.pure = interpreter.pure()
    code.blocking = None if code.pure is not None else interpreter.blocking()
    code.fences = any(isinstance(op, Emit) and isinstance(op.label, Fence | ProxyFence) for op in ops)


def _control_code(compiler: Compiler, entry: PtxFunction, code: Code) -> None:
    """Jumps and calls. Raises Refused."""
    instruction = code.instruction
    head, operands, span = instruction.words[0], instruction.operands, instruction.span
    code.control = head
    if head == "bra":
        if not operands or not isinstance(operands[0], JumpTarget) or operands[0].at < 0:
            raise Refused("bra goes to a label of this function", span)
        code.targets = (operands[0].at,)
    elif head == "brx":
        table = operands[1]
        listed = entry.tables.get(table.name) if isinstance(table, JumpTarget) else None
        if listed is None:
            raise Refused("brx.idx takes a list of branch targets", span)
        code.targets, code.index = listed, compiler.get(operands[0], instruction, 32)
    elif head == "call":
        _call_code(compiler, entry, code)


def _call_code(compiler: Compiler, entry: PtxFunction, code: Code) -> None:
    """A call by name, or through a register to any function of the same parameters. Raises Refused."""
    operands, span = code.instruction.operands, code.instruction.span
    name = next((one.name for one in operands if isinstance(one, Sym)), "")
    through = next((one for one in operands if isinstance(one, Register)), None)
    if through is None and name not in entry.callees:
        if name not in SYSTEM_CALLS:
            raise Refused(f"the call of {name or 'a function'} is not known", span)
        return
    lists = [one.items for one in operands if isinstance(one, Arguments)]
    returned = lists.pop(0) if operands and isinstance(operands[0], Arguments) else ()
    given = lists[0] if lists else ()
    chosen = entry.callees if through is not None else {name: entry.callees[name]}
    code.calls = tuple(
        CallPlan(
            callee,
            _moves(compiler, given, callee.params),
            _moves(compiler, returned, callee.results, back=True),
            compiler.memory.symbols[called][1],
        )
        for called, callee in chosen.items()
        if (len(callee.params), len(callee.results)) == (len(given), len(returned)) or through is None
    )
    if through is not None:
        code.index = compiler.get(through, code.instruction, 64)


def _moves(
    compiler: Compiler, actual: Sequence[Operand], formal: Sequence[ModuleVariable], *, back: bool = False
) -> tuple[tuple[int, int, int], ...]:
    """What is copied between the variables of a call and the parameters of the function."""
    found = []
    for one, other in zip(actual, formal, strict=True):
        assert isinstance(one, Sym)
        here, there = (compiler.memory.symbols[name][1] - PRIVATE_START for name in (one.name, other.name))
        found.append((there, here, other.size or 8) if back else (here, there, other.size or 8))
    return tuple(found)
