"""Rows of the table: instructions that only compute. They make no events; registers carry values and dependencies.

In: a Call. Out: one Assign. Settled here: the operation and type of each; `arith` says what it computes.
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.isa.call import Call
from memmodel.isa.row import (
    FLOATS,
    INTEGERS,
    LOGICAL,
    SIGNED,
    UNSIGNED,
    Need,
    Row,
    Rule,
    Slot,
    data_type,
    flag,
    type_slot,
)
from memmodel.program.arith import double
from memmodel.program.expressions import Apply, Const, Expr, Get
from memmodel.program.ops import Assign, Op, Unmodelled
from memmodel.ptx.operands import Vector
from memmodel.ptx.vocabulary import UNTYPED, DataType

_ARITH = "Integer Arithmetic Instructions: "
_LOGIC = "Logic and Shift Instructions: "
_MOVE = "Data Movement and Conversion Instructions: "
_NO_FLOATS = {
    word: ("floating-point arithmetic is not modelled", "use an integer type") for word in ("f16", "bf16", *FLOATS)
}


def _sources(call: Call) -> tuple[Expr, ...]:
    return tuple(call.value(operand) for operand in call.operands[1:])


def divide(call: Call) -> tuple[Op, ...]:
    """div and rem; of a divisor of zero the result is unspecified, so that what comes after it is not known."""
    beyond = Unmodelled(
        f"{call.head} by zero gives an unspecified value",
        Apply("eq", (call.value(call.operands[2]), Const(0)), call.type),
    )
    known = call.constant(call.operands[2])
    return operate(call) if known is not None and call.type.wrap(known) else (beyond, *operate(call))


def _assign(call: Call, value: Expr) -> tuple[Op, ...]:
    return (Assign(call.register(call.operands[0]), value),)


def operate(call: Call) -> tuple[Op, ...]:
    """d := head(sources), in the instruction's type."""
    return _assign(call, Apply(call.head, _sources(call), call.type))


def saturate(call: Call) -> tuple[Op, ...]:
    """add and sub; with .sat the result is the nearest number of the type."""
    if call.word("sat") is None:
        return operate(call)
    sources = tuple(Apply("cvt", (source,), call.type) for source in _sources(call))
    return _assign(call, _nearest(Apply(call.head, sources, _WIDE), _WIDE, call.type))


def _nearest(value: Expr, source: DataType, type: DataType) -> Expr:
    """The number of a type that is nearest to a value of another one ("cvt": .sat)."""
    signed = type.kind == "s"
    least, most = -(1 << type.width - 1) if signed else 0, (1 << type.width - signed) - 1
    if source.wrap(least) == least:
        value = Apply("max", (value, Const(least)), source)
    if source.wrap(most) == most:
        value = Apply("min", (value, Const(most)), source)
    return Apply("cvt", (value,), type)


def count(call: Call) -> tuple[Op, ...]:
    """popc, clz and bfind: a .u32, whatever the type of the source."""
    name = "bfind.shiftamt" if call.word("shiftamt") else call.head
    return _assign(call, Apply("cvt", (Apply(name, _sources(call), call.type),), DataType("u", 32)))


def funnel(call: Call) -> tuple[Op, ...]:
    """shf.l and shf.r."""
    return _assign(call, Apply(f"{call.head}.{call.word('mode')}", _sources(call), call.type))


def multiply(call: Call) -> tuple[Op, ...]:
    """mul and mad: .lo (the default of the column layout), .hi, or .wide, whose result is twice as wide."""
    mode = call.word("mode") or "lo"
    result = double(call.type) if mode == "wide" else call.type
    product = Apply("mul" if mode == "lo" else f"mul.{mode}", _sources(call)[:2], call.type)
    rest = [call.value(operand, result) for operand in call.operands[3:]]
    return _assign(call, Apply("add", (product, rest[0]), result) if rest else product)


def select(call: Call) -> tuple[Op, ...]:
    """selp: the first source if the predicate is true, the second otherwise."""
    first, second = (call.value(operand) for operand in call.operands[1:3])
    return _assign(call, Apply("selp", (first, second, call.predicate(call.operands[3])), call.type))


def move(call: Call) -> tuple[Op, ...]:
    """mov: a register, a number, or the address of a variable; with a vector, packed or unpacked, lowest first."""
    target, source = call.operands
    if isinstance(source, Vector):
        return (Assign(call.register(target), _packed(call, source)),)
    if isinstance(target, Vector):
        return _unpacked(call, target, call.value(source))
    return _assign(call, call.value(source))


