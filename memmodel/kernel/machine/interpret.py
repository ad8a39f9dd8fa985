"""The steps of an instruction, carried out in the lanes of a warp.

In: the `Op`s that a row of the instruction table lowers to. Out: a `Step` if they only compute, else a `Blocking`. No
opcode and no qualifier is known here: what an instruction means is in its steps. An instruction of several steps that
has to wait goes on later at the step that waits (`LaneGroup.step`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from memmodel.isa.lowered import widths
from memmodel.isa.module import head_row
from memmodel.isa.rows.row import Effect
from memmodel.kernel.machine.accesses import read_step, shifted, write_step
from memmodel.kernel.machine.asynchronous import commit_group, issue, see_refusal, wait_for_groups
from memmodel.kernel.machine.atomics import atomic_step
from memmodel.kernel.machine.collective.barriers import at_barrier, combine
from memmodel.kernel.machine.collective.exchange import active_lanes, among_lanes
from memmodel.kernel.machine.collective.registers import take_registers
from memmodel.kernel.machine.engines.calls import on_stack
from memmodel.kernel.machine.engines.fragments import forget, move_matrix
from memmodel.kernel.machine.engines.mma import (
    copy_to_tensor_memory,
    move_tensor_memory,
    multiply_in_tensor_memory,
    shift_tensor_memory,
)
from memmodel.kernel.machine.engines.multimem import access_replicas
from memmodel.kernel.machine.engines.tensor import allocate_columns, free_columns, relinquish_permit
from memmodel.kernel.machine.engines.tensormaps import copy_together, read_map, write_map
from memmodel.kernel.machine.engines.textures import access_texture
from memmodel.kernel.machine.engines.wgmma import counted, counts_registers, multiply_in_registers
from memmodel.kernel.machine.objects import check_layout, on_objects
from memmodel.kernel.machine.parts import Faulty, LaneGroup, Lanes, Warp
from memmodel.kernel.machine.rows import Value
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.machine.surroundings import Surroundings
from memmodel.kernel.machine.values.expressions import assigning, lane_values, remembering
from memmodel.kernel.machine.values.lanes import Get, Step, together
from memmodel.kernel.machine.values.specials import special
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.launch import RunMoment
from memmodel.kernel.trace.problems import Refused
from memmodel.program.expressions import WITHIN, AddressOf, Apply, Const, Expr, registers_of, substituted
from memmodel.program.expressions import Get as RegisterValue
from memmodel.program.ops import (
    Assign,
    AtBarrier,
    Combine,
    CommitGroup,
    Emit,
    IssueAsync,
    OnObject,
    Op,
    Read,
    UndefinedIf,
    Unmodelled,
    WaitForGroups,
    Write,
)
from memmodel.program.regions import TensorMapAt
from memmodel.program.unknowns import Leaf
from memmodel.program.uses import results_of
from memmodel.program.warp_ops import (
    AccessReplicas,
    AccessTexture,
    ActiveLanes,
    AllocateColumns,
    AmongLanes,
    CheckLayout,
    CopyTogether,
    CopyToTensorMemory,
    Forget,
    FreeColumns,
    MoveMatrix,
    MoveTensorMemory,
    MultiplyInRegisters,
    MultiplyInTensorMemory,
    Note,
    OnStack,
    RelinquishPermit,
    SeeRefusal,
    ShiftTensorMemory,
    TakeRegisters,
    TransposeMatrix,
    WarpOp,
)
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Space, Window

TEMPORARY_BITS = 128
"""Registers that only the steps of one instruction use hold every number that instructions have."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """Where a region begins, in all lanes: the number that the instruction has, and the state space that this is
    relative to; None of a generic address.
    """

    address: Get
    space: Space | None
    window: Window

    def find(
        self, machine: Machine, warp: Warp, lane: int, size: int, instruction: PtxInstruction
    ) -> tuple[Block, int]:
        """The bytes that a lane means. Raises Faulty where nothing or something else lies, Refused if it is unknown."""
        return self.place(machine, warp, self.address(warp)[lane], size, instruction)

    def place(
        self, machine: Machine, warp: Warp, address: Value, size: int, instruction: PtxInstruction
    ) -> tuple[Block, int]:
        """The bytes at such an address."""
        return machine.addressing.place(warp, self.space, address, size, instruction, self.window)

    def finder(
        self, machine: Machine, warp: Warp, instruction: PtxInstruction
    ) -> Callable[[int, int], tuple[Block, int]]:
        """The step that finds bytes at an address. Most lanes of a warp access the block of the lane before them."""
        block: Block | None = None
        shift = low = high = 0

        def find(address: int, size: int) -> tuple[Block, int]:
            nonlocal block, shift, low, high
            if block is not None and low <= address and address + size <= high:
                return block, address + shift
            block, first = self.place(machine, warp, address, size, instruction)
            shift = first - address
            low, high = (bound - shift for bound in machine.memory.bounds(block, first))
            return block, first

        return find


class Interpreter:
    """Turns the steps of one instruction into what the machine does."""

    def __init__(self, surroundings: Surroundings, instruction: PtxInstruction, ops: tuple[Op | WarpOp, ...]) -> None:
        self.surroundings, self.instruction, self.ops = surroundings, instruction, ops

    # ---- expressions -----------------------------------------------------------------------------------------

    def slot(self, register: str) -> int:
        """The number of a register, or of a temporary of an instruction."""
        return int(register) if register.isdigit() else self.surroundings.temporary(register)

    def register(self, expr: Expr) -> int | None:
        """The number of the register that an expression is; None if it is no register."""
        return self.slot(expr.register) if isinstance(expr, RegisterValue) and expr.register[0] != "%" else None

    def width(self, slot: int) -> int:
        """The bits of a register of the instruction; those of the widest for a temporary."""
        return widths(self.instruction).get(slot, TEMPORARY_BITS)

    def value(self, expr: Expr) -> Get:
        """The values of an expression in all lanes; numbers are unsigned."""
        return lane_values(expr, self._leaf)

    def _leaf(self, leaf: Leaf) -> Get:
        if isinstance(leaf, AddressOf):
            return self.surroundings.symbol(leaf.name, leaf.offset, self.instruction)
        if leaf.register[0] == "%":
            return special(leaf.register)
        slot = self.slot(leaf.register)
        return lambda warp: warp.registers[slot]

    def location(self, expr: Expr, window: Window) -> Pointer:
        """Where an address expression points to, for an access in a window."""
        if isinstance(expr, Apply) and expr.op.startswith(WITHIN):
            return Pointer(self._address(expr.args[0]), Space(expr.op.removeprefix(WITHIN)), window)
        return Pointer(self._address(expr), None, window)

    def _address(self, expr: Expr) -> Get:
        if isinstance(expr, Apply) and expr.op == "add" and isinstance(expr.args[1], Const):
            return shifted(self.value(expr.args[0]), expr.args[1].value)
        return self.value(expr)

    # ---- steps -----------------------------------------------------------------------------------------------

    def pure(self) -> Step | None:
        """The step of an instruction that only computes, or does nothing; None if one of its steps does more."""
        if not self.ops and self._effect is Effect.NOTHING:
            return lambda warp, lanes: None
        undefined = [self._undefined(op) for op in self.ops if isinstance(op, UndefinedIf)]
        results = self.results()
        count = sum(isinstance(op, Assign) for op in self.ops) + len(undefined)
        if not results or count < len(self.ops) or (undefined and self._effect is not Effect.COMPUTES):
            return None
        parts = [(slot, assigning(expr, slot, self.width(slot), self._leaf)) for slot, expr in results]
        reads = [frozenset(self.slot(name) for name in registers_of(expr) if name[0] != "%") for _, expr in results]
        step = parts[0][1] if len(parts) == 1 else together(parts, reads)
        if not undefined:
            return step

        def run(warp: Warp, lanes: Lanes) -> None:
            for check in undefined:
                check(warp, lanes)
            step(warp, lanes)

        return run

    def results(self) -> list[tuple[int, Expr]]:
        """What registers receive from assignments. Notes for later instructions are registers with a number, too."""
        results = results_of(self.ops)
        notes = {name for expr in results.values() for name in registers_of(expr) if name[0] == "#"}
        numbered = {name: RegisterValue(str(self.slot(name))) for name in notes}
        return [(self.slot(register), substituted(expr, numbered)) for register, expr in results.items()]

    @property
    def _effect(self) -> Effect | None:
        row = head_row(self.instruction.opcode)
        return None if row is None else row.effect

    def _undefined(self, op: UndefinedIf) -> Step:
        """An instruction that computes is taken to be given operands that it is defined for, where they are unknown:
        its result is unknown then, too.
        """
        holds = remembering(op.when, self._leaf)

        def check(warp: Warp, lanes: Lanes) -> None:
            values = holds(warp)
            if any(values[lane] for lane in lanes):
                raise Faulty("undefined-instruction", op.rule)

        return check

    def blocking(self) -> Blocking:
        """All steps, one after the other. Lanes that wait go on at the step that waits.

        What a step asks for is checked before it, once: lanes that were checked and then wait have done nothing yet.
        """
        parts: list[tuple[list[Blocking], Blocking]] = []
        checks: list[UndefinedIf | Unmodelled | Note] = []
        for op, step in self._steps():
            if isinstance(op, UndefinedIf | Unmodelled | Note):
                checks.append(op)
            else:
                parts.append(([self._check(check, op) for check in checks], step))
                checks = []
        if checks or not parts:
            parts.append(([self.step(check) for check in checks], _go_on))
        if len(parts) == 1 and not parts[0][0]:
            return parts[0][1]

        def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
            while group.step < len(parts):
                asked, act = parts[group.step]
                if asked and not group.checked:
                    for check in asked:
                        check(machine, warp, lanes, group)
                if not act(machine, warp, lanes, group):
                    group.checked = True
                    return False
                group.checked = False
                group.step += 1
            group.step = 0
            return True

        return run

    def _check(self, check: UndefinedIf | Unmodelled | Note, op: Op | WarpOp) -> Blocking:
        """A check before a step, which says itself which of its operands is not known."""
        if isinstance(check, UndefinedIf) and isinstance(op, AtBarrier | OnObject | AmongLanes):
            return self._undefined_if(check, known=True)
        return self.step(check)

    def _steps(self) -> Iterator[tuple[Op | WarpOp, Blocking]]:
        """What is done at each op, or at several that are one atomic operation."""
        left = list(self.ops)
        while left:
            op = left.pop(0)
            after = left[0] if left else None
            if isinstance(op, Read) and isinstance(after, Write) and after.rmw:
                del left[0]
                results: list[Assign] = []
                while left and isinstance(result := left[0], Assign):
                    results.append(result)
                    del left[0]
                yield op, atomic_step(self, op, after, results)
            elif isinstance(op, OnObject):
                parts = [op]
                while left and isinstance(part := left[0], OnObject) and part.beside:
                    parts.append(part)
                    del left[0]
                yield op, on_objects(self, parts)
            else:
                yield op, self.step(op)

    def step(self, op: Op | WarpOp) -> Blocking:
        """The action of the machine at one step. If it returns False, the lanes wait, and the step is made again."""
        make = STEPS.get(type(op))
        if make is None:
            raise Refused(f"{self.instruction.opcode} cannot be run", self.instruction.span)
        return make(self, op)

    def _assign(self, op: Assign) -> Blocking:
        slot = self.slot(op.register)
        assign = assigning(op.value, slot, self.width(slot), self._leaf)

        def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
            assign(warp, lanes)
            return True

        return run

    def _undefined_if(self, op: UndefinedIf, *, known: bool = False) -> Blocking:
        """The instruction is undefined where a value is not 0. `known`: what is not known is refused later."""
        holds, instruction = remembering(op.when, self._leaf), self.instruction

        def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
            values = holds(warp)
            for lane in lanes:
                if values[lane] is None and not known:
                    machine.unknown(f"whether the instruction is defined ({op.rule})", instruction)
                if values[lane]:
                    machine.problem("undefined-instruction", op.rule, instruction)
            return True

        return run

    def _unmodelled(self, op: Unmodelled) -> Blocking:
        holds, instruction = remembering(op.when, self._leaf), self.instruction

        def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
            values = holds(warp)
            if any(values[lane] is None or values[lane] for lane in lanes):
                raise Refused(op.reason, instruction.span)
            return True

        return run

    def _note(self, op: Note) -> Blocking:
        holds, instruction = self.value(op.when), self.instruction

        def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
            values = holds(warp)
            if any(values[lane] for lane in lanes):
                machine.run.assumed.setdefault(f"line {instruction.line}: {op.text}", op.needs)
                moments, moment = machine.run.first_reached.setdefault(instruction.number, {}), machine.moment
                for thread in (warp.threads[lane] for lane in lanes if values[lane]):
                    moments.setdefault(thread.number, RunMoment(*moment, len(thread.events)))
            return True

        return run

    def _emit(self, op: Emit) -> Blocking:
        instruction = self.instruction
        if op.address is not None:
            return self._about(op)

        def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
            for lane in lanes:
                machine.event(warp.threads[lane], instruction.number, op.label)
            return True

        return counted(run, op) if counts_registers(op) else run

    def _commit(self, op: CommitGroup) -> Blocking:
        commit = commit_group(self, op)
        return counted(commit, op) if counts_registers(op) else commit

    def _wait_for_groups(self, op: WaitForGroups) -> Blocking:
        wait = wait_for_groups(self, op)
        if not counts_registers(op):
            return wait
        assert isinstance(op.pending, Const), "a wait for groups of wgmma names how many it leaves"
        return counted(wait, op, op.pending.value)

    def _read(self, op: Read) -> Blocking:
        return read_map(self, op) if isinstance(op.region, TensorMapAt) else read_step(self, op)

    def _write(self, op: Write) -> Blocking:
        return write_map(self, op) if isinstance(op.region, TensorMapAt) else write_step(self, op)

    def _about(self, op: Emit) -> Blocking:
        """An event that names a range. It accesses nothing: where nothing is, it orders nothing."""
        assert op.address is not None
        instruction, location = self.instruction, self.location(op.address, Window.GLOBAL)

        def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
            for lane in lanes:
                if machine.memory.is_unmapped(location.address(warp)[lane]):
                    continue
                block, first = location.find(machine, warp, lane, op.bytes, instruction)
                note = machine.alias(warp.cta, block, first)
                event = machine.event(warp.threads[lane], instruction.number, op.label, note)
                event.range = (block, first, first + op.bytes)
            return True

        return run


STEPS: dict[type, Callable[[Interpreter, Any], Blocking]] = {
    Assign: Interpreter._assign,
    Unmodelled: Interpreter._unmodelled,
    Note: Interpreter._note,
    Emit: Interpreter._emit,
    CommitGroup: Interpreter._commit,
    WaitForGroups: Interpreter._wait_for_groups,
    Read: Interpreter._read,
    Write: Interpreter._write,
    UndefinedIf: Interpreter._undefined_if,
    OnObject: lambda interpreter, op: on_objects(interpreter, (op,)),
    TakeRegisters: lambda interpreter, op: take_registers(op, interpreter.instruction),
    TransposeMatrix: lambda interpreter, op: forget(interpreter, Forget((op.register,))),
    AtBarrier: at_barrier,
    Combine: combine,
    AmongLanes: among_lanes,
    ActiveLanes: active_lanes,
    SeeRefusal: see_refusal,
    IssueAsync: issue,
    CopyTogether: copy_together,
    Forget: forget,
    MoveMatrix: move_matrix,
    MultiplyInRegisters: multiply_in_registers,
    MultiplyInTensorMemory: multiply_in_tensor_memory,
    MoveTensorMemory: move_tensor_memory,
    CopyToTensorMemory: copy_to_tensor_memory,
    ShiftTensorMemory: shift_tensor_memory,
    AllocateColumns: allocate_columns,
    FreeColumns: free_columns,
    RelinquishPermit: relinquish_permit,
    OnStack: on_stack,
    AccessReplicas: access_replicas,
    CheckLayout: check_layout,
    AccessTexture: access_texture,
}
"""What the machine does at each kind of step. What is not listed is refused."""


def _go_on(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
    return True
