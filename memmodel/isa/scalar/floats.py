"""Rows of the table: floating-point instructions that integers do not have. Compiled modules alone have them.

In: a Call. Out: one Assign. Settled here: nothing but the operation and type of each; `program.arith.floats` computes
those results that PTX fixes to the bit. Source: PTX ISA "Floating-Point Instructions", "Half Precision ...".
"""

from __future__ import annotations

from memmodel.isa.call import Call
from memmodel.isa.row import FOUR_NUMBERS, either
from memmodel.isa.scalar.compute import FOUR_AT_ONCE, fuse, named, operate, type_of
from memmodel.isa.scalar.lines import computing
from memmodel.program.expressions import Apply
from memmodel.program.ops import Assign, Op

_PAGE = "Floating Point Instructions: "


def approximate(call: Call) -> tuple[Op, ...]:
    """rcp and sqrt, rounded or not; functions that are only approximated."""
    type, name = type_of(call), named(call)
    source = call.source(call.operands[1], type)
    return (Assign(call.target(call.operands[0], type), Apply(name, (source,), type)),)


def test(call: Call) -> tuple[Op, ...]:
    """testp: a predicate."""
    type = type_of(call)
    has_property = Apply(f"testp.{call.word('property')}", (call.source(call.operands[1], type),), type)
    return (Assign(call.target(call.operands[0], call.boolean), has_property),)


_ROUNDED = ("approx ftz? f32", "rnd ftz? f32", "rnd f64")
_PROPERTIES = "finite|infinite|number|notanumber|normal|subnormal"

ROWS = (
    computing(
        "fma",
        "d a b c",
        fuse,
        _PAGE,
        "rnd ftz? sat? f32",
        "rnd ftz? f32x2",
        "rnd f64",
        "rn ftz? sat? f16|f16x2",
        "rn ftz? relu f16|f16x2",
        "rn relu? bf16|bf16x2",
        "rn oob relu? f16|f16x2|bf16|bf16x2",
        "rnd sat? f32 f16|bf16",
        "rnd f32x2 f16x2|bf16x2 f32x2 f32x2",
        f"{FOUR_AT_ONCE} {either(FOUR_NUMBERS)}",
    ),
    computing("rcp", "d a", approximate, _PAGE, *_ROUNDED, "approx ftz f64"),
    computing("sqrt", "d a", approximate, _PAGE, *_ROUNDED),
    computing("rsqrt", "d a", approximate, _PAGE, "approx ftz? f32|f64"),
    computing("sin cos lg2", "d a", approximate, _PAGE, "approx ftz? f32"),
    computing("ex2", "d a", approximate, _PAGE, "approx ftz? f32", "approx f16|f16x2", "approx ftz bf16|bf16x2"),
    computing("tanh", "d a", approximate, _PAGE, "approx f32|f16|bf16|f16x2|bf16x2"),
    computing("testp", "p a", test, _PAGE, f"{_PROPERTIES} f32|f64"),
    computing("copysign", "d a b", operate, _PAGE, "f32|f64"),
)
