"""Do lanes of a warp store the same value, whatever the data? Shown by the text before the store.

In: the instructions of an entry, a store. Out: for each lane the number of its value; lanes with one number store the
same bytes. Settled here: only the straight line of code that ends in the store is looked at; operations on equal
operands are equal, and sums, products, minima and maxima do not depend on the order of their two operands (results
that are NaN are canonical but for .f64, PTX ISA "Floating Point Instructions").
"""

from __future__ import annotations

from collections.abc import Hashable

from memmodel.kernel.text.polling import written
from memmodel.kernel.text.syntax import (
    AddressOperand,
    FloatLiteral,
    IntegerLiteral,
    JumpTarget,
    Operand,
    PtxInstruction,
    Register,
    Special,
    VectorOperand,
)

LANES = 32
COMMUTES = ("add", "mul", "max", "min", "and", "or", "xor")
_COMPUTES = "mov sub mad fma neg abs shl shr cvt cvta ex2 lg2 rcp sqrt rsqrt div selp setp"
COMPUTES = frozenset((*COMMUTES, *_COMPUTES.split()))
UNIFORM = ("%ctaid", "%nctaid", "%ntid", "%warpid", "%nwarpid", "WARP_SZ")
CONTROL = ("bra", "brx", "call", "ret", "exit", "trap")


class _Values:
    """Numbers of values: one number for one value."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def of(self, *key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def stored_values(body: tuple[PtxInstruction, ...], at: int) -> list[Hashable]:
    """For each lane what the store at a place stores, if all 32 lanes are there."""
    targets = {operand.at for one in body for operand in one.operands if isinstance(operand, JumpTarget)}
    begin = at
    while begin > 0 and begin not in targets and body[begin - 1].words[0] not in CONTROL:
        begin -= 1
    values = _Values()
    registers: dict[int, list[int]] = {}

    def read(operand: Operand, lane: int) -> int:
        if isinstance(operand, Register):
            row = registers.get(operand.slot)
            return values.of("before", operand.slot, lane) if row is None else row[lane]
        if isinstance(operand, IntegerLiteral):
            return values.of("number", operand.value)
        if isinstance(operand, FloatLiteral):
            return values.of("number", operand.bits, operand.width)
        if isinstance(operand, Special) and operand.name.startswith(UNIFORM):
            return values.of("special", operand.name)
        if isinstance(operand, VectorOperand):
            return values.of("vector", *(read(item, lane) for item in operand.items))
        return values.of("other", str(operand), lane)

    for one in body[begin:at]:
        rows = [_result(one, lane, read, values) for lane in range(LANES)]
        for place, slot in enumerate(written(one)):
            if one.guard is not None or (place and one.words[0] != "ld"):
                registers[slot] = [values.of("unknown", one.number, place, lane) for lane in range(LANES)]
            else:
                registers[slot] = [values.of("part", place, row) if place else row for row in rows]
    what = body[at].operands[1:2]
    return [tuple(read(operand, lane) for operand in what) for lane in range(LANES)]


def _result(one: PtxInstruction, lane: int, read: object, values: _Values) -> int:
    """The number of a result in a lane."""
    assert callable(read)
    words, operands = one.words, one.operands[1:]
    unknown = values.of("unknown", one.number, 0, lane)
    if words[:3] == ("shfl", "sync", "bfly") and len(operands) == 4:
        step, clamp, mask = (item.value if isinstance(item, IntegerLiteral) else None for item in operands[1:])
        whole = clamp == LANES - 1 and mask is not None and mask & 0xFFFFFFFF == 0xFFFFFFFF
        return int(read(operands[0], lane ^ step)) if whole and step is not None and 0 < step < LANES else unknown
    if words[0] == "ld" and "acquire" not in words and "relaxed" not in words and "volatile" not in words:
        where = operands[0]
        if isinstance(where, AddressOperand):
            return values.of("load", one.number, read(where.base, lane), where.offset)
    if words[0] not in COMPUTES or any(
        isinstance(item, Special) and not item.name.startswith(UNIFORM) for item in operands
    ):
        return unknown
    given = [int(read(item, lane)) for item in operands]
    if words[0] == "mov" and len(given) == 1 and not isinstance(operands[0], VectorOperand):
        return given[0]
    if words[0] in COMMUTES and words[-1] != "f64":
        given.sort()
    return values.of(words, *given)
