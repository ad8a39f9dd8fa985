"""Rows of the table: floating-point instructions that integers do not have. Compiled modules alone have them.

In: a Call. Out: one Assign. Settled here: nothing but the operation and type of each; `program.arith.floats` computes
those results that PTX fixes to the bit. Source: PTX ISA "Floating-Point Instructions", "Half Precision ...".
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.isa.call import Call
from memmodel.isa.row import Effect, Need, Row, Slot
from memmodel.isa.scalar.compute import FTZ, HALVES, OOB, RELU, RND, SAT, forms, fuse, named, operate, type_of
from memmodel.program.expressions import Apply
from memmodel.program.ops import Assign, Op

_PAGE = "Floating Point Instructions: "
_APPROX = Slot("approx", ("approx",), "precision")
_PROPERTIES = ("finite", "infinite", "number", "notanumber", "normal", "subnormal")


def approximate(call: Call) -> tuple[Op, ...]:
    """rcp and sqrt, rounded or not; functions that are only approximated."""
    type, name = type_of(call), named(call)
    source = call.source(call.operands[1], type)
    return (Assign(call.target(call.operands[0], type), Apply(name, (source,), type)),)


def test(call: Call) -> tuple[Op, ...]:
    """testp: a predicate."""
    type = type_of(call)
    found = Apply(f"testp.{call.word('property')}", (call.source(call.operands[1], type),), type)
    return (Assign(call.target(call.operands[0], call.boolean), found),)


def _row(
    head: str,
    operands: tuple[str, ...],
    lower: Callable[[Call], tuple[Op, ...]],
    before: tuple[Slot, ...],
    types: tuple[str, ...],
    *lines: str,
    after: tuple[Slot, ...] = (),
) -> Row:
    slots = (*before, Slot("type", types, "type", Need.ALWAYS), *after)
    page = _PAGE + head
    return Row((head,), slots, operands, lower, "none", page, forms=forms(*lines), modules=True, effect=Effect.COMPUTES)


_ONE = ("d", "a")
_ROUNDED = ("approx ftz? f32", "rnd ftz? f32", "rnd f64")
_MIXED = tuple(
    Slot(name, (), f"type of {operand}", modules=words)
    for name, operand, words in (
        ("source", "a", HALVES), ("third", "b", ("f32x2",)), ("fourth", "c", ("f32x2",)),
    )
)  # fmt: skip

ROWS = (
    _row(
        "fma",
        ("d", "a", "b", "c"),
        fuse,
        (RND, FTZ, SAT, OOB, RELU),
        ("f32", "f64", "f32x2", *HALVES),
        "rnd ftz? sat? f32",
        "rnd ftz? f32x2",
        "rnd f64",
        "rn ftz? sat? f16|f16x2",
        "rn ftz? relu f16|f16x2",
        "rn relu? bf16|bf16x2",
        "rn oob relu? f16|f16x2|bf16|bf16x2",
        "rnd sat? f32 f16|bf16",
        "rnd f32x2 f16x2|bf16x2 f32x2 f32x2",
        after=_MIXED,
    ),
    _row("rcp", _ONE, approximate, (_APPROX, RND, FTZ), ("f32", "f64"), *_ROUNDED, "approx ftz f64"),
    _row("sqrt", _ONE, approximate, (_APPROX, RND, FTZ), ("f32", "f64"), *_ROUNDED),
    _row("rsqrt", _ONE, approximate, (_APPROX, FTZ), ("f32", "f64"), "approx ftz? f32|f64"),
    *(_row(head, _ONE, approximate, (_APPROX, FTZ), ("f32",), "approx ftz? f32") for head in ("sin", "cos", "lg2")),
    _row(
        "ex2",
        _ONE,
        approximate,
        (_APPROX, FTZ),
        ("f32", *HALVES),
        "approx ftz? f32",
        "approx f16|f16x2",
        "approx ftz bf16|bf16x2",
    ),
    _row("tanh", _ONE, approximate, (_APPROX,), ("f32", *HALVES), "approx type"),
    _row("testp", ("p", "a"), test, (Slot("property", _PROPERTIES, "property"),), ("f32", "f64"), "property type"),
    _row("copysign", ("d", "a", "b"), operate, (), ("f32", "f64"), "type"),
)
