"""Rows of the table: floating-point instructions that integers do not have. Compiled modules alone have them.

In: a Call. Out: one Assign. Settled here: nothing but the operation and type of each; `program.arith.floats` computes
those results that PTX fixes to the bit. Source: PTX ISA "Floating-Point Instructions", "Half Precision ...".
"""

from __future__ import annotations

from memmodel.isa.call import Call
from memmodel.isa.rows.cases import either
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.types import FOUR_NUMBERS
from memmodel.isa.scalar.compute import FOUR_AT_ONCE, FOUR_SINCE, fuse, named, operate, type_of
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

_APPROXIMATED = Since(20, "1.4")
_ROUNDED_SINCE = {"approx": Since(20, "1.4"), "ftz": Since(20, "1.4")}

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
        since=Since(20, "1.4"),
        later={
            "type=f32": Since(20, "2.0"),
            "type=f16|f16x2": Since(53, "4.2"),
            "relu": Since(80, "7.0"),
            "type=bf16|bf16x2": Since(80, "7.0"),
            "oob": Since(90, "8.1"),
            "type=f32x2": Since(100, "8.6"),
            "source=f16|bf16": Since(100, "8.6"),
            "source=f16x2|bf16x2": Since(version="9.4", families=frozenset({107})),
            **FOUR_SINCE,
        },
    ),
    computing(
        "rcp",
        "d a",
        approximate,
        _PAGE,
        *_ROUNDED,
        "approx ftz f64",
        later=_ROUNDED_SINCE | {"approx type=f64": Since(20, "2.1")},
    ),
    computing("sqrt", "d a", approximate, _PAGE, *_ROUNDED, later=_ROUNDED_SINCE),
    computing(
        "rsqrt",
        "d a",
        approximate,
        _PAGE,
        "approx ftz? f32|f64",
        since=_APPROXIMATED,
        later={"ftz type=f64": Since(20, "4.0")},
    ),
    computing("sin cos lg2", "d a", approximate, _PAGE, "approx ftz? f32", since=_APPROXIMATED),
    computing(
        "ex2",
        "d a",
        approximate,
        _PAGE,
        "approx ftz? f32",
        "approx f16|f16x2",
        "approx ftz bf16|bf16x2",
        since=_APPROXIMATED,
        later={"type=f16|f16x2": Since(75, "7.0"), "type=bf16|bf16x2": Since(90, "7.8")},
    ),
    computing(
        "tanh",
        "d a",
        approximate,
        _PAGE,
        "approx f32|f16|bf16|f16x2|bf16x2",
        since=Since(75, "7.0"),
        later={"type=bf16|bf16x2": Since(90, "7.8")},
    ),
    computing("testp", "p a", test, _PAGE, f"{_PROPERTIES} f32|f64", since=Since(20, "2.0")),
    computing("copysign", "d a b", operate, _PAGE, "f32|f64", since=Since(20, "2.0")),
)
