"""Rows of the table: instructions that only compute. They make no events; registers carry values and dependencies.

In: a Call. Out: Assigns. Settled here: the operation and type of each; `program.arith` says what it computes. Compiled
modules have floating-point numbers and several numbers in one word too: `forms` has the syntax lines of their pages.
"""

from __future__ import annotations

from memmodel.isa.call import Call
from memmodel.isa.rows.cases import Rule, either
from memmodel.isa.rows.row import Effect, Row, Syntax
from memmodel.isa.rows.since import FIRST, Since
from memmodel.isa.rows.slots import in_blocks, optional
from memmodel.isa.rows.types import FLOATS, FOUR_NUMBERS, INTEGERS, LOGICAL, numeric_type
from memmodel.isa.scalar.lines import computing, forms
from memmodel.program.arith import double
from memmodel.program.expressions import Apply, Const, Expr, Get
from memmodel.program.ops import Assign, Op, UndefinedIf, Unmodelled
from memmodel.ptx.operands import Imm, Operand, Pair, Vector
from memmodel.ptx.vocabulary import U32, UNTYPED, DataType

_ARITH = "Integer Arithmetic Instructions: "
_LOGIC = "Logic and Shift Instructions: "
_MOVE = "Data Movement and Conversion Instructions: "
_SELECTION = "Comparison and Selection Instructions: "
WIDE = DataType("s", 64)
MODIFIERS = ("rnd", "ftz", "sat", "relu", "NaN", "xorsign", "abs", "oob", "approx")
"""Slots whose words are part of the name of an operation (`arith`), in this order."""


# ---- what lowering functions share -----------------------------------------------------------------------------------


def type_of(call: Call, slot: str = "type") -> DataType:
    """The type in a slot; without one (column layout) the default."""
    return numeric_type(call.word(slot) or "") or UNTYPED


def named(call: Call, head: str | None = None) -> str:
    """The name of the operation: the head of the instruction and its modifiers."""
    words = (call.word(slot) for slot in MODIFIERS)
    return ".".join([head or call.head, *(word for word in words if word)])


def _sources(call: Call, type: DataType) -> tuple[Expr, ...]:
    return tuple(call.source(operand, type) for operand in call.operands[1:])


def _assign(call: Call, value: Expr, type: DataType) -> tuple[Op, ...]:
    return (Assign(call.target(call.operands[0], type), value),)


def nearest(value: Expr, source: DataType, type: DataType) -> Expr:
    """The number of a type that is nearest to a value of another one ("cvt": .sat)."""
    signed = type.kind == "s"
    least, most = -(1 << type.width - 1) if signed else 0, (1 << type.width - signed) - 1
    if source.wrap(least) == least:
        value = Apply("max", (value, Const(least)), source)
    if source.wrap(most) == most:
        value = Apply("min", (value, Const(most)), source)
    return Apply("cvt", (value,), type)


# ---- lowering --------------------------------------------------------------------------------------------------------


def operate(call: Call) -> tuple[Op, ...]:
    """d := head(sources), in the instruction's type."""
    type = type_of(call)
    return _assign(call, Apply(named(call), _sources(call, type), type), type)


def divide(call: Call) -> tuple[Op, ...]:
    """div and rem. The result of a division by zero is unspecified.

    A litmus test that divides by zero is not modelled; in a compiled module the result is an unknown value.
    """
    type = type_of(call)
    if call.in_module:
        return operate(call)
    by_zero = Unmodelled(
        f"{call.head} by zero gives an unspecified value", Apply("eq", (call.value(call.operands[2]), Const(0)), type)
    )
    known = call.constant(call.operands[2])
    return operate(call) if known is not None and type.wrap(known) else (by_zero, *operate(call))


