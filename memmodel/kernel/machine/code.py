"""The instructions of an entry, each with what is to be done at it.

In: PtxFunction, DeviceMemory. Out: `Code`. What is not known is refused when it is reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from memmodel.base.labels import Fence, ProxyFence
from memmodel.isa.lowered import LoweredInstruction, body_of, lowered, registers
from memmodel.isa.refused import refusal
from memmodel.kernel.flow.detours import Detour
from memmodel.kernel.flow.packing import packed_registers
from memmodel.kernel.machine.collective.checks import Collective, collective_of
from memmodel.kernel.machine.engines.calls import CallPlan, call_plans
from memmodel.kernel.machine.interpret import Interpreter
from memmodel.kernel.machine.memory import DeviceMemory
from memmodel.kernel.machine.parts import Lanes, Warp
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.machine.surroundings import Surroundings
from memmodel.kernel.machine.values.lanes import Get, Step
from memmodel.kernel.machine.values.packing import cleared_first, with_bits
from memmodel.kernel.trace.problems import Refused
from memmodel.program.expressions import Const, Expr, leaves_of
from memmodel.program.expressions import Get as RegisterValue
from memmodel.program.ops import Assign, Emit, Jump, Op
from memmodel.program.warp_ops import CallFunction, Control, JumpByTable, MultiplyInRegisters, Return, WarpOp
from memmodel.ptx.module.syntax import Callee, PtxFunction, PtxInstruction

Computing = tuple[Step | None, tuple[tuple[int, Expr], ...]]


@dataclass(slots=True)
class Code:
    """What to do at one instruction: one of the steps, or a change of control.

    `does`: the instruction with its row. `ops`: the steps of the row, as far as they are run. `results`: of one that
    only computes, what registers receive. `control`: the step by which it changes control, if it does; `calls`: the
    functions of a call; `index`: which of them, or which target of a branch. `fences`: one of the steps is a fence of
    memory or of a proxy.
    `touched`, `written`: registers of wgmma.mma_async that the instruction uses, and those of them that it writes.
    """

    does: LoweredInstruction
    guard: int | None
    negated: bool
    ops: tuple[Op | WarpOp, ...] = ()
    results: tuple[tuple[int, Expr], ...] = ()
    fences: bool = False
    pure: Step | None = None
    blocking: Blocking | None = None
    collective: Collective | None = None
    control: Control | None = None
    index: Get | None = None
    calls: tuple[CallPlan, ...] = ()
    refusal: Refused | None = None
    touched: tuple[int, ...] = ()
    written: tuple[int, ...] = ()

    @property
    def assigned(self) -> tuple[int, ...]:
        """The registers that it may change, notes for later instructions included."""
        return tuple(dict.fromkeys((*self.does.writes, *(slot for slot, _ in self.results))))

    @property
    def instruction(self) -> PtxInstruction:
        return self.does.instruction

    @property
    def computes(self) -> bool:
        """True if it changes nothing but registers and what its thread alone has."""
        private = self.refusal is None and self.does.private
        return private or (self.pure is not None and not self.touched)


class Follower:
    """Goes along with one run."""

    def follow(self, machine: Machine, codes: Sequence[Code], assumed: Sequence[str]) -> None:
        """Before the run begins: the steps of `codes` may be wrapped."""

    def detoured(self, warp: Warp, lanes: Lanes, branch: int, way: Detour) -> dict[int, list[int]]:
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
    surroundings = Surroundings(memory, peeks, packed_registers(body_of(entry)), entry.registers)
    codes = [
        _assumed(instruction) if begins(instruction, assumed) else _compiled(surroundings, entry, instruction)
        for instruction in entry.body or ()
    ]
    multiplies = [op for code in codes for op in code.ops if isinstance(op, MultiplyInRegisters)]
    watched = {int(register) for op in multiplies for register in (*op.accumulator, *op.fragment)}
    for code in codes if watched else ():
        if not any(isinstance(op, MultiplyInRegisters) for op in code.ops):
            used = {slot for operand in code.instruction.operands for slot in registers(operand)}
            code.touched = tuple(used & watched)
            code.written = tuple(set(lowered(code.instruction).writes) & watched)
    return codes, surroundings.slots


def only_computes(codes: Sequence[Code], at: int, within: tuple[int, ...] = ()) -> bool:
    """True if an instruction changes nothing but what its thread alone has; a call if all of its function does so."""
    code = codes[at]
    if len(code.calls) != 1 or code.index is not None or at in within:
        return code.computes
    return all(
        isinstance(codes[n].control, Jump | Return) or only_computes(codes, n, (*within, at))
        for n in _body(codes, code.calls[0].callee)
    )


def may_loop(codes: Sequence[Code], call: int) -> bool:
    """True if the function that is called jumps back, or calls another one."""
    inside = list(_body(codes, codes[call].calls[0].callee))
    calls_or_targets = ((n, codes[n].control, codes[n].does.targets) for n in inside)
    return any(
        isinstance(op, CallFunction) or any(target <= n for target in targets) for n, op, targets in calls_or_targets
    )


def _body(codes: Sequence[Code], callee: Callee) -> range:
    return range(callee.start, min(callee.end, len(codes)))


def begins(instruction: PtxInstruction, opcodes: Sequence[str]) -> bool:
    """True if the opcode begins with one of these."""
    return any(f"{instruction.opcode}.".startswith(f"{opcode}.") for opcode in opcodes)


def _assumed(instruction: PtxInstruction) -> Code:
    """An instruction that is taken to leave unknown values in its first operand and to do nothing else."""
    slots = lowered(instruction).writes

    def step(warp: Warp, lanes: Lanes) -> None:
        for slot in slots:
            for lane in lanes:
                warp.own(slot)[lane] = None

    return _code(lowered(instruction), step)


def _code(does: LoweredInstruction, pure: Step | None = None) -> Code:
    guard = does.instruction.guard
    return Code(does, None if guard is None else guard.slot, does.instruction.negated, pure=pure)


def _compiled(surroundings: Surroundings, entry: PtxFunction, instruction: PtxInstruction) -> Code:
    """An instruction with what the steps of its row do."""
    code = _code(lowered(instruction, surroundings.memory.cluster_size))
    try:
        _fill_in(surroundings, entry, code)
    except Refused as error:
        code.refusal = error
    return code


def _fill_in(surroundings: Surroundings, entry: PtxFunction, code: Code) -> None:
    """What the steps of an instruction do. Raises Refused."""
    does, instruction = code.does, code.instruction
    if does.row is None:
        hint, by_name = "it cannot be run, and nothing is skipped", refusal(instruction.opcode)
        what = f"the instruction {instruction.opcode} is not known"
        if by_name is not None:
            what = f"{by_name[0]} is not modelled: {by_name[1]}"
        raise Refused(what, instruction.span, hint)
    if does.refusal is not None:
        raise Refused(does.refusal.message, does.refusal.span, does.refusal.hint)
    interpreter = Interpreter(surroundings, instruction, does.ops)
    if does.control is not None:
        _control_code(interpreter, entry, code, does.control)
        return
    pure, code.results = _computing(interpreter, does)
    blocking = None if pure is not None else interpreter.blocking()
    if not surroundings.packed.isdisjoint(does.writes):
        pure = None if pure is None else with_bits(interpreter, pure)
        blocking = None if blocking is None else cleared_first(instruction, blocking)
    code.ops, code.pure, code.blocking = does.ops, pure, blocking
    code.fences = any(isinstance(op, Emit) and isinstance(op.label, Fence | ProxyFence) for op in does.ops)
    code.collective = collective_of(interpreter, does)


_COMPUTING: WeakKeyDictionary[LoweredInstruction, Computing] = WeakKeyDictionary()
"""What instructions that compute registers of registers do, in every run. A search makes hundreds of runs."""


def _computing(interpreter: Interpreter, does: LoweredInstruction) -> Computing:
    """The step of an instruction that only computes, and what registers receive; None and nothing for any other one."""
    known = _COMPUTING.get(does)
    if known is not None:
        return known
    pure = interpreter.pure()
    computing = pure, () if pure is None else tuple(interpreter.results())
    if pure is not None and all(_of_registers(op) for op in does.ops):
        _COMPUTING[does] = computing
    return computing


def _of_registers(op: Op | WarpOp) -> bool:
    """True if a step assigns what it computes of registers with a number, of special registers, and of nothing else."""
    if not isinstance(op, Assign):
        return False
    leaves = (RegisterValue(op.register), *leaves_of(op.value))
    names = [leaf.register for leaf in leaves if isinstance(leaf, RegisterValue)]
    constants = sum(isinstance(leaf, Const) for leaf in leaves)
    return len(names) + constants == len(leaves) and all(name.isdigit() or name[0] == "%" for name in names)


def _control_code(interpreter: Interpreter, entry: PtxFunction, code: Code, op: Control) -> None:
    """Jumps and calls. Raises Refused."""
    code.ops, code.control = (op,), op
    match op:
        case Jump():
            assert op.label is not None, "the end of a thread of a module is another step"
        case JumpByTable():
            code.index = interpreter.value(op.index)
        case CallFunction():
            code.calls = call_plans(op, entry.callees, interpreter.surroundings, code.instruction)
            code.index = None if op.through is None else interpreter.value(op.through)