def _element(call: Call, vector: Vector) -> DataType:
    """The type of an element: two or four share the bits of the instruction's type."""
    count, width = len(vector.items), call.type.width
    if count not in (2, 4) or width // count < 8 or call.type.kind != "b":
        hint = "a vector of 2 or 4 elements fills a .b16, .b32, .b64 or .b128 register"
        call.fail(f"{call.instruction.mnemonic} cannot move these {count} elements", vector, hint)
    return DataType("b", width // count)


def _packed(call: Call, vector: Vector) -> Expr:
    element, whole = _element(call, vector), call.type
    packed: Expr = Const(0)
    for number, item in enumerate(vector.items):
        part = Apply("cvt", (call.value(item, element),), element)
        moved = Apply("shl", (part, Const(number * element.width)), whole) if number else part
        packed = Apply("or", (packed, moved), whole) if number else moved
    return packed


def _unpacked(call: Call, vector: Vector, value: Expr) -> tuple[Op, ...]:
    element, whole = _element(call, vector), "$whole"
    steps: list[Op] = [Assign(whole, value)]
    for number, item in enumerate(vector.items):
        register = call.destination(item, sink=True)
        if register is not None:
            shifted = Apply("shr", (Get(whole), Const(number * element.width)), call.type)
            steps.append(Assign(register, Apply("cvt", (shifted,), element)))
    if len(steps) == 1:
        call.fail("at least one element goes to a register", vector, "drop the instruction, or name a register")
    return tuple(steps)


def convert(call: Call) -> tuple[Op, ...]:
    """cvt: read as the second type, kept as the first."""
    source = data_type(call.word("source") or "") or UNTYPED
    value = Apply("cvt", (call.value(call.operands[1], source),), source)
    return _assign(call, _nearest(value, source, call.type) if call.word("sat") else Apply("cvt", (value,), call.type))


def _row(
    head: str,
    types: tuple[str, ...],
    operands: tuple[str, ...],
    source: str,
    lower: Callable[[Call], tuple[Op, ...]] = operate,
    before: tuple[Slot, ...] = (),
    rules: tuple[Rule, ...] = (),
) -> Row:
    slots = (*before, Slot("type", types, "type", Need.BLOCKS, refused=_NO_FLOATS))
    return Row((head,), slots, operands, lower, "none", source + head, rules, ordered=True)


_THREE = ("d", "a", "b")
_WIDE = DataType("s", 64)
_SAT = (
    Rule(
        "{head}.sat is for .s32",
        "drop .sat",
        {"sat": (), "type": tuple(word for word in INTEGERS if word != "s32")},
        at="sat",
    ),
)
_MODE = (Slot("mode", ("lo", "hi", "wide"), "part of the product", Need.BLOCKS),)
_NOT_WIDE = (
    Rule(
        "{head}.wide has 16-bit and 32-bit sources only",
        "use .lo or .hi",
        {"mode": ("wide",), "type": ("u64", "s64")},
        at="type",
    ),
)

ROWS = (
    *(_row(head, INTEGERS, _THREE, _ARITH, saturate, (flag("sat"),), _SAT) for head in ("add", "sub")),
    *(_row(head, INTEGERS, _THREE, _ARITH) for head in ("min", "max")),
    *(_row(head, INTEGERS, _THREE, _ARITH, divide) for head in ("div", "rem")),
    _row("mul", INTEGERS, _THREE, _ARITH, multiply, _MODE, _NOT_WIDE),
    _row("mad", INTEGERS, ("d", "a", "b", "c"), _ARITH, multiply, _MODE, _NOT_WIDE),
    *(_row(head, SIGNED[1:], ("d", "a"), _ARITH) for head in ("abs", "neg")),
    *(_row(head, LOGICAL, _THREE, _LOGIC) for head in ("and", "or", "xor")),
    _row("not", LOGICAL, ("d", "a"), _LOGIC),
    _row("cnot", LOGICAL[:3], ("d", "a"), _LOGIC),
    _row("sad", INTEGERS, ("d", "a", "b", "c"), _ARITH),
    *(_row(head, LOGICAL[1:3], ("n", "a"), _ARITH, count) for head in ("popc", "clz")),
    _row("bfind", INTEGERS[1:3] + INTEGERS[4:], ("n", "a"), _ARITH, count, (flag("shiftamt"),)),
    _row("brev", LOGICAL[1:3], ("d", "a"), _ARITH),
    _row("bfe", INTEGERS[1:3] + INTEGERS[4:], ("d", "a", "pos", "len"), _ARITH),
    _row("bfi", LOGICAL[1:3], ("d", "a", "b", "pos", "len"), _ARITH),
    Row(("lop3",), (type_slot(("b32",)),), ("d", "a", "b", "c", "immLut"), operate, "none", _LOGIC + "lop3", since=50),
    _row("prmt", ("b32",), ("d", "a", "b", "c"), _MOVE),
    Row(
        ("shf.l", "shf.r"),
        (Slot("mode", ("wrap", "clamp"), "what a large amount does", Need.ALWAYS), type_slot(("b32",))),
        ("d", "a", "b", "c"),
        funnel,
        "none",
        _LOGIC + "shf",
        ordered=True,
        since=32,
    ),
    _row("shl", LOGICAL[:3], _THREE, _LOGIC),
    _row("shr", (*LOGICAL[:3], *INTEGERS), _THREE, _LOGIC),
    _row("selp", (*LOGICAL[:3], *INTEGERS), ("d", "a", "b", "p"), "Comparison and Selection Instructions: ", select),
    Row(
        ("mov",),
        (type_slot((*LOGICAL, "b128", *INTEGERS, *FLOATS)),),
        ("d", "a"),
        move,
        "none",
        _MOVE + "mov",
        ordered=True,
        needs={"b128": 70},
    ),
    Row(
        ("cvt",),
        (flag("sat"), type_slot((*UNSIGNED, *SIGNED)), type_slot((*UNSIGNED, *SIGNED), "source")),
        ("d", "a"),
        convert,
        "none",
        _MOVE + "cvt",
        ordered=True,
    ),
)