def saturate(call: Call) -> tuple[Op, ...]:
    """add and sub; with .sat the result is the nearest number of the type."""
    type = type_of(call)
    if call.word("source") is not None:
        return _mixed(call)
    if call.word("sat") is None or type.floating or type.lanes > 1:
        return operate(call)
    sources = tuple(Apply("cvt", (source,), type) for source in _sources(call, type))
    return _assign(call, nearest(Apply(call.head, sources, WIDE), WIDE, type), type)


def _mixed(call: Call) -> tuple[Op, ...]:
    """add, sub, mul and fma whose sources differ in type from the result ("Mixed Precision ...", "Alternate
    Floating-Point").

    If the type is a single number, all sources but the last are converted.
    """
    type, source = type_of(call), type_of(call, "source")
    *narrow, last = call.operands[1:]
    if type.lanes > 1 or not type.floating:  # several at once: what they give is not computed
        named_types = [type_of(call, slot) for slot in ("source", "third", "fourth") if call.word(slot)]
        types = (*named_types, *[type] * (len(call.operands) - 1 - len(named_types)))
        sources = tuple(call.source(a, t) for a, t in zip(call.operands[1:], types, strict=True))
        return _assign(call, Apply(f"opaque.{call.instruction.mnemonic}", sources, type), type)
    converted = tuple(Apply(f"cvt.{source}", (call.source(operand, source),), type) for operand in narrow)
    return _assign(call, Apply(named(call), (*converted, call.source(last, type)), type), type)


def fuse(call: Call) -> tuple[Op, ...]:
    """fma."""
    return _mixed(call) if call.word("source") is not None else operate(call)


def count(call: Call) -> tuple[Op, ...]:
    """popc, clz and bfind: a .u32, whatever the type of the source."""
    type, name = type_of(call), "bfind.shiftamt" if call.word("shiftamt") else call.head
    return _assign(call, Apply("cvt", (Apply(name, _sources(call, type), type),), U32), U32)


def funnel(call: Call) -> tuple[Op, ...]:
    """shf.l and shf.r."""
    type = type_of(call)
    return _assign(call, Apply(f"{call.head}.{call.word('mode')}", _sources(call, type), type), type)


def shift(call: Call) -> tuple[Op, ...]:
    """shl and shr: the amount is a .u32, whatever the type."""
    type = type_of(call)
    value, amount = call.source(call.operands[1], type), call.source(call.operands[2], U32)
    return _assign(call, Apply(call.head, (value, amount), type), type)


def field(call: Call) -> tuple[Op, ...]:
    """bfe and bfi: the position and the length are .u32, whatever the type."""
    type, operands = type_of(call), call.operands[1:]
    values = (*(call.source(a, type) for a in operands[:-2]), *(call.source(a, U32) for a in operands[-2:]))
    return _assign(call, Apply(call.head, values, type), type)


def multiply(call: Call) -> tuple[Op, ...]:
    """mul and mad: .lo (the default of the column layout), .hi, or .wide, whose result is twice as wide."""
    type, mode = type_of(call), call.word("mode") or "lo"
    if call.word("source") is not None:
        return _mixed(call)
    if type.floating:
        name = named(call, "fma" if call.head == "mad" else None)
        return _assign(call, Apply(name, _sources(call, type), type), type)
    result = double(type) if mode == "wide" else type
    sources = tuple(call.source(operand, type) for operand in call.operands[1:3])
    product = Apply("mul" if mode == "lo" else f"mul.{mode}", sources, type)
    rest = [call.source(operand, result) for operand in call.operands[3:]]
    if call.word("sat"):  # mad.hi.sat.s32
        return _assign(call, nearest(Apply("add", (product, Apply("cvt", (rest[0],), type)), WIDE), WIDE, type), type)
    return _assign(call, Apply("add", (product, rest[0]), result) if rest else product, result)


