"""Rows of the table: video instructions, which compiled modules alone have.

In: a Call. Out: one Assign. Settled here: which part of an operand is meant; `program.arith.video` computes the result.
Source: PTX ISA "Scalar Video Instructions", "SIMD Video Instructions".
"""

from __future__ import annotations

from memmodel.isa.call import Call
from memmodel.isa.rows.row import Effect, Row
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import Slot, needed, optional
from memmodel.isa.rows.types import numeric_type
from memmodel.isa.scalar.lines import forms
from memmodel.program.expressions import Apply, Expr
from memmodel.program.ops import Assign, Op
from memmodel.ptx.operands import Operand, Part
from memmodel.ptx.vocabulary import U32, DataType

_TYPES = ("u32", "s32")


def video(call: Call) -> tuple[Op, ...]:
    """d := the operation on a, b and perhaps c; or a part of d, and c elsewhere."""
    target, *operands = call.operands
    types = [numeric_type(call.word(slot) or "") or U32 for slot in ("first", "second")]
    second = next((word for word in ("add", "min", "max") if call.word("op") == word), "")
    name = call.instruction.mnemonic
    if isinstance(target, Part):
        if second or call.head[-1] in "24" or call.head == "vmad":
            call.fail(f"{name} does not write to a part of a register", target)
        name, target = f"{name}.into.{target.selector}", target.register
    wanted = 3 if second or ".into." in name or call.head[-1] in "24" or call.head == "vmad" else 2
    if len(operands) != wanted:
        call.fail(f"{call.instruction.mnemonic} takes {wanted} sources here; {len(operands)} are given")
    values = [_value(call, operand, type) for operand, type in zip(operands, (*types, U32), strict=False)]
    return (Assign(call.target(target, U32), Apply(name, tuple(values), U32)),)


def _value(call: Call, operand: Operand, type: DataType) -> Expr:
    return call.value(operand, type) if isinstance(operand, Part) else call.source(operand, U32)


_SOURCES = tuple(
    needed(name, *_TYPES, what=f"type of {operand}") for name, operand in (("first", "a"), ("second", "b"))
)
_RESULT = needed("type", *_TYPES, what="type of d")
_SECOND = optional("op", "add", "min", "max", what="second operation")
_COMPARE = needed("cmp", "eq", "ne", "lt", "le", "gt", "ge")
_MODE = needed("mode", "clamp", "wrap", what="what a large amount does")
_SCALE = optional("scale", "shr7", "shr15")
_PLUS = optional("po")
_SCALAR = "Scalar Video Instructions: "
_SIMD = "SIMD Video Instructions: "


def _row(heads: tuple[str, ...], slots: tuple[Slot, ...], page: str, *lines: str) -> Row:
    since = Since(30, "3.0") if page == _SIMD else Since(20, "2.0")
    return Row(
        heads,
        slots,
        ("d", "a", "b", "c?"),
        None,
        "none",
        page + ", ".join(heads),
        lower_module=video,
        since=since,
        forms=forms(*lines),
        effect=Effect.COMPUTES,
    )


_BASIC = ("add", "sub", "absdiff", "min", "max")

ROWS = (
    _row(
        tuple(f"v{name}" for name in _BASIC),
        (_RESULT, *_SOURCES, optional("sat"), _SECOND),
        _SCALAR,
        "type first second sat? op?",
    ),
    _row(
        ("vshl", "vshr"), (_RESULT, *_SOURCES, optional("sat"), _MODE, _SECOND), _SCALAR, "type first u32 sat? mode op?"
    ),
    _row(("vmad",), (_RESULT, *_SOURCES, _PLUS, optional("sat"), _SCALE), _SCALAR, "type first second po? sat? scale?"),
    _row(("vset",), (*_SOURCES, _COMPARE, _SECOND), _SCALAR, "first second cmp op?"),
    _row(
        tuple(f"v{name}{lanes}" for lanes in (2, 4) for name in (*_BASIC, "avrg")),
        (_RESULT, *_SOURCES, optional("sat"), _SECOND),
        _SIMD,
        "type first second sat?",
        "type first second add",
    ),
    _row(("vset2", "vset4"), (*_SOURCES, _COMPARE, _SECOND), _SIMD, "first second cmp add?"),
)
