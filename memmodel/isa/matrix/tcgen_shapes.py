"""Shapes of tcgen05.mma, and the lanes in which its operands begin.

In: the Call of a module and its instruction descriptor. Out: the steps that find a shape that the instruction does not
have ("Matrix Shape"), or an operand in a lane that the shape does not have ("Data Path Layout Organization").
A litmus test says nothing of either: its matrices are the bytes behind an address, and its tensor memory has no lanes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from memmodel.isa.call import Call
from memmodel.isa.tensor_memory import group, lane_of
from memmodel.memory.descriptor import COLUMNS_AT, COLUMNS_FIELD, COLUMNS_UNIT, SCALED, rows_place
from memmodel.program.expressions import Apply, Const, Expr
from memmodel.program.ops import Op, UndefinedIf
from memmodel.ptx.vocabulary import U32, U64

WIDEST = 256
"""The largest N."""


def _every(step: int) -> frozenset[int]:
    return frozenset(range(step, WIDEST + 1, step))


_INTEGER_COLUMNS = frozenset({8, 24}) | _every(16)
"""N of .kind::i8: in steps of 8 up to 32, in steps of 16 from there on."""


def supported(kind: str, ctas: int, *, stationary: bool, sparse: bool) -> tuple[frozenset[int], frozenset[int]]:
    """M and N of the shapes that "Matrix Shape" has in its table."""
    if stationary:
        return frozenset({32, 64, 128}), frozenset({64, 128} if sparse else {64, 128, 256})
    if kind in SCALED:
        rows = {128} if ctas == 1 else {256} if sparse else {128, 256}
        return frozenset(rows), _every(8 * ctas)
    if kind == "kind::i8":
        return frozenset({64 * ctas, 128 * ctas}), _INTEGER_COLUMNS if ctas == 1 else _every(32)
    return frozenset({64 * ctas, 128 * ctas}), _every(8 * ctas)


def shape_checks(call: Call, shape: Expr, *, stationary: bool, sparse: bool) -> tuple[Op, ...]:
    """The steps that find an instruction descriptor with another M or N."""
    kind, ctas = call.word("kind") or "", group(call) or 1
    rows, columns = supported(kind, ctas, stationary=stationary, sparse=sparse)
    if call.word("ashift"):
        rows -= {64}
    at, field, unit = rows_place(scaled=kind in SCALED)
    places = (("M", rows, at, field, unit), ("N", columns, COLUMNS_AT, COLUMNS_FIELD, COLUMNS_UNIT))
    return tuple(
        UndefinedIf(
            f"{call.head}.{kind} of {ctas} CTA{'s' * (ctas > 1)} has no such {name} (bits {first} to "
            f"{first + mask.bit_length() - 1} of the instruction descriptor)",
            _outside(Apply("and", (Apply("shr", (shape, Const(first)), U32), Const(mask)), U32), values, step),
        )
        for name, values, first, mask, step in places
    )


def _outside(number: Expr, values: Iterable[int], unit: int) -> Expr:
    """1 if the number, in units, is none of the values. At most 64 numbers."""
    known = sum(1 << value // unit for value in values)
    bit = Apply("and", (Apply("shr", (Const(known), number), U64), Const(1)), U64)
    return Apply("eq", (bit, Const(0)), U64)


def lane_checks(
    call: Call, shape: Expr, accumulator: Expr, others: Mapping[str, Expr], *, stationary: bool, sparse: bool
) -> tuple[Op, ...]:
    """The steps that find operands in another lane than 0, or 16 too where the layout uses half of the lanes: those of
    64 rows, and of 128 sparse rows in two CTAs. All operands have the same.
    """
    first = lane_of(accumulator)
    wrong: Expr = Apply("ne", (first, Const(0)), U32)
    ctas, scaled = group(call) or 1, call.word("kind") in SCALED
    if not stationary and not scaled and (ctas == 1 or sparse):
        at, field, unit = rows_place(scaled=False)
        rows = Apply("and", (Apply("shr", (shape, Const(at)), U32), Const(field)), U32)
        half = Apply("eq", (rows, Const(64 * ctas // unit)), U32)
        allowed = Apply("selp", (Const(16), Const(0), half), U32)
        wrong = Apply("ne", (first, Apply("and", (first, allowed), U32)), U32)
    rule = f"the accumulator of {call.head} begins in lane 0, or in 16 where its layout uses half of the lanes"
    steps = [UndefinedIf(rule, wrong)]
    for what, address in others.items():
        same = f"{what} and accumulator of {call.head} begin in the same lane"
        steps.append(UndefinedIf(same, Apply("ne", (lane_of(address), first), U32)))
    return tuple(steps)