def multiply24(call: Call) -> tuple[Op, ...]:
    """mul24 and mad24: the product of the low 24 bits of the factors: its bits 0 to 31 (.lo) or 16 to 47 (.hi)."""
    type, narrow, product_type = type_of(call), *(DataType(type_of(call).kind, width) for width in (24, 48))
    sources = tuple(call.source(operand, type) for operand in call.operands[1:3])
    product: Expr = Apply("mul.wide", sources, narrow)
    if call.word("mode") == "hi":
        product = Apply("shr", (product, Const(16)), product_type)
    product = Apply("cvt", (product,), type)
    rest = [call.source(operand, type) for operand in call.operands[3:]]
    if call.word("sat"):
        return _assign(call, nearest(Apply("add", (product, Apply("cvt", (rest[0],), type)), WIDE), WIDE, type), type)
    return _assign(call, Apply("add", (product, rest[0]), type) if rest else product, type)


def carryless(call: Call) -> tuple[Op, ...]:
    """clmad: the low or high half of a carry-less product, xor the third source."""
    type = type_of(call)
    a, b, c = _sources(call, type)
    return _assign(call, Apply("xor", (Apply(f"clmul.{call.word('mode')}", (a, b), type), c), type), type)


def dot_product(call: Call) -> tuple[Op, ...]:
    """dp4a and dp2a: sums of products of bytes, or of halves and bytes."""
    words = (call.head, call.word("mode"), call.word("type"), call.word("source"))
    return _assign(call, Apply(".".join(word for word in words if word), _sources(call, U32), U32), U32)


def in_mode(call: Call) -> tuple[Op, ...]:
    """szext, bmsk, prmt: the mode is part of the operation."""
    type, mode = type_of(call), call.word("mode")
    return _assign(call, Apply(f"{call.head}.{mode}" if mode else call.head, _sources(call, type), type), type)


def nth_bit(call: Call) -> tuple[Op, ...]:
    """fns: the base is at most 31."""
    type = type_of(call)
    mask, base, offset = _sources(call, type)
    base_too_large = UndefinedIf("the base of fns is from 0 to 31", Apply("gt", (base, Const(31)), U32))
    return (base_too_large, *_assign(call, Apply("fns", (mask, base, offset), type), type))


def look_up(call: Call) -> tuple[Op, ...]:
    """lop3; with .and or .or it also writes a predicate: (result != 0) combined with the last operand."""
    type, combined = type_of(call), call.word("bool")
    target, (*inputs, table) = call.operands[0], call.operands[1:5]
    if isinstance(target, Pair) is not (combined is not None):
        call.fail(f"{call.instruction.mnemonic} writes {'d|p' if combined else 'd'}", target)
    if not isinstance(table, Imm) or not 0 <= table.value <= 255:
        call.fail("the table of lop3 is a number from 0 to 255", table)
    result = Apply("lop3", (*(call.source(a, type) for a in inputs), call.value(table, type)), type)
    if combined is None:
        return _assign(call, result, type)
    nonzero = Apply("ne", (result, Const(0)), type)
    combination = Apply(combined, (nonzero, call.predicate(call.operands[5])), call.boolean)
    return (Assign("$found", combination), *call.assign(target, result, Get("$found")))


def select(call: Call) -> tuple[Op, ...]:
    """selp: the first source if the predicate is true, the second otherwise."""
    type = type_of(call)
    first, second = (call.source(operand, type) for operand in call.operands[1:3])
    chosen = DataType("b", type.width) if type.floating else type
    return _assign(call, Apply("selp", (first, second, call.predicate(call.operands[3])), chosen), type)


def move(call: Call) -> tuple[Op, ...]:
    """mov: a register, a number, or the address of a variable; with a vector, packed or unpacked, lowest first."""
    (target, source), type = call.operands, type_of(call)
    if isinstance(source, Vector):
        return (Assign(call.target(target, type), _packed(call, source)),)
    if isinstance(target, Vector):
        return _unpacked(call, target, call.source(source, type))
    return _assign(call, call.source(source, type), type)


