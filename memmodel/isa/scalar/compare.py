"""Rows of the table: comparisons, and choices by a sign.

In: a Call. Out: Assigns, no events. Settled here: how a comparison is combined with a predicate, and what setp writes
to a second one ("Comparison and Selection Instructions: setp", "set", "slct").
"""

from __future__ import annotations

from memmodel.isa.call import Call
from memmodel.isa.row import BITS, FLOATS, INTEGERS, LOGICAL, UNSIGNED, Need, Row, Rule, Slot, data_type
from memmodel.program.expressions import Apply, Const, Expr, Get
from memmodel.program.ops import Assign, Op
from memmodel.ptx.operands import Pair
from memmodel.ptx.vocabulary import UNTYPED, DataType

_COMPARE = ("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs")
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
"""Names that comparisons of unsigned numbers have as well."""

_S32 = DataType("s", 32)
_PAGE = "Comparison and Selection Instructions: "


def _compared(call: Call, type: DataType) -> Expr:
    """Do the two sources compare so?"""
    first, second = (call.value(operand, type) for operand in call.operands[1:3])
    name = call.word("cmp") or ""
    return Apply(_UNSIGNED.get(name, name), (first, second), type)


def _combined(call: Call, found: Expr) -> Expr:
    """What was found and the predicate c, as the instruction combines them."""
    word = call.word("bool")
    if (word is None) != (len(call.operands) == 3):
        has = f"{call.head}.{word} combines its comparison with a predicate" if word else "a predicate is combined"
        call.fail(
            f"{has}, and {len(call.operands)} operands are given", hint="write .and, .or or .xor, and a predicate"
        )
    return found if word is None else Apply(word, (found, call.predicate(call.operands[3])), UNTYPED)


def setp(call: Call) -> tuple[Op, ...]:
    """setp: 1 or 0; a second predicate has the comparison the other way, combined alike."""
    target = call.operands[0]
    both = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    first, second = (None if one is None else call.destination(one, sink=isinstance(target, Pair)) for one in both)
    found = _compared(call, call.type)
    steps: list[Op] = []
    if second is not None:
        # The first predicate may be among the sources of the second one.
        steps.append(Assign("$second", _combined(call, Apply("eq", (found, Const(0)), UNTYPED))))
    if first is not None:
        steps.append(Assign(first, _combined(call, found)))
    return tuple(steps) if second is None else (*steps, Assign(second, Get("$second")))


def set_all(call: Call) -> tuple[Op, ...]:
    """set: all bits of a word, or none."""
    found = _combined(call, _compared(call, data_type(call.word("source") or "") or UNTYPED))
    return (Assign(call.register(call.operands[0]), Apply("selp", (Const(-1), Const(0), found), call.type)),)


def slct(call: Call) -> tuple[Op, ...]:
    """slct: the first source if the last one is not negative."""
    first, second = (call.value(operand) for operand in call.operands[1:3])
    sign = Apply("ge", (call.value(call.operands[3], _S32), Const(0)), _S32)
    return (Assign(call.register(call.operands[0]), Apply("selp", (first, second, sign), call.type)),)


_NO_FLOATS = {
    word: ("floating-point arithmetic is not modelled", "use an integer type") for word in ("f16", "bf16", *FLOATS)
}
_CMP = Slot("cmp", _COMPARE, "comparison", Need.ALWAYS)
_BOOL = Slot("bool", ("and", "or", "xor"), "combination")
_SIDES = (*LOGICAL[:3], *INTEGERS)


def _rules(slot: str) -> tuple[Rule, ...]:
    return (
        Rule(
            "untyped bits are only compared with .eq and .ne",
            "use a .u or .s type",
            {"cmp": _COMPARE[2:], slot: BITS},
            at=slot,
        ),
        Rule(
            ".{cmp} compares unsigned numbers",
            "write .lt, .le, .gt or .ge, or a .u type",
            {"cmp": tuple(_UNSIGNED), slot: tuple(word for word in INTEGERS if word not in UNSIGNED)},
            at="cmp",
        ),
    )


ROWS = (
    Row(
        ("setp",),
        (_CMP, _BOOL, Slot("type", _SIDES, "type", Need.BLOCKS, refused=_NO_FLOATS)),
        ("p", "a", "b", "{!}c?"),
        setp,
        "none",
        _PAGE + "setp",
        rules=_rules("type"),
        ordered=True,
        written="p{|q}, a, b; with .and, .or, .xor: p{|q}, a, b, {!}c",
    ),
    Row(
        ("set",),
        (
            _CMP,
            _BOOL,
            Slot("type", ("u32", "s32"), "type", Need.ALWAYS, refused=_NO_FLOATS),
            Slot("source", _SIDES, "type of the sources", Need.ALWAYS, refused=_NO_FLOATS),
        ),
        ("d", "a", "b", "{!}c?"),
        set_all,
        "none",
        _PAGE + "set",
        rules=_rules("source"),
        ordered=True,
        written="d, a, b; with .and, .or, .xor: d, a, b, {!}c",
    ),
    Row(
        ("slct",),
        (
            Slot("type", (*LOGICAL[1:3], "b16", *INTEGERS), "type", Need.ALWAYS, refused=_NO_FLOATS),
            Slot("sign", ("s32",), "type of c", Need.ALWAYS, refused={"f32": _NO_FLOATS["f32"]}),
        ),
        ("d", "a", "b", "c"),
        slct,
        "none",
        _PAGE + "slct",
        ordered=True,
    ),
)
