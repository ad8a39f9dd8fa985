"""Checks of the registers of wgmma.mma_async, as steps between those of the program.

In: Program. Out: the same program, in which a thread keeps notes (registers with a `#`) of its wgmma groups and of its
registers' last uses. Settled here: touching an accumulator, or a fragment of A, before a wait that covers it is
undefined, except for accumulating on in the same registers and shape; so is a wgmma.mma_async on registers that were
used otherwise since the last wgmma.fence, or with no wgmma.fence before it ("wgmma.mma_async", "wgmma.fence").

Groups are counted from 1: `#committed` are closed, `#completed` are waited for; a register's `#group` is the group of
its last wgmma.mma_async, and `#as` what it was there. `#epoch` counts wgmma.fence; `#written` and `#read` are the
epochs in which other instructions last wrote or read a register, `#multiplied` that of its last wgmma.mma_async.
"""

from __future__ import annotations

from collections.abc import Sequence

from memmodel.base.labels import Mark, Marker
from memmodel.litmus.syntax import Instruction
from memmodel.program.expressions import Apply, Const, Expr, Get
from memmodel.program.lowered import Program, Step
from memmodel.program.ops import Assign, CommitGroup, Emit, Op, Track, UndefinedIf, WaitForGroups
from memmodel.program.uses import assigned
from memmodel.ptx.operands import Operand, Vector, registers_in
from memmodel.ptx.vocabulary import S32

HEAD = "wgmma.mma_async"

_COMMITTED, _COMPLETED, _EPOCH = Get("#committed"), Get("#completed"), Get("#epoch")
_FRAGMENT = -1
"""In `#as`: the register is a fragment of A. A positive number there names an accumulator."""


def with_register_checks(program: Program) -> Program:
    """The program with its checks; the program itself if it has no wgmma.mma_async."""
    watched = _watched(program)
    return program.rewritten(_Checked(watched).steps) if watched else program


def _watched(program: Program) -> frozenset[str]:
    """The registers that some wgmma.mma_async uses as accumulator or fragment."""
    instructions = {step.index: step.instruction for step in program.steps}
    return frozenset(
        name
        for instruction in instructions.values()
        if instruction.mnemonic.startswith(HEAD)
        for name in (*_accumulator(instruction), *_fragment(instruction))
    )


class _Checked:
    """A program being rewritten, instruction by instruction."""

    def __init__(self, watched: frozenset[str]) -> None:
        self._watched = watched
        self._accumulators: dict[tuple[tuple[str, ...], str], int] = {}

    def steps(self, whole: Sequence[Step]) -> list[Step]:
        """The steps of one instruction, with checks and notes."""
        first = whole[0]
        ops = self._around(first.instruction, [step.op for step in whole])
        return [Step(op, first.guard, first.instruction, first.index) for op in ops]

    def _around(self, instruction: Instruction, ops: list[Op]) -> list[Op]:
        if instruction.mnemonic.startswith(HEAD):
            return [*self._before_mma(instruction), *ops, *self._after_mma(instruction)]
        touched = [name for name in _touched(instruction) if name in self._watched]
        checks: list[Op] = []
        if touched:
            busy = _any([_busy(name) for name in touched])
            checks.append(UndefinedIf("a register of a wgmma.mma_async is used before a wait that covers it", busy))
        notes = [note for op in ops for note in _note(op)]
        written = {name: None for op in ops for name in assigned(op) if name in self._watched}
        notes += [Assign(f"{name}#written", _next(_EPOCH)) for name in written]
        notes += [Assign(f"{name}#read", _next(_EPOCH)) for name in touched if name not in written]
        return [*checks, *ops, *notes]

    def _before_mma(self, instruction: Instruction) -> list[Op]:
        """Checks in front of a wgmma.mma_async."""
        accumulator, fragment = _accumulator(instruction), _fragment(instruction)
        number = self._number(instruction)
        other = [_both(_busy(name), _differs(Get(f"{name}#as"), Const(number))) for name in accumulator]
        other += [_both(_busy(name), _greater(Get(f"{name}#as"), Const(0))) for name in fragment]
        used = [_now(f"{name}#written") for name in (*accumulator, *fragment)]
        used += [_now(f"{name}#read") for name in accumulator]
        used += [_both(_now(f"{name}#multiplied"), _differs(Get(f"{name}#as"), Const(number))) for name in accumulator]
        used += [_both(_now(f"{name}#multiplied"), _greater(Get(f"{name}#as"), Const(0))) for name in fragment]
        return [
            UndefinedIf("a register of a wgmma.mma_async is used before a wait that covers it", _any(other)),
            UndefinedIf("no wgmma.fence stands before this wgmma.mma_async", _equals(_EPOCH, Const(0))),
            UndefinedIf(
                "registers of this wgmma.mma_async were used after the last wgmma.fence",
                _both(_greater(_EPOCH, Const(0)), _any(used)),
            ),
        ]

    def _after_mma(self, instruction: Instruction) -> list[Op]:
        """Notes of the registers that a wgmma.mma_async uses."""
        uses = {
            **dict.fromkeys(_fragment(instruction), _FRAGMENT),
            **dict.fromkeys(_accumulator(instruction), self._number(instruction)),
        }
        notes: list[Op] = []
        for name, use in uses.items():
            notes += [Assign(f"{name}#group", _next(_COMMITTED)), Assign(f"{name}#as", Const(use))]
            notes.append(Assign(f"{name}#multiplied", _next(_EPOCH)))
        return notes

    def _number(self, instruction: Instruction) -> int:
        """What stands for the accumulator of a wgmma.mma_async: its registers and its shape."""
        shape = next((part for part in instruction.parts if part.startswith("m64n")), "")
        return self._accumulators.setdefault((_accumulator(instruction), shape), len(self._accumulators) + 1)