def _element(call: Call, vector: Vector) -> DataType:
    """The type of an element: two or four share the bits of the instruction's type."""
    count, type = len(vector.items), type_of(call)
    if count not in (2, 4) or type.width // count < 8 or type.kind != "b":
        hint = "a vector of 2 or 4 elements fills a .b16, .b32, .b64 or .b128 register"
        call.fail(f"{call.instruction.mnemonic} cannot move these {count} elements", vector, hint)
    return DataType("b", type.width // count)


def _packed(call: Call, vector: Vector) -> Expr:
    element, whole = _element(call, vector), type_of(call)
    packed: Expr = Const(0)
    for number, operand in enumerate(vector.items):
        part = Apply("cvt", (call.source(operand, element),), element)
        moved = Apply("shl", (part, Const(number * element.width)), whole) if number else part
        packed = Apply("or", (packed, moved), whole) if number else moved
    return packed


def _unpacked(call: Call, vector: Vector, value: Expr) -> tuple[Op, ...]:
    element, whole = _element(call, vector), "$whole"
    steps: list[Op] = [Assign(whole, value)]
    for number, operand in enumerate(vector.items):
        register = _element_register(call, operand, element)
        if register is not None:
            shifted = Apply("shr", (Get(whole), Const(number * element.width)), type_of(call))
            steps.append(Assign(register, Apply("cvt", (shifted,), element)))
    if len(steps) == 1:
        call.fail("at least one element goes to a register", vector, "drop the instruction, or name a register")
    return tuple(steps)


def _element_register(call: Call, operand: Operand, element: DataType) -> str | None:
    register = call.destination(operand, sink=True)
    return None if register is None else call.target(operand, element)


# ---- rows ------------------------------------------------------------------------------------------------------------


_INTEGERS = either(INTEGERS)
_NOT_WIDE = (Rule("{head}.wide has 16-bit and 32-bit sources only", "use .lo or .hi", "mode=wide type=u64|s64"),)
_SAT = (Rule("{head}.sat is for .s32", "drop .sat", "type=u16|u32|u64|s16|s64 sat"),)
_ADDED = ("u16|u64|s16|s64", "sat? u32|s32|u16x2|s16x2|u8x4|s8x4")
_SUBTRACTED = ("u16|u32|u64|s16|s64", "sat? s32|u8x4|s8x4")
_SUMS = ("rnd? ftz? sat? f32", "rnd? ftz? f32x2", "rnd? f64", "rn? ftz? sat? f16|f16x2", "rn? bf16|bf16x2")
_MIXED_SUMS = (
    "rnd? sat? f32 f16|bf16",
    "rnd? f32x2 f16x2|bf16x2 f32x2",
    "rz ftz f16x2 f32x2 f32x2",
    "rz bf16x2 f32x2 f32x2",
)
FOUR_AT_ONCE = f"rn? satfinite? e5m2x4|e4m3x4 {either(FOUR_NUMBERS)}"
"""Four numbers of formats of 8 bits or fewer ("Alternate Floating-Point Instructions")."""
_FOUR_PRODUCTS = f"{FOUR_AT_ONCE} {either(FOUR_NUMBERS)}"
_MIXED_PRODUCTS = ("rz ftz f16x2 f32x2 f32x2", "rz bf16x2 f32x2 f32x2", "bf16x2 bf16x2 f16x2", "f16x2 f16x2 bf16x2")
_CHOICES = (
    "u16|u32|u64|u16x2|u8x4|s16|s64",
    "relu? s16x2|s32|s8x4",
    "f64",
    Syntax("ftz? NaN? f32", ("d", "a", "b", "c?")),
    "ftz? NaN? f16|f16x2",
    "ftz? NaN? xorsign abs f32|f16|f16x2",
    "NaN? bf16|bf16x2",
    "NaN? xorsign abs bf16|bf16x2",
    Syntax("ftz? NaN? abs f32", ("d", "a", "b", "c")),
)
_SIGNS = ("ftz? f32|f16|f16x2", "f64|bf16|bf16x2")
_PRODUCTS = (f"lo|hi {_INTEGERS}", "wide u16|u32|s16|s32")
_MAD_OF_FLOATS = ("rnd ftz? sat? f32", "rnd f64")
_WIDTHS = "b16|b32|b64"

PACKED = frozenset({107, 120, 121})
"""The numbers of the targets that compute with packed integers of 8 bits."""

_FLOATS_SINCE = {
    "ftz": Since(20, "1.4"),
    "type=f16|f16x2": Since(53, "4.2"),
    "type=bf16|bf16x2": Since(90, "7.8"),
    "type=f32x2": Since(100, "8.6"),
}
_RUBIN = Since(version="9.4", families=frozenset({107}))
FOUR_SINCE = {"type=e5m2x4|e4m3x4": Since(version="9.4", alone=frozenset({100, 103}))}
_PRODUCTS_SINCE = {"source=f16x2|bf16x2|f32x2": _RUBIN, **FOUR_SINCE}
_SUMS_SINCE = {
    **_PRODUCTS_SINCE,
    "type=u8x4|s8x4": Since(version="9.2", families=PACKED),
    "source=f16|bf16": Since(100, "8.6"),
}
_ADDED_SINCE = {
    "type=u16x2|s16x2": Since(90, "8.0"),
    "sat type=u32|u16x2|s16x2": Since(version="9.2", families=PACKED),
}
_CHOICES_SINCE = {
    "ftz": Since(20, "1.4"),
    "type=f16|f16x2|bf16|bf16x2": Since(80, "7.0"),
    "NaN": Since(80, "7.0"),
    "abs": Since(86, "7.2"),
    "xorsign": Since(86, "7.2"),
    "type=u16x2|s16x2": Since(90, "8.0"),
    "relu type=s32|s16x2": Since(90, "8.0"),
    "c": Since(100, "8.8"),
    "type=u8x4|s8x4": Since(version="9.2", families=PACKED),
}


def _signs_since(halves: str) -> dict[str, Since]:
    """The versions and targets that abs and neg of floating-point numbers need. `halves`: the PTX version of .f16."""
    return {
        "ftz": Since(20, "1.4"),
        "type=f16|f16x2": Since(53, halves),
        "type=bf16|bf16x2": Since(80, "7.0"),
    }


ROWS = (
    computing(
        "add",
        "d a b",
        saturate,
        _ARITH,
        *_ADDED,
        *_SUMS,
        *_MIXED_SUMS,
        FOUR_AT_ONCE,
        rules=_SAT,
        later=_FLOATS_SINCE | _SUMS_SINCE | _ADDED_SINCE,
    ),
    computing(
        "sub",
        "d a b",
        saturate,
        _ARITH,
        *_SUBTRACTED,
        *_SUMS,
        *_MIXED_SUMS,
        FOUR_AT_ONCE,
        rules=_SAT,
        later=_FLOATS_SINCE | _SUMS_SINCE,
    ),
    computing("min max", "d a b", operate, _ARITH, *_CHOICES, later=_CHOICES_SINCE),
    computing(
        "div",
        "d a b",
        divide,
        _ARITH,
        _INTEGERS,
        "approx|full ftz? f32",
        "rnd ftz? f32",
        "rnd f64",
        later={"approx": Since(20, "1.4"), "ftz": Since(20, "1.4")},
    ),
    computing("rem", "d a b", divide, _ARITH, _INTEGERS),
    computing(
        "mul",
        "d a b",
        multiply,
        _ARITH,
        *_PRODUCTS,
        *_SUMS,
        *_MIXED_PRODUCTS,
        _FOUR_PRODUCTS,
        rules=_NOT_WIDE,
        later=_FLOATS_SINCE | _PRODUCTS_SINCE,
    ),
    computing(
        "mad",
        "d a b c",
        multiply,
        _ARITH,
        *_PRODUCTS,
        "hi sat s32",
        *_MAD_OF_FLOATS,
        rules=_NOT_WIDE,
        later={"ftz": Since(20, "1.4")},
    ),
    computing("mul24", "d a b", multiply24, _ARITH, "lo|hi u32|s32"),
    computing("mad24", "d a b c", multiply24, _ARITH, "lo|hi u32|s32", "hi sat s32"),
    computing("clmad", "d a b c", carryless, _ARITH, "lo|hi u64", since=Since(80, "9.3")),
    computing("abs", "d a", operate, _ARITH, "s16|s32|s64", *_SIGNS, later=_signs_since("6.5")),
    computing(
        "neg",
        "d a",
        operate,
        _ARITH,
        "s16|s32|s64|s8x4",
        *_SIGNS,
        later={**_signs_since("6.0"), "type=s8x4": Since(version="9.2", families=PACKED)},
    ),
    computing("and or xor", "d a b", operate, _LOGIC, f"{_WIDTHS}|pred"),
    computing("not", "d a", operate, _LOGIC, f"{_WIDTHS}|pred"),
    computing("cnot", "d a", operate, _LOGIC, _WIDTHS),
    computing("sad", "d a b c", operate, _ARITH, _INTEGERS),
    computing("popc clz", "n a", count, _ARITH, "b32|b64", since=Since(20, "2.0")),
    computing("bfind", "n a", count, _ARITH, "shiftamt? u32|u64|s32|s64", since=Since(20, "2.0")),
    computing("brev", "d a", operate, _ARITH, "b32|b64", since=Since(20, "2.0")),
    computing("bfe", "d a pos len", field, _ARITH, "u32|u64|s32|s64", since=Since(20, "2.0")),
    computing("bfi", "d a b pos len", field, _ARITH, "b32|b64", since=Since(20, "2.0")),
    computing("fns", "d mask base offset", nth_bit, _ARITH, "b32", since=Since(30, "6.0")),
    computing("szext", "d a b", in_mode, _ARITH, "clamp|wrap u32|s32", since=Since(70, "7.6")),
    computing("bmsk", "d a b", in_mode, _ARITH, "clamp|wrap b32", since=Since(70, "7.6")),
    computing("dp4a", "d a b c", dot_product, _ARITH, "u32|s32 u32|s32", since=Since(61, "5.0")),
    computing("dp2a", "d a b c", dot_product, _ARITH, "lo|hi u32|s32 u32|s32", since=Since(61, "5.0")),
    Row(
        ("lop3",),
        (optional("bool", "or", "and"), in_blocks("type", "b32")),
        ("d", "a", "b", "c", "immLut", "q"),
        look_up,
        "none",
        _LOGIC + "lop3",
        forms=forms("bool? b32"),
        effect=Effect.COMPUTES,
        since=Since(50, "4.3"),
        later={"bool": Since(70, "8.2")},
        when={"q": "bool"},
        written="d, a, b, c, immLut; with .or, .and: d|p, a, b, c, immLut, q",
    ),
    computing("prmt", "d a b c", in_mode, _MOVE, "b32 f4e|b4e|rc8|ecl|ecr|rc16?", since=Since(20, "2.0")),
    computing("shf.l shf.r", "d a b c", funnel, _LOGIC, "clamp|wrap b32", since=Since(32, "3.1")),
    computing("shl", "d a b", shift, _LOGIC, _WIDTHS, sizes={"b": 32}),
    computing("shr", "d a b", shift, _LOGIC, f"{_WIDTHS}|{_INTEGERS}", sizes={"b": 32}),
    computing("selp", "d a b p", select, _SELECTION, f"{_WIDTHS}|{_INTEGERS}|f32|f64"),
    Row(
        ("mov",),
        (in_blocks("type", *LOGICAL, "b128", *INTEGERS, *FLOATS),),
        ("d", "a"),
        move,
        "none",
        _MOVE + "mov",
        ordered=True,
        forms=forms("type"),
        effect=Effect.COMPUTES,
        since=FIRST,
        later={"type=b128": Since(70, "8.3")},
    ),
)
