"""Instructions of compiled modules, lowered by the rows that lower litmus tests.

In: an instruction of a module, and the size of a cluster. Out: its steps, or a `Refusal`. Settled here: what
differs for a row between the two doors. In a module a register is a number and a type (`Get` names it by its number), a
variable is an address that the launch fixes, and an address in a named state space is relative to the window of that
space (`in_space`). Which threads share a warp or a CTA is known only when the instruction runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

from memmodel.errors import InputError
from memmodel.isa.call import ADDRESS, Call
from memmodel.isa.mnemonic import read_mnemonic
from memmodel.isa.place import range_checks
from memmodel.isa.rows.row import Row
from memmodel.isa.rows.slots import WINDOW_OF
from memmodel.isa.rows.spelling import Refusal, Spelling
from memmodel.isa.table import HEADS
from memmodel.litmus.syntax import Instruction, Layout
from memmodel.program.expressions import WITHIN, AddressOf, Apply, Const, Expr, Get
from memmodel.program.ops import Op
from memmodel.program.warp_ops import WarpOp
from memmodel.program.windows import RANK_BITS
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import (
    PARTS,
    Imm,
    JumpTarget,
    Mem,
    Negated,
    Operand,
    Part,
    Reg,
    Register,
    Special,
    Sym,
    Vector,
    describe,
)
from memmodel.ptx.targets import PtxLevel
from memmodel.ptx.vocabulary import PREDICATE, U32, DataType, Proxy, Window


@lru_cache(maxsize=4096)
def spelling_of(opcode: str) -> Spelling | Refusal:
    """The row and qualifiers of an opcode of a module."""
    return read_mnemonic(opcode, Layout.MODULE, HEADS)


@lru_cache(maxsize=4096)
def head_row(opcode: str) -> Row | None:
    """The row of the longest head that an opcode begins with, whether or not its other words are legal."""
    words = opcode.split(".")
    heads = (".".join(words[:length]) for length in range(len(words), 0, -1))
    return next((row for head in heads if (row := HEADS.get(head)) is not None), None)


@lru_cache(maxsize=4096)
def missing_at(opcode: str, operands: int, level: PtxLevel) -> tuple[str, ...]:
    """What needs a newer version or another target than a module says, in an instruction with that many operands."""
    spelling = spelling_of(opcode)
    if isinstance(spelling, Refusal):
        return ()
    return tuple(text for _, text, _ in spelling.missing_at(operands, level))


def words_of(opcode: str) -> Mapping[str, str]:
    """The words of a legal opcode after its head, by slot; empty for an illegal opcode."""
    spelling = spelling_of(opcode)
    return spelling.words if isinstance(spelling, Spelling) else {}


def lower_in_module(instruction: PtxInstruction, cluster_size: int = 1) -> tuple[Op | WarpOp, ...]:
    """The steps of an instruction of a module. Raises InputError where it is illegal.

    `cluster_size`: CTAs of a cluster of the launch.
    """
    spelling, span = spelling_of(instruction.opcode), instruction.span
    if isinstance(spelling, Refusal):
        raise InputError(spelling.message, span, spelling.hint)
    row = spelling.row
    operands = row.module_operands(instruction.operands) if row.module_operands else instruction.operands
    if spelling.operand_names(len(operands)) is None:
        raise InputError(f"{spelling.operand_phrase}; {len(instruction.operands)} are given", span)
    call = _call(spelling, instruction, operands, cluster_size)
    lower = row.lower_module or row.lower
    assert lower is not None, "a row lowers for litmus tests or for modules"
    return (*range_checks(call), *lower(call))


def uniform_values(instruction: PtxInstruction) -> tuple[tuple[str, Expr], ...]:
    """The operands of a legal instruction that all threads which execute it together must have equal, by name. Of a
    memory operand, its base.
    """
    spelling, operands = spelling_of(instruction.opcode), instruction.operands
    assert isinstance(spelling, Spelling)
    call = _call(spelling, instruction, operands)
    return tuple(
        (name.strip("[]"), call.value(operand.base if isinstance(operand, Mem) else operand, ADDRESS))
        for name, operand in zip(spelling.operand_names(len(operands)) or (), operands, strict=False)
        if name in spelling.row.uniform and not isinstance(operand, Vector)
    )


def _call(
    spelling: Spelling, instruction: PtxInstruction, operands: tuple[Operand, ...], cluster_size: int = 1
) -> ModuleCall:
    spelled = Instruction(instruction.opcode, operands, None, instruction.span, instruction.span)
    return ModuleCall(spelling, spelled, None, cluster_size)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class ModuleCall(Call):
    """What a lowering function sees of an instruction of a module. `launched`: CTAs of a cluster of the launch."""

    launched: int = 1

    @property
    def in_module(self) -> bool:
        return True

    @property
    def in_columns(self) -> bool:
        return False

    @property
    def own_rank(self) -> Expr:
        return Get("%cluster_ctarank")

    @property
    def first_window(self) -> int:
        return 0

    @property
    def window_bits(self) -> int:
        return RANK_BITS

    @property
    def cluster_ranks(self) -> tuple[int, ...]:
        return tuple(range(self.launched))

    @property
    def cluster_size(self) -> int:
        return self.launched

    @property
    def boolean(self) -> DataType:
        return PREDICATE

    # ---- operands --------------------------------------------------------------------------------------------

    def target(self, operand: Operand, type: DataType, *, wider: bool = False) -> str:
        self._check_size(operand, type, wider=wider)
        return self.register(operand)

    def source(self, operand: Operand, type: DataType, *, wider: bool = False) -> Expr:
        self._check_size(operand, type, wider=wider)
        return self.value(operand, type)

    def _check_size(self, operand: Operand, type: DataType, *, wider: bool) -> None:
        """Operands have the size of their type ("Type Information for Instructions and Operands")."""
        if isinstance(operand, Register) and (operand.width < type.width or (operand.width > type.width and not wider)):
            what = f"%{operand.name.lstrip('%')} has {operand.width} bits"
            self.fail(f"{what}, and {self.instruction.mnemonic} takes {type.width} there", operand)

    def _written(self, register: Reg) -> str:
        assert isinstance(register, Register), "registers of a module are declared"
        return str(register.slot)

    def _named_value(self, operand: Operand, type: DataType | None) -> Expr | None:
        match operand:
            case Register():
                return Get(str(operand.slot))
            case Special(name):
                return Get(name)
            case Negated(register):
                return Apply("not", (self.value(register),), PREDICATE)
            case Sym():
                return self.address_of(operand, operand.offset)
            case Part(register, selector):
                first, width = PARTS[selector]
                whole = type or U32
                moved = Apply("shr", (self.value(register), Const(first)), U32)
                return Apply("cvt", (Apply("cvt", (moved,), DataType(whole.kind, width)),), whole)
        return None

    def constant(self, operand: Operand) -> int | None:
        return operand.value if isinstance(operand, Imm) else None

    def is_predicate(self, register: Reg) -> bool:
        return isinstance(register, Register) and register.kind == "pred"

    def label(self, operand: Operand) -> str:
        """The number of the instruction at a label."""
        if isinstance(operand, JumpTarget) and operand.at >= 0:
            return str(operand.at)
        return self.fail(f"{self.head} goes to a label of this function, and this is {describe(operand)}", operand)

    # ---- memory ----------------------------------------------------------------------------------------------

    @property
    def window(self) -> Window:
        """The window of the state space; an address tells whether it is one of a parameter of the entry or a call."""
        named = WINDOW_OF | {"param::func": Window.FUNCTION_PARAM, "param": Window.ANY_PARAM}
        return named.get(self.word("space") or "", Window.GENERIC)

    def location(self, operand: Operand, proxy: Proxy = Proxy.GENERIC) -> Expr:
        """The generic address at a memory operand."""
        if not isinstance(operand, Mem):
            self.no_memory(operand)
        return self.in_space(self.location_of(operand), self.word("space"))

    def location_of(self, operand: Mem) -> Expr:
        """The number at a memory operand, as the instruction has it."""
        base = self.value(operand.base, ADDRESS)
        if isinstance(base, AddressOf):
            return AddressOf(base.name, base.offset + operand.offset)
        return Apply("add", (base, Const(operand.offset)), ADDRESS) if operand.offset else base

    def in_space(self, address: Expr, space: str | None) -> Expr:
        """An address of a state space as one that names this space, so that it is found there."""
        if isinstance(address, Apply) and address.op.startswith(WITHIN):
            return address
        return address if space is None else Apply(f"{WITHIN}{space.partition('::')[0]}", (address,), ADDRESS)

    def address_of(self, symbol: Sym, offset: int) -> AddressOf:
        return AddressOf(symbol.name, offset)

    # ---- errors ----------------------------------------------------------------------------------------------

    def fail(self, message: str, operand: Operand | None = None, hint: str | None = None) -> NoReturn:
        raise InputError(message, self.instruction.span, hint)

    def refuse(self, message: str, slot: str, hint: str | None = None) -> NoReturn:
        raise InputError(message, self.instruction.span, hint)
