"""Rows of the table: comparisons, and choices by a sign.

In: a Call. Out: Assigns, no events. Settled here: how a comparison is combined with a predicate, and what setp writes
to a second one ("Comparison and Selection Instructions: setp", "set", "slct").
"""

from __future__ import annotations

from functools import partial

from memmodel.isa.call import Call
from memmodel.isa.rows.cases import Rule, either
from memmodel.isa.rows.row import Effect, Row
from memmodel.isa.rows.since import FIRST, Since
from memmodel.isa.rows.slots import in_blocks, needed, optional
from memmodel.isa.rows.types import BITS, FLOATS, INTEGERS, LOGICAL, SIGNED
from memmodel.isa.scalar.compute import type_of
from memmodel.isa.scalar.lines import HALVES, NO_FLOATS, forms
from memmodel.program.expressions import Apply, Const, Expr, Get
from memmodel.program.ops import Assign, Op
from memmodel.ptx.operands import Operand, Pair
from memmodel.ptx.vocabulary import DataType

_ORDERS = ("eq", "ne", "lt", "le", "gt", "ge")
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
"""Names that comparisons of unsigned numbers have as well."""

_COMPARE = (*_ORDERS, *_UNSIGNED)
_UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
"""Comparisons of floating-point numbers that also hold, or ask, where one of them is NaN."""

_ONES = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}
"""What set leaves where a comparison holds, if its result is a floating-point number: 1.0."""

_PAGE = "Comparison and Selection Instructions: "


def _sources(call: Call, type: DataType) -> tuple[Expr, Expr]:
    first, second = (call.source(operand, type) for operand in call.operands[1:3])
    return first, second


def _compared(call: Call, type: DataType, lane: int = 0) -> Expr:
    """1 if the two sources compare so, else 0; of a packed type, their numbers in that lane."""
    values, each = _sources(call, type), type.element
    name = call.word("cmp") or ""
    name = ".".join(word for word in (_UNSIGNED.get(name, name), call.word("ftz")) if word)
    if lane:
        first, second = (Apply("shr", (a, Const(lane * each.width)), DataType("b", type.width)) for a in values)
        values = first, second
    return Apply(name, values, each)


def _combined(call: Call, compared: Expr) -> Expr:
    """The result of the comparison and the predicate c, as the instruction combines them."""
    word = call.word("bool")
    if (word is None) != (len(call.operands) == 3):
        has = f"{call.head}.{word} combines its comparison with a predicate" if word else "a predicate is combined"
        call.fail(
            f"{has}, and {len(call.operands)} operands are given", hint="write .and, .or or .xor, and a predicate"
        )
    return compared if word is None else Apply(word, (compared, call.predicate(call.operands[3])), call.boolean)


def setp(call: Call) -> tuple[Op, ...]:
    """setp: 1 or 0; a second predicate has the comparison the other way, combined alike.

    Of a packed type it has the comparison of the upper halves.
    """
    target, type = call.operands[0], type_of(call)
    both = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    if str(type) in ("f16", "bf16") and isinstance(target, Pair):
        call.fail(f"{call.instruction.mnemonic} writes one predicate", target)
    first, second = (
        None if operand is None else _predicate(call, operand, sink=isinstance(target, Pair)) for operand in both
    )
    compared = _compared(call, type)
    steps: list[Op] = []
    if second is not None:
        # The first predicate may be among the sources of the second one.
        other = _compared(call, type, 1) if type.lanes > 1 else Apply("eq", (compared, Const(0)), call.boolean)
        steps.append(Assign("$second", _combined(call, other)))
    if first is not None:
        steps.append(Assign(first, _combined(call, compared)))
    return tuple(steps) if second is None else (*steps, Assign(second, Get("$second")))


def _predicate(call: Call, operand: Operand, *, sink: bool) -> str | None:
    register = call.destination(operand, sink=sink)
    return None if register is None else call.target(operand, call.boolean)


