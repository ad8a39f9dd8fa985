"""An instruction of a compiled module as its row and its steps say what it does.

In: a `PtxInstruction`. Out: `lowered`, its `LoweredInstruction`: the registers that it reads and writes, its effect,
where it leads. Each is made once. An instruction that is not known writes its first operand, as far as anyone can say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from memmodel.base.labels import Access
from memmodel.errors import InputError
from memmodel.isa.module import Surroundings, head_row, lower_in_module
from memmodel.isa.row import Effect, Row, Together
from memmodel.program.ops import Assign, Op, Read, UndefinedIf, Write
from memmodel.program.unknowns import Compiled, in_register
from memmodel.program.uses import results_of
from memmodel.program.warp_ops import WarpOp
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import (
    Arguments,
    JumpTarget,
    Mem,
    Negated,
    Operand,
    Pair,
    Part,
    Register,
    TensorOperand,
    Vector,
)
from memmodel.ptx.vocabulary import Window

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

    @cached_property
    def _lowered(self) -> tuple[tuple[Op | WarpOp, ...], InputError | None]:
        try:
            return lower_in_module(self.instruction, Surroundings(self.cluster_size)), None
        except InputError as error:
            return (), error
        except AttributeError:  # a row that asks for what only a litmus test has
            return (), None

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
        return tuple(slot for operand, result in self._operands() if result for slot in registers(operand))

    @cached_property
    def sources(self) -> frozenset[int]:
        """The registers that its operands read."""
        return frozenset(slot for operand, result in self._operands() if not result for slot in registers(operand))

    @cached_property
    def reads(self) -> frozenset[int]:
        """The registers that it reads, that of its guard included."""
        guard = self.instruction.guard
        return self.sources if guard is None else self.sources | {guard.slot}

    def _operands(self) -> Iterator[tuple[Operand, bool]]:
        """Its operands, each with whether it receives a result."""
        results = int(self.instruction.words[0] not in _CONTROL) if self.row is None else self.row.results
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
        """True if it changes registers of its thread alone, and knows nothing but its operands."""
        return self.row is not None and self.row.effect is Effect.COMPUTES

    @cached_property
    def without_effect(self) -> bool:
        """True if no other thread can tell whether it is executed: it computes, jumps, or lets time pass."""
        row = self.row
        alone = row is not None and row.together is Together.THREAD
        return self.jumps or (alone and row is not None and row.effect in (Effect.COMPUTES, Effect.NOTHING))

    @cached_property
    def tests_phase(self) -> bool:
        """True if it asks whether a phase of an mbarrier object is over, and writes the answer."""
        return self.row is not None and self.row.tests

    @cached_property
    def loads(self) -> bool:
        """True if it reads memory into registers at once and leaves memory as it is."""
        return any(isinstance(op, Read) for op in self.ops) and not any(isinstance(op, Write) for op in self.ops)

    @cached_property
    def stores(self) -> bool:
        """True if it writes registers to memory at once, and does not read memory."""
        return any(isinstance(op, Write) for op in self.ops) and not any(isinstance(op, Read) for op in self.ops)

    @cached_property
    def atomic(self) -> bool:
        """True if it reads and writes memory in one atomic operation."""
        return any(isinstance(op, Write) and op.rmw for op in self.ops)

    @cached_property
    def access(self) -> Access | None:
        """The label of the first access of memory that it makes at once; None if it makes none."""
        return next((op.label for op in self.ops if isinstance(op, Read | Write)), None)

    @cached_property
    def private(self) -> bool:
        """True if it loads or stores what no other thread writes: local memory, constants, parameters."""
        regions = [op.region for op in self.ops if isinstance(op, Read | Write)]
        return bool(regions) and all(getattr(region, "window", None) in PRIVATE for region in regions)

    # ---- control ---------------------------------------------------------------------------------------------

    @cached_property
    def jumps(self) -> bool:
        """True if it is a branch to a label."""
        return self.instruction.words[0] == "bra"

    @cached_property
    def target(self) -> int | None:
        """The number of the instruction that a branch leads to; None if it is no branch to a label of its function."""
        label = self.instruction.operands[0] if self.jumps and self.instruction.operands else None
        return label.at if isinstance(label, JumpTarget) else None

    @cached_property
    def jumps_by_table(self) -> bool:
        """True if it is a branch to one of several labels, by a number."""
        return self.instruction.words[0] == "brx"

    @cached_property
    def calls(self) -> bool:
        """True if it calls a function."""
        return self.instruction.words[0] == "call"

    @cached_property
    def traps(self) -> bool:
        """True if it stops the kernel as a failure."""
        return self.instruction.words[0] == "trap"

    @cached_property
    def ends(self) -> bool:
        """True if its thread leaves the function, or the kernel."""
        return self.instruction.words[0] in ("ret", "exit")

    @cached_property
    def goes_on(self) -> bool:
        """True if the thread may come from it to the next instruction."""
        leaves = self.jumps or self.jumps_by_table or self.ends or self.traps
        return self.instruction.guard is not None or not leaves


_CONTROL = ("bra", "brx", "call", "ret", "exit", "trap", "brkpt")


@lru_cache(maxsize=1 << 15)
def lowered(instruction: PtxInstruction, cluster_size: int = 1) -> LoweredInstruction:
    """What an instruction of a module does."""
    return LoweredInstruction(instruction, cluster_size)


def registers(operand: Operand) -> list[int]:
    """The registers in an operand, by their numbers."""
    return [register.slot for register in named_registers(operand)]


def widths(instruction: PtxInstruction) -> dict[int, int]:
    """The bits of each register that the operands of an instruction name."""
    return {register.slot: register.width for item in instruction.operands for register in named_registers(item)}


def named_registers(operand: Operand) -> list[Register]:
    """The registers in an operand."""
    if isinstance(operand, Register):
        return [operand]
    if isinstance(operand, Negated | Part):
        return named_registers(operand.operand if isinstance(operand, Negated) else operand.register)
    if isinstance(operand, Pair):
        return [*named_registers(operand.first), *named_registers(operand.second)]
    if isinstance(operand, Vector | Arguments):
        return [register for element in operand.items for register in named_registers(element)]
    if isinstance(operand, Mem | TensorOperand):
        parts = operand.items if isinstance(operand, TensorOperand) else (operand.base,)
        return [register for part in parts for register in named_registers(part)]
    return []