def _note(op: Op) -> list[Op]:
    """What a step changes in the counts of groups and fences."""
    match op:
        case Emit(Mark(Marker.WGMMA_FENCE)):
            return [Assign("#epoch", _next(_EPOCH))]
        case CommitGroup(Track.WGMMA):
            return [Assign("#committed", _next(_COMMITTED))]
        case WaitForGroups(_, Track.WGMMA, pending) if pending is not None:
            done = Apply("sub", (_COMMITTED, pending), S32)
            return [Assign("#completed", Apply("max", (_COMPLETED, done), S32))]
        case _:
            return []


def _busy(name: str) -> Expr:
    """1 if a register is in a group that no wait has covered."""
    return _greater(Get(f"{name}#group"), _COMPLETED)


def _now(note: str) -> Expr:
    """1 if that was noted since the last wgmma.fence."""
    return _equals(Get(note), _next(_EPOCH))


def _next(count: Expr) -> Expr:
    return Apply("add", (count, Const(1)), S32)


def _greater(left: Expr, right: Expr) -> Expr:
    return Apply("gt", (left, right), S32)


def _equals(left: Expr, right: Expr) -> Expr:
    return Apply("eq", (left, right), S32)


def _differs(left: Expr, right: Expr) -> Expr:
    return Apply("ne", (left, right), S32)


def _both(left: Expr, right: Expr) -> Expr:
    return Apply("and", (left, right), S32)


def _any(conditions: list[Expr]) -> Expr:
    """1 if any of these is 1. Halved again and again, so that the expression stays shallow."""
    if len(conditions) <= 1:
        return conditions[0] if conditions else Const(0)
    middle = len(conditions) // 2
    return Apply("or", (_any(conditions[:middle]), _any(conditions[middle:])), S32)


def _accumulator(instruction: Instruction) -> tuple[str, ...]:
    return _names(instruction.operands[:1])


def _fragment(instruction: Instruction) -> tuple[str, ...]:
    """The registers of matrix A; none if it is in shared memory."""
    return _names(instruction.operands[1:2]) if isinstance(instruction.operands[1], Vector) else ()


def _touched(instruction: Instruction) -> tuple[str, ...]:
    """The registers that an instruction names, its guard included."""
    guard = (instruction.guard.register,) if instruction.guard else ()
    return tuple(dict.fromkeys((*guard, *_names(instruction.operands))))


def _names(operands: tuple[Operand, ...]) -> tuple[str, ...]:
    """The registers in operands, addresses included, in order."""
    return tuple(register.name for register in registers_in(operands))