def set_all(call: Call) -> tuple[Op, ...]:
    """set: all bits of a word, or none; of a floating-point number, one or zero; of a packed type for each lane."""
    type = type_of(call)
    source = type if call.word("source") is None else type_of(call, "source")
    whole = DataType("b", type.width) if type.floating or type.lanes > 1 else type
    each = type.element if type.floating else DataType(type.kind, type.width // source.lanes)
    ones = Const(_ONES.get(str(each), -1 if each == type else each.mask))
    result: Expr = Const(0)
    for lane in range(source.lanes):
        compared = _combined(call, _compared(call, source, lane))
        chosen: Expr = Apply("selp", (ones, Const(0), compared), whole)
        if lane:
            chosen = Apply("or", (Apply("shl", (chosen, Const(lane * each.width)), whole), result), whole)
        result = chosen
    return (Assign(call.target(call.operands[0], type), result),)


def slct(call: Call) -> tuple[Op, ...]:
    """slct: the first source if the last one is not negative; -0.0 is not, and NaN is."""
    type, other = type_of(call), type_of(call, "sign")
    first, second = (call.source(operand, type) for operand in call.operands[1:3])
    test = "ge.ftz" if call.word("ftz") else "ge"
    sign = Apply(test, (call.source(call.operands[3], other), Const(0)), other)
    chosen = DataType("b", type.width) if type.floating else type
    return (Assign(call.target(call.operands[0], type), Apply("selp", (first, second, sign), chosen)),)


_FTZ = optional("ftz", modules=("ftz",))
_CMP = needed("cmp", *_COMPARE, modules=_UNORDERED)
_BOOL = optional("bool", "and", "or", "xor")
_SIDES = (*LOGICAL[:3], *INTEGERS)
_OF_FLOATS = either((*_ORDERS, *_UNORDERED))


def _lines(results: str, sources: str, flushed: bool = False) -> tuple[str, ...]:
    """The syntax lines of a comparison of floating-point numbers: how its result and its sources may be typed."""
    return (f"{_OF_FLOATS} bool? {'ftz? ' if flushed else ''}{results} {sources}",)


def _integer_lines(results: str) -> tuple[str, ...]:
    """The syntax lines of a comparison of integers."""
    return (
        f"eq|ne bool? {results} {either(_SIDES)}",
        f"lt|le|gt|ge bool? {results} {either(INTEGERS)}",
        f"lo|ls|hi|hs bool? {results} u16|u32|u64",
    )


def _rules(slot: str) -> tuple[Rule, ...]:
    return (
        Rule(
            "untyped bits are only compared with .eq and .ne",
            "use a .u or .s type",
            f"cmp={either(_COMPARE[2:])} {slot}={either(BITS)}",
        ),
        Rule(
            ".{cmp} compares unsigned numbers",
            "write .lt, .le, .gt or .ge, or a .u type",
            f"{slot}={either(SIGNED[1:])} cmp={either(_UNSIGNED)}",
        ),
    )


_FLOATING = (*HALVES, *FLOATS)
_PACKED = ("u8x4", "s8x4", "u16x2", "s16x2")

_LATER = {
    "ftz": Since(20, "1.4"),
    "type=f16|f16x2": Since(53, "4.2"),
    "type=bf16|bf16x2": Since(90, "7.8"),
}

_row = partial(Row, ordered=True, effect=Effect.COMPUTES, since=FIRST)

ROWS = (
    _row(
        ("setp",),
        (_CMP, _BOOL, _FTZ, in_blocks("type", *_SIDES, refused=NO_FLOATS, modules=_FLOATING)),
        ("p", "a", "b", "{!}c?"),
        setp,
        "none",
        _PAGE + "setp",
        rules=_rules("type"),
        later=_LATER,
        forms=forms(*_integer_lines(""), *_lines("", "f32|f16|f16x2", flushed=True), *_lines("", "f64|bf16|bf16x2")),
        written="p{|q}, a, b; with .and, .or, .xor: p{|q}, a, b, {!}c",
    ),
    _row(
        ("set",),
        (
            _CMP,
            _BOOL,
            _FTZ,
            needed("type", "u32", "s32", refused=NO_FLOATS, modules=("u16", "s16", "f32", *HALVES, *_PACKED)),
            needed("source", *_SIDES, what="type of the sources", refused=NO_FLOATS, modules=_FLOATING),
        ),
        ("d", "a", "b", "{!}c?"),
        set_all,
        "none",
        _PAGE + "set",
        sizes={"a": "source", "b": "source"},
        rules=_rules("source"),
        later={
            **_LATER,
            "type=u16|s16": Since(53, "6.5"),
            "source=f16|f16x2": Since(53, "4.2"),
            "source=f16|f16x2 type=u32|s32": Since(53, "6.5"),
            "source=bf16|bf16x2": Since(90, "7.8"),
            f"type={either(_PACKED)}": Since(version="9.4", families=frozenset({107})),
        },
        forms=forms(
            *_integer_lines("u32|s32|f32|f16|bf16"),
            *_lines("u32|s32|f32|f16", "f32", flushed=True),
            *_lines("u32|s32|f32|f16|bf16", "f64"),
            *_lines("u16|s16|u32|s32|f16", "f16", flushed=True),
            *_lines("bf16", "f16|f32"),
            *_lines("u16|s16|u32|s32|bf16", "bf16"),
            *_lines("u32|s32|f16x2", "f16x2", flushed=True),
            *_lines("u32|s32|bf16x2", "bf16x2"),
            f"{either(_COMPARE)} {either(_PACKED)}",
        ),
        written="d, a, b; with .and, .or, .xor: d, a, b, {!}c",
    ),
    _row(
        ("slct",),
        (
            _FTZ,
            needed("type", *LOGICAL[1:3], "b16", *INTEGERS, refused=NO_FLOATS, modules=FLOATS),
            needed("sign", "s32", what="type of c", refused={"f32": NO_FLOATS["f32"]}, modules=("f32",)),
        ),
        ("d", "a", "b", "c"),
        slct,
        "none",
        _PAGE + "slct",
        later={"ftz": Since(20, "1.4")},
        sizes={"c": 32},
        forms=forms("type s32", "ftz? type f32"),
    ),
)
