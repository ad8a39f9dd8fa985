"""Rows of the table: cvt and cvt.pack.

In: a Call. Out: Assigns. Settled here: which of the many forms of cvt a litmus test may write: those between integers.
In compiled modules conversions to and from the formats of 8 bits and fewer, and random rounding, give an unknown value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain

from memmodel.isa.call import Call
from memmodel.isa.rows.cases import Rule, either
from memmodel.isa.rows.row import Effect, Row, Syntax
from memmodel.isa.rows.since import FIRST, Since
from memmodel.isa.rows.slots import in_blocks, needed, optional
from memmodel.isa.rows.types import FLOATS, SIGNED, UNSIGNED, numeric_type
from memmodel.isa.scalar.compute import nearest
from memmodel.isa.scalar.lines import forms
from memmodel.program.expressions import Apply, Const, Expr
from memmodel.program.ops import Assign, Op
from memmodel.ptx.operands import Vector
from memmodel.ptx.targets import FAMILIES
from memmodel.ptx.vocabulary import S32, UNTYPED, DataType

_MOVE = "Data Movement and Conversion Instructions: "
_NARROW = {
    **dict.fromkeys(("e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "ue8m0x2", "s2f6x2", "e2m1x4"), 16),
    **dict.fromkeys(("e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4", "tf32"), 32),
    "ue5m3x2": 16,
    "e2m1x2": 8,
}
"""Formats of which several numbers share a register, and tf32: the bits of the register."""

_ONE_SCALE, _SCALED = "scaled::n1::ue8m0", "scaled::n2::ue8m0"


def _type(call: Call, slot: str) -> DataType:
    word = call.word(slot) or ""
    return numeric_type(word) or (DataType("b", _NARROW[word]) if word in _NARROW else UNTYPED)


def convert(call: Call) -> tuple[Op, ...]:
    """cvt: read as the second type, kept as the first."""
    type, source = _type(call, "type"), _type(call, "source")
    target = call.operands[0]
    if _of_integers(call):
        if call.word("sat") and has_all(type, source):
            call.refuse(f"a .{type} has every .{source}: there is nothing to saturate", "sat", "drop .sat")
        value: Expr = Apply("cvt", (call.source(call.operands[1], source, wider=True),), source)
        kept = nearest(value, source, type) if call.word("sat") else Apply("cvt", (value,), type)
        return (Assign(call.target(target, type, wider=True), kept),)
    words = [word for slot in ("rnd", "ftz", "sat", "satfinite", "relu") if (word := call.word(slot))]
    name = ".".join(("cvt", call.word("source") or "", *words))
    if type.lanes == 2 and call.word("source") == "f32" and call.word("rnd") != "rs" and not call.word("pzo"):
        high, low = (Apply(name, (call.source(operand, source),), type.element) for operand in call.operands[1:3])
        whole = DataType("b", 32)
        pair = Apply("or", (Apply("shl", (high, Const(16)), whole), low), whole)
        return (Assign(call.target(target, whole), pair),)
    register = call.target(target, type, wider=type.kind != "bf")
    if len(call.operands) == 2 and type.lanes == 1 and source.lanes == 1 and not call.word("pzo"):
        value = call.source(call.operands[1], source, wider=source.kind != "bf")
        return (Assign(register, Apply(name, (value,), type)),)
    vectors = (operand.items if isinstance(operand, Vector) else (operand,) for operand in call.operands[1:])
    return (Assign(register, _unknown(call, map(call.value, chain(*vectors)), type)),)


def _of_integers(call: Call) -> bool:
    """True if both types are integers."""
    return all(call.word(slot) in (None, *UNSIGNED, *SIGNED) for slot in ("type", "source"))


def _unknown(call: Call, values: Iterable[Expr], type: DataType) -> Expr:
    return Apply(f"opaque.{call.instruction.mnemonic}", tuple(values), type)


def pack(call: Call) -> tuple[Op, ...]:
    """cvt.pack: two numbers made as narrow as it says, the first above the second, below what c has."""
    word, whole = call.word("type") or "", DataType("b", 32)
    narrow = DataType(word[0], int(word[1:]))
    high, low = (
        Apply("and", (nearest(Apply("cvt", (call.source(a, S32),), S32), S32, narrow), Const(narrow.mask)), whole)
        for a in call.operands[1:3]
    )
    packed: Expr = Apply("or", (Apply("shl", (high, Const(narrow.width)), whole), low), whole)
    if len(call.operands) == 4:
        above = Apply("shl", (call.source(call.operands[3], whole), Const(2 * narrow.width)), whole)
        packed = Apply("or", (above, packed), whole)
    return (Assign(call.target(call.operands[0], whole), packed),)


_INTEGERS = (*UNSIGNED, *SIGNED)
_HALF_PAIRS = "f16x2|bf16x2"
_F8, _F6 = "e4m3x2|e5m2x2", "e2m3x2|e3m2x2"
_TO_INTEGER, _TO_FLOAT = ("rni", "rzi", "rmi", "rpi"), ("rn", "rz", "rm", "rp")


def has_all(type: DataType, source: DataType) -> bool:
    """True if an integer type has every number of another: then there is nothing to saturate."""
    if type.kind == source.kind:
        return type.width >= source.width
    return type.kind == "s" and type.width > source.width


def _forms() -> Iterator[Syntax]:
    integer, to_integer, to_float = either(_INTEGERS), either(_TO_INTEGER), either(_TO_FLOAT)
    yield from forms(
        f"sat? {integer} {integer}",
        # between integers and floating point
        f"{to_integer} ftz? sat? {integer} f32",
        f"{to_integer} sat? {integer} f16|bf16|f64",
        f"{to_float} ftz? sat? f32 {integer}",
        f"{to_float} sat? f16|f64 {integer}",
        f"{to_float} bf16 {integer}",
        # to a whole number, or to a type that has every number of the source
        f"{to_integer}? ftz? sat? f32 f32",
        f"{to_integer}? sat? f16 f16",
        f"{to_integer}? sat? f64 f64",
        f"{to_integer}? bf16 bf16",
        "ftz? sat? f32 f16",
        "ftz? f32 bf16",
        "ftz? sat? f64 f32",
        "sat? f64 f16|bf16",
        # to a narrower type
        f"{to_float} ftz? sat? f32 f64",
        f"{to_float} ftz? sat? f16 f32",
        f"{to_float} sat? f16 f64",
        f"{to_float}? sat? f16 bf16",
        f"{to_float} ftz? bf16 f32",
        f"{to_float} bf16 f64",
        f"{to_float}? bf16 f16",
        "rn|rz relu? satfinite? pzo? f16|bf16 f32",
        "rna satfinite? tf32 f32",
        "rn|rz satfinite? relu? pzo? tf32 f32",
        # several numbers
        Syntax(f"rn|rz relu? satfinite? pzo? {_HALF_PAIRS} f32", _TWO),
        Syntax(f"rs relu? satfinite? {_HALF_PAIRS} f32", (*_TWO, "rbits")),
        Syntax(f"rn|rz satfinite relu? pzo? {_F8}|{_F6}|e2m1x2 f32", _TWO),
        Syntax(f"rn|rz satfinite relu? pzo? {_ONE_SCALE} {_F8}|{_F6}|e2m1x2 f32", (*_TWO, "scale-factor")),
        f"rn|rz satfinite relu? pzo? {_F8}|{_F6}|e2m1x2 {_HALF_PAIRS}",
        Syntax(f"rn|rz satfinite relu? pzo? {_ONE_SCALE} {_F8}|{_F6}|e2m1x2 {_HALF_PAIRS}", _WITH_SCALE),
        f"rn relu? f16x2 {_F8}|{_F6}|e2m1x2",
        f"rn relu? satfinite? bf16x2 {_F8}|{_F6}|e2m1x2",
        Syntax(f"rn relu? satfinite? {_SCALED} bf16x2 {_F8}|{_F6}|e2m1x2", _WITH_SCALE),
        Syntax("rs relu? satfinite e4m3x4|e5m2x4|e2m3x4|e3m2x4|e2m1x4 f32", ("d", "{a, b, e, f}", "rbits")),
        Syntax("rz|rp satfinite? ue8m0x2 f32", _TWO),
        "rz|rp satfinite? ue8m0x2 bf16x2",
        "rn bf16x2 ue8m0x2",
        Syntax("rn|rz satfinite relu? s2f6x2 f32", _TWO),
        Syntax(f"rn|rz satfinite relu? {_SCALED} s2f6x2 f32", (*_TWO, "scale-factor")),
        "rn|rz satfinite relu? s2f6x2 bf16x2",
        Syntax(f"rn|rz satfinite relu? {_SCALED} s2f6x2 bf16x2", _WITH_SCALE),
        "rn satfinite? relu? bf16x2 s2f6x2",
        Syntax(f"rn satfinite? relu? {_SCALED} bf16x2 s2f6x2", _WITH_SCALE),
        Syntax("rn|rz|rp satfinite? ue5m3x2 f32", _TWO),
        Syntax(f"rn|rz satfinite? {_ONE_SCALE} ue5m3x2 f32", (*_TWO, "scale-factor")),
        f"rn|rz|rp satfinite? ue5m3x2 {_HALF_PAIRS}",
        Syntax(f"rn|rz satfinite? {_ONE_SCALE} ue5m3x2 {_HALF_PAIRS}", _WITH_SCALE),
        "rn f16x2 ue5m3x2",
        "rn satfinite? bf16x2 ue5m3x2",
        Syntax(f"rn satfinite? {_SCALED} bf16x2 ue5m3x2", _WITH_SCALE),
    )


_TWO, _WITH_SCALE = ("d", "a", "b"), ("d", "a", "scale-factor")
_FORMATS = (*_HALF_PAIRS.split("|"), *(word for word in _NARROW))
_OTHERS = ("f16", "bf16", *FLOATS, *_FORMATS)

_NARROW_SINCE = Since(version="8.6", families=FAMILIES)
_SCALES_SINCE = Since(version="9.1", alone=FAMILIES)
_LATER = {
    "ftz": Since(20, "1.4"),
    # halves
    "type=bf16|bf16x2|f16x2|tf32": Since(80, "7.0"),
    "source=bf16": Since(80, "7.1"),
    "relu": Since(80, "7.0"),
    "type=bf16 source!=f32": Since(90, "7.8"),
    "source=bf16 type!=f32": Since(90, "7.8"),
    "source=bf16 ftz": Since(90, "7.8"),
    "type=tf32 rnd!=rna": Since(90, "7.8"),
    "satfinite type=f16": Since(70, "8.1"),
    "satfinite type=bf16|bf16x2|f16x2|tf32": Since(80, "8.1"),
    "satfinite type=tf32 rnd!=rna": Since(100, "8.6"),
    # formats of 8 bits and fewer
    "type=e4m3x2|e5m2x2": Since(89, "7.8"),
    "source=e4m3x2|e5m2x2": Since(89, "7.8"),
    "type=e2m3x2|e3m2x2|e2m1x2|ue8m0x2": _NARROW_SINCE,
    "source=e2m3x2|e3m2x2|e2m1x2|ue8m0x2": _NARROW_SINCE,
    f"source={_HALF_PAIRS} type=e2m3x2|e3m2x2|e2m1x2": Since(version="9.1", families=FAMILIES),
    f"source=bf16x2 type={_F8}": Since(version="9.1", families=FAMILIES),
    f"type=bf16x2 source={_F8}|{_F6}|e2m1x2": Since(version="9.2", families=FAMILIES),
    "type=s2f6x2": _SCALES_SINCE,
    "source=s2f6x2": _SCALES_SINCE,
    **dict.fromkeys(
        (
            "pzo",
            f"scaled={_ONE_SCALE}",
            "type=ue5m3x2",
            "source=ue5m3x2",
            f"rnd=rz type={_F8}|{_F6}|e2m1x2",
        ),
        Since(version="9.4", families=frozenset({107})),
    ),
    "rnd=rs": Since(version="8.7", alone=frozenset({100, 103, 107})),
}

_row = partial(Row, ordered=True, effect=Effect.COMPUTES)

ROWS = (
    _row(
        ("cvt",),
        (
            optional("rnd", modules=(*_TO_FLOAT, *_TO_INTEGER, "rna", "rs")),
            *(
                optional(name, modules=words)
                for name, words in (
                    *((flag, (flag,)) for flag in ("ftz", "relu", "satfinite", "pzo")),
                    ("scaled", (_ONE_SCALE, _SCALED)),
                )
            ),
            optional("sat"),
            *(in_blocks(name, *_INTEGERS, what="type", modules=_OTHERS) for name in ("type", "source")),
        ),
        ("d", "a"),
        convert,
        "none",
        _MOVE + "cvt",
        sizes={"a": "source"},
        forms=tuple(_forms()),
        since=FIRST,
        later=_LATER,
    ),
    _row(
        ("cvt.pack",),
        (
            needed("sat"),
            needed("type", "u16", "s16", "u2", "s2", "u4", "s4", "u8", "s8"),
            needed("source", "s32", what="type of a and b"),
            optional("above", "b32", what="type of c"),
        ),
        ("d", "a", "b", "c?"),
        pack,
        "none",
        _MOVE + "cvt.pack",
        (
            Rule(
                "cvt.pack.sat.{type} takes what stands above its result from c",
                "write cvt.pack.sat.{type}.s32.b32",
                "type!=u16|s16 !above",
            ),
            Rule("cvt.pack.sat.{type} fills its result", "drop .b32 and c", "type=u16|s16 above"),
        ),
        sizes=dict.fromkeys(("d", "a", "b", "c"), 32),
        forms=forms(Syntax("sat u16|s16 s32", _TWO), Syntax("sat u2|s2|u4|s4|u8|s8 s32 b32", (*_TWO, "c"))),
        since=Since(72, "6.5"),
        later={"type=u2|s2|u4|s4": Since(75, "6.5")},
    ),
)
