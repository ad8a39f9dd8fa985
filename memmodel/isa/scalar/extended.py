"""Rows of the table: sums and products of several words, whose carry goes from one instruction to the next.

In: a Call. Out: Assigns. Settled here: the carry flag CC.CF is a note that an instruction leaves for later ones.
Source: PTX ISA "Extended-Precision Arithmetic Instructions".
"""

from __future__ import annotations

from memmodel.isa.call import Call
from memmodel.isa.rows.row import Effect, Row
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import Slot, needed, optional
from memmodel.isa.scalar.compute import type_of
from memmodel.isa.scalar.lines import forms
from memmodel.program.expressions import Apply, Const, Expr, Get
from memmodel.program.ops import Assign, Op

CARRY = "#carry"
"""The carry flag of a thread."""

_PAGE = "Extended-Precision Arithmetic Instructions: "
_TYPES = ("u32", "s32", "u64", "s64")


def chained(call: Call) -> tuple[Op, ...]:
    """A sum or a difference: .cc sets the flag, addc, subc and madc use it."""
    type, words = type_of(call), call.head.split(".")
    name = words[0].removesuffix("c") if words[0] != "madc" else "mad"
    carry: Expr = Get(CARRY) if words[0] in ("addc", "subc", "madc") else Const(0)
    first, second = (call.source(operand, type) for operand in call.operands[1:3])
    if name == "mad":
        low = "lo" in (*words, call.word("mode"))
        first = Apply("mul" if low else "mul.hi", (first, second), type)
        second, name = call.source(call.operands[3], type), "add"
    total = Apply(name, (Apply(name, (first, second), type), carry), type)
    register = call.target(call.operands[0], type)
    if "cc" not in words and not call.word("cc"):
        return (Assign(register, total),)
    # The register of the result may be a source, and the flag is both read and written.
    out = Apply(f"{name}.carry", (first, second, carry), type)
    return (Assign("$total", total), Assign(CARRY, out), Assign(register, Get("$total")))


def _row(heads: tuple[str, ...], operands: tuple[str, ...], before: tuple[Slot, ...], line: str, since: Since) -> Row:
    return Row(
        heads,
        (*before, needed("type", *_TYPES)),
        operands,
        chained,
        "none",
        _PAGE + ", ".join(heads),
        ordered=True,
        forms=forms(line),
        effect=Effect.COMPUTES,
        since=since,
        later={"type=u64|s64": Since(20, "4.3")},
    )


_HALF = needed("mode", "lo", "hi", what="part of the product")

ROWS = (
    _row(("add.cc", "addc", "addc.cc"), ("d", "a", "b"), (), "type", Since(20, "1.2")),
    _row(("sub.cc", "subc", "subc.cc"), ("d", "a", "b"), (), "type", Since(20, "1.3")),
    _row(("mad.lo.cc", "mad.hi.cc"), ("d", "a", "b", "c"), (), "type", Since(20, "3.0")),
    _row(("madc",), ("d", "a", "b", "c"), (_HALF, optional("cc")), "mode cc? type", Since(20, "3.0")),
)
