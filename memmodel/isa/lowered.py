"""An instruction of a compiled module as its row and its steps say what it does.

In: a `PtxInstruction`. Out: `lowered`, its `LoweredInstruction`: the registers that it reads and writes, its effect,
where it leads. Each is made once. An unknown instruction is taken to write its first operand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from memmodel.base.labels import Access, Action, Fence, ProxyFence
from memmodel.errors import InputError
from memmodel.isa.module import head_row, lower_in_module, words_of
from memmodel.isa.rows.row import Effect, Row, Together
from memmodel.isa.rows.types import numeric_type
from memmodel.program.expressions import Apply, Const, Expr, registers_of
from memmodel.program.ops import Assign, AsyncWrite, Emit, IssueAsync, Jump, OnObject, Op, Read, UndefinedIf, Write
from memmodel.program.unknowns import Compiled, in_register
from memmodel.program.uses import results_of
from memmodel.program.warp_ops import (
    AmongLanes,
    CallFunction,
    Control,
    EndThread,
    JumpByTable,
    MultiplyInRegisters,
    Return,
    Trap,
    WarpOp,
)
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import Mem, Operand, Register, TensorOperand, registers_in
from memmodel.ptx.vocabulary import DataType, Window

PRIVATE = (Window.LOCAL, Window.CONST, Window.PARAM, Window.FUNCTION_PARAM, Window.ANY_PARAM)
"""Windows through which a thread reaches nothing that other threads write."""


@dataclass(frozen=True, eq=False)
class LoweredInstruction:
    """What an instruction does. `cluster_size`: CTAs of a cluster of its launch, on which steps of copies depend."""

    instruction: PtxInstruction
    cluster_size: int = 1

    # ---- row and steps ---------------------------------------------------------------------------------------

    @cached_property
    def row(self) -> Row | None:
        """The row of its head; None if there is none."""
        return head_row(self.instruction.opcode)

    @property
    def words(self) -> Mapping[str, str]:
        """Its qualifiers by slot; none if it is illegal."""
        return words_of(self.instruction.opcode)

    @cached_property
    def _lowered(self) -> tuple[tuple[Op | WarpOp, ...], InputError | None]:
        try:
            return lower_in_module(self.instruction, self.cluster_size), None
        except InputError as error:
            return (), error

    @property
    def ops(self) -> tuple[Op | WarpOp, ...]:
        """Its steps; none if it is illegal."""
        return self._lowered[0]

    @property
    def refusal(self) -> InputError | None:
        """Why it is illegal; None if it is not."""
        return self._lowered[1]

    # ---- registers -------------------------------------------------------------------------------------------

    @cached_property
    def writes(self) -> tuple[int, ...]:
        """The registers that receive its results, in the order of its operands."""
        return tuple(
            register.slot for operand, result in self._operands() if result for register in named_registers(operand)
        )

    @cached_property
    def sources(self) -> tuple[int, ...]:
        """The registers that its operands read, in the order of its operands; an accumulator is read and written."""
        accumulates = any(isinstance(op, MultiplyInRegisters) for op in self.ops)
        read = (operand for operand, result in self._operands() if accumulates or not result)
        return tuple(dict.fromkeys(slot for operand in read for slot in registers(operand)))

    @cached_property
    def reads(self) -> frozenset[int]:
        """The registers that it reads, that of its guard included."""
        guard = self.instruction.guard
        return frozenset(self.sources if guard is None else (*self.sources, guard.slot))

    @cached_property
    def notes_read(self) -> frozenset[str]:
        """The notes that the instruction reads: what earlier ones leave beside registers, such as the carry."""
        names = (name for op in self.ops if isinstance(op, Assign) for name in registers_of(op.value))
        return frozenset(name for name in names if name[0] == "#")

    @cached_property
    def notes_written(self) -> frozenset[str]:
        """The notes that the instruction leaves."""
        return frozenset(op.register for op in self.ops if isinstance(op, Assign) and op.register[0] == "#")

    def _operands(self) -> Iterator[tuple[Operand, bool]]:
        """Its operands, each with whether it receives a result."""
        results = 1 if self.row is None else self.row.results
        for number, operand in enumerate(self.instruction.operands):
            results = 0 if isinstance(operand, Mem | TensorOperand) else results
            yield operand, number < results

    @cached_property
    def values(self) -> Mapping[int, Compiled]:
        """What registers hold after it, of what they held before, if it assigns registers and does nothing else."""
        if not all(isinstance(op, Assign | UndefinedIf) for op in self.ops):
            return {}
        bits = widths(self.instruction)
        results = {int(register): expr for register, expr in results_of(self.ops).items() if register.isdigit()}
        return {slot: in_register(expr, bits[slot]) for slot, expr in results.items()}

    # ---- effect ----------------------------------------------------------------------------------------------

    @cached_property
    def computes(self) -> bool:
        """True if it only changes registers of its thread, and looks at nothing but its operands."""
        return self._alone and self._effect is Effect.COMPUTES

    @property
    def synchronizes(self) -> bool:
        """True for fences, barriers, waits, commits and operations on mbarrier objects."""
        return self._effect is Effect.SYNCHRONIZES

    @cached_property
    def without_effect(self) -> bool:
        """True if no other thread can tell whether it is executed: it computes, jumps, or lets time pass."""
        return self.computes or self.jumps or (self._alone and self._effect is Effect.NOTHING)

    @property
    def _effect(self) -> Effect | None:
        return None if self.row is None else self.row.effect

    @property
    def _alone(self) -> bool:
        return self.row is not None and self.row.together is Together.THREAD

    @cached_property
    def aligned(self) -> bool:
        """True if all threads that execute it together have to come to the same instruction."""
        by_row = None if self.row is None else self.row.aligned
        return "aligned" in self.words if by_row is None else by_row

    @cached_property
    def exchanges(self) -> bool:
        """True if lanes of a warp learn from one another."""
        return any(isinstance(op, AmongLanes) for op in self.ops)

    # ---- memory ----------------------------------------------------------------------------------------------

    @cached_property
    def _reads_of_memory(self) -> tuple[Read, ...]:
        return tuple(op for op in self.ops if isinstance(op, Read))

    @cached_property
    def _writes_of_memory(self) -> tuple[Write, ...]:
        return tuple(op for op in self.ops if isinstance(op, Write))

    @cached_property
    def loads(self) -> bool:
        """True if it reads memory into registers at once and leaves memory as it is."""
        return bool(self._reads_of_memory) and not self._writes_of_memory

    @cached_property
    def stores(self) -> bool:
        """True if it writes registers to memory at once, and does not read memory."""
        return bool(self._writes_of_memory) and not self._reads_of_memory

    @cached_property
    def atomic(self) -> bool:
        """True if it reads and writes memory in one atomic operation."""
        return any(op.rmw for op in self._writes_of_memory)

    @property
    def _access(self) -> Read | Write | None:
        return next((op for op in self.ops if isinstance(op, Read | Write)), None)

    @cached_property
    def access(self) -> Access | None:
        """The label of the first access of memory that it makes at once; None if it makes none."""
        return None if self._access is None else self._access.label

    @cached_property
    def window(self) -> Window | None:
        """The window of that access."""
        return getattr(None if self._access is None else self._access.region, "window", None)

    @cached_property
    def private(self) -> bool:
        """True if it loads or stores what no other thread writes: local memory, constants, parameters."""
        return self.window in PRIVATE

    @cached_property
    def type(self) -> DataType | None:
        """The type in which it accesses memory or computes, if it names one."""
        return numeric_type(self.words.get("type", ""))

    @cached_property
    def stored(self) -> tuple[Expr, ...]:
        """The values that it writes to memory, whatever that holds."""
        parts = [part for op in self.ops if isinstance(op, IssueAsync) for part in op.parts]
        writes = [op for op in (*self._writes_of_memory, *parts) if isinstance(op, Write | AsyncWrite)]
        return tuple(value for op in writes if not op.rmw for value in op.values)

    @cached_property
    def combination(self) -> tuple[str, DataType] | None:
        """The operation, and its type, by which it combines what memory holds with an operand; None if it has none."""
        operation = self.words.get("op")
        return None if operation is None or self.type is None else (operation, self.type)

    @cached_property
    def replaces(self) -> bool:
        """True if it writes what does not depend on what memory held before."""
        olds = {name for op in self._reads_of_memory for name in op.registers}
        return all(
            op.when is None and all(olds.isdisjoint(registers_of(value)) for value in op.values)
            for op in self._writes_of_memory
        )

    @cached_property
    def may_fail(self) -> bool:
        """True if it writes only where a comparison holds."""
        return any(write.when is not None for write in self._writes_of_memory)

    @cached_property
    def leaves_memory(self) -> bool:
        """True for a load, and for an atomic operation that leaves what it reads, whatever that is."""
        if self.loads or not self.atomic:
            return self.loads
        write = self._writes_of_memory[0]
        left = write.values[0]
        if write.when is not None:  # the value is written if it is equal to another one
            return isinstance(write.when, Apply) and write.when.args[1] == left
        return isinstance(left, Apply) and left.op in ("add", "or", "xor") and left.args[1] == Const(0)

    @cached_property
    def phase_test(self) -> OnObject | None:
        """The step that asks whether a phase of an mbarrier object is over; None if there is none."""
        tests = (op for op in self.ops if isinstance(op, OnObject) and op.label.action is Action.TEST)
        return next(tests, None)

    @property
    def tests_phase(self) -> bool:
        """True if it asks whether a phase of an mbarrier object is over."""
        return self.phase_test is not None

    @property
    def tests_parity(self) -> bool:
        """True if it names that phase by its parity."""
        return self.phase_test is not None and self.phase_test.parity is not None

    @cached_property
    def completes_no_phase(self) -> bool:
        """True for an arrive by which the thread promises that it does not end the phase."""
        return any(isinstance(op, OnObject) and op.no_complete for op in self.ops)

    def element_register(self, number: int) -> int | None:
        """The register that receives the element of that number of what a load reads; None if there is none."""
        reads = self._reads_of_memory
        name = reads[0].registers[number] if len(reads) == 1 and number < len(reads[0].registers) else None
        return int(name) if name is not None and name.isdigit() else None

    @cached_property
    def elements(self) -> int:
        """How many elements of a vector it loads; 1 if it loads no vector."""
        return len(self._reads_of_memory[0].registers) if self.loads else 1

    def loaded(self, value: int) -> int:
        """What the register receives if a load reads this unsigned number, which its sign may extend. Of a vector, what
        each register receives: they are alike.
        """
        read = next(iter(self._reads_of_memory), None)
        target = None if read is None else next((name for name in read.registers if name is not None), None)
        if read is None or read.type is None or target is None or not target.isdigit():
            return value
        width, bits = widths(self.instruction)[int(target)], read.type.width
        return value | (1 << width) - (1 << bits) if read.type.signed and value >> bits - 1 else value

    @cached_property
    def fences(self) -> bool:
        """True if it is a fence of memory or of a proxy, and nothing else."""
        labels = [op.label if isinstance(op, Emit) else None for op in self.ops]
        return bool(labels) and all(isinstance(label, Fence | ProxyFence) for label in labels)

    # ---- control ---------------------------------------------------------------------------------------------

    @cached_property
    def control(self) -> Control | None:
        """The step after which the thread may go on elsewhere than at the next instruction; None if there is none."""
        if self._effect is not Effect.CONTROL:
            return None
        return next((op for op in self.ops if isinstance(op, Control)), None)

    @property
    def undivided(self) -> bool:
        """True if it promises that the lanes of a warp that execute it go the same way."""
        return "uni" in self.words

    @property
    def jumps(self) -> bool:
        """True if it is a branch to a label."""
        return isinstance(self.control, Jump)

    @property
    def jumps_by_table(self) -> bool:
        """True if it is a branch to one of several labels, by a number."""
        return isinstance(self.control, JumpByTable)

    @cached_property
    def targets(self) -> tuple[int, ...]:
        """The numbers of the instructions that a branch may lead to; none if it is no branch."""
        match self.control:
            case Jump(str() as label):
                return (int(label),)
            case JumpByTable(labels):
                return tuple(map(int, labels))
        return ()

    @property
    def target(self) -> int | None:
        """The number of the instruction that a branch to a label leads to; None if it is no such branch."""
        return self.targets[0] if self.jumps else None

    @property
    def calls(self) -> bool:
        """True if it calls a function."""
        return isinstance(self.control, CallFunction)

    @property
    def traps(self) -> bool:
        """True if it stops the kernel as a failure."""
        return isinstance(self.control, Trap)

    @property
    def ends(self) -> bool:
        """True if its thread leaves the function, or the kernel."""
        return isinstance(self.control, Return | EndThread)

    @property
    def changes_control(self) -> bool:
        """True if the thread may go on elsewhere than at the next instruction, or end."""
        return self.control is not None

    @cached_property
    def goes_on(self) -> bool:
        """True if the thread may come from it to the next instruction."""
        leaves = self.control is not None and not self.calls
        return self.instruction.guard is not None or not leaves

    @cached_property
    def follows(self) -> tuple[int, ...]:
        """The numbers of the instructions that may come next; a called function is not entered."""
        return (*dict.fromkeys(self.targets), *((self.instruction.number + 1,) if self.goes_on else ()))


def lowered(instruction: PtxInstruction, cluster_size: int = 1) -> LoweredInstruction:
    """What an instruction of a module does."""
    return _made(instruction, cluster_size)


@lru_cache(maxsize=1 << 15)
def _made(instruction: PtxInstruction, cluster_size: int) -> LoweredInstruction:
    return LoweredInstruction(instruction, cluster_size)


Body = tuple[LoweredInstruction, ...]


@lru_cache(maxsize=8)
def body_of(function: PtxFunction) -> Body:
    """The instructions of a function, by their numbers."""
    return tuple(lowered(instruction) for instruction in function.body or ())


def registers(operand: Operand) -> list[int]:
    """The registers in an operand, by their numbers."""
    return [register.slot for register in named_registers(operand)]


def widths(instruction: PtxInstruction) -> dict[int, int]:
    """The bits of each register that the operands of an instruction name."""
    return {register.slot: register.width for operand in instruction.operands for register in named_registers(operand)}


def named_registers(operand: Operand) -> list[Register]:
    """The registers in an operand."""
    return [register for register in registers_in([operand]) if isinstance(register, Register)]
