"""Do threads of a CTA store the same value, whatever the data? Shown by the text before the store.

In: the instructions of an entry, a store, and from where threads loaded. Out: for each thread the number of its value;
threads with one number store the same bytes. Settled here: only the straight line of code that ends in the store is
looked at; operations on equal operands are equal, and sums, products, minima and maxima do not depend on the order of
their two operands (results that are NaN are canonical but for .f64, PTX ISA "Floating Point Instructions"); what is
loaded from one place at one step is equal (a race of such a load is a finding of its own).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from memmodel.kernel.judge.events import LaunchTrace
from memmodel.kernel.text.polling import written
from memmodel.kernel.text.syntax import (
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


def stored_values(body: tuple[PtxInstruction, ...], run: LaunchTrace, at: int) -> dict[int, Hashable]:
    """For each thread of a full warp what the store at a place stores."""
    if body[at].words[0] == "discard":
        return {}
    targets = {operand.at for one in body for operand in one.operands if isinstance(operand, JumpTarget)}
    begin = at
    while begin > 0 and begin not in targets and body[begin - 1].words[0] not in CONTROL:
        begin -= 1
    loads: dict[tuple[int, int], list[Hashable]] = {}
    # What discard leaves may differ from load to load.
    unstable = any(one.words[0] == "discard" for one in body)
    for one in run.weak() if not unstable else ():
        if begin <= one.at < at and one.issue is None:
            loads.setdefault((one.thread, one.at), []).append((one.epoch, one.block, one.first))
    warps: dict[tuple[int, int], list[int]] = {}
    for thread in run.threads:
        warps.setdefault((thread.cta, thread.warp), []).append(thread.number)
    values = _Values()
    found: dict[int, Hashable] = {}
    for threads in warps.values():
        if len(threads) == LANES:
            found |= dict(zip(threads, _of_warp(body, begin, at, threads, loads, values), strict=True))
    return found


def _of_warp(
    body: tuple[PtxInstruction, ...], begin: int, at: int, threads: list[int],
    loads: dict[tuple[int, int], list[Hashable]], values: _Values,
) -> list[Hashable]:  # fmt: skip
    """What the lanes of a warp store."""
    registers: dict[int, list[int]] = {}

    def read(operand: Operand, lane: int) -> int:
        if isinstance(operand, Register):
            row = registers.get(operand.slot)
            return values.of("before", operand.slot, threads[lane]) if row is None else row[lane]
        if isinstance(operand, IntegerLiteral):
            return values.of("number", operand.value)
        if isinstance(operand, FloatLiteral):
            return values.of("number", operand.bits, operand.width)
        if isinstance(operand, Special) and operand.name.startswith(UNIFORM):
            return values.of("special", operand.name)
        if isinstance(operand, VectorOperand):
            return values.of("vector", *(read(item, lane) for item in operand.items))
        return values.of("other", str(operand), threads[lane])

    for one in body[begin:at]:
        rows = [_result(one, lane, read, values, threads, loads) for lane in range(LANES)]
        for place, slot in enumerate(written(one)):
            if one.guard is not None or (place and one.words[0] != "ld"):
                registers[slot] = [values.of("unknown", one.number, place, threads[lane]) for lane in range(LANES)]
            else:
                registers[slot] = [values.of("part", place, row) if place else row for row in rows]
    what = body[at].operands[1:2]
    return [tuple(read(operand, lane) for operand in what) for lane in range(LANES)]


def _result(
    one: PtxInstruction, lane: int, read: Callable[[Operand, int], int], values: _Values, threads: list[int],
    loads: dict[tuple[int, int], list[Hashable]],
) -> int:  # fmt: skip
    """The number of a result in a lane."""
    words, operands = one.words, one.operands[1:]
    unknown = values.of("unknown", one.number, 0, threads[lane])
    if words[:2] in (("shfl", "sync"), ("redux", "sync")):
        everyone = [values.of("number", mask) for mask in (-1, 0xFFFFFFFF)]
        if read(operands[-1], lane) not in everyone:
            return unknown
        if words[0] == "redux":
            return values.of("redux", one.number, threads[0])
        step, clamp = (item.value if isinstance(item, IntegerLiteral) else None for item in operands[1:3])
        if words[2] not in ("bfly", "idx") or clamp != LANES - 1 or step is None or not 0 <= step < LANES:
            return unknown
        return read(operands[0], lane ^ step if words[2] == "bfly" else step)
    if words[0] == "ld":
        places = loads.get((threads[lane], one.number))
        strong = any(word in words for word in ("acquire", "relaxed", "volatile"))
        return unknown if strong or not places else values.of("load", one.number, tuple(places))
    if words[0] not in COMPUTES or any(
        isinstance(item, Special) and not item.name.startswith(UNIFORM) for item in operands
    ):
        return unknown
    given = [read(item, lane) for item in operands]
    if words[0] == "mov" and len(given) == 1 and not isinstance(operands[0], VectorOperand):
        return given[0]
    if words[0] in COMMUTES and words[-1] != "f64":
        given.sort()
    return values.of(words, *given)
