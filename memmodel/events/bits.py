"""Arithmetic on values that may be almost any integer: circuits over bits, since the integers are too many to list.

A wide value is a tuple of formulas, lowest bit first, in two's complement: the last one is the sign, and stands for all
bits above it. Circuits agree with `program.arith`; the tests compare them on random operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from memmodel.base.logic import FALSE, TRUE, Logic
from memmodel.ptx.vocabulary import DataType

Bits = tuple[int, ...]


def extended(bits: Bits, width: int) -> Bits:
    """The lowest `width` bits, the sign repeated as far as needed."""
    return bits[:width] if len(bits) >= width else bits + (bits[-1],) * (width - len(bits))


def of_number(number: int) -> Bits:
    """The bits of a constant."""
    return tuple(TRUE if number >> i & 1 else FALSE for i in range(number.bit_length() + 1))


def of_cases(logic: Logic, cases: Mapping[int, int]) -> Bits:
    """The bits of a value given by cases (integer -> formula)."""
    width = max((number.bit_length() for number in cases), default=0) + 1
    return tuple(logic.disj(formula for number, formula in cases.items() if number >> i & 1) for i in range(width))


def number(bits: Bits, holds: Callable[[int], bool]) -> int:
    """The integer under a valuation."""
    unsigned = sum(1 << i for i, bit in enumerate(bits) if holds(bit))
    return unsigned - (1 << len(bits)) if unsigned >> (len(bits) - 1) else unsigned


def equal(logic: Logic, left: Bits, right: Bits) -> int:
    """The formula that says two values are the same."""
    width = max(len(left), len(right))
    return logic.conj(-_xor(logic, a, b) for a, b in zip(extended(left, width), extended(right, width), strict=True))


def less(logic: Logic, left: Bits, right: Bits) -> int:
    """left < right, as integers."""
    width = max(len(left), len(right))
    return _less(logic, extended(left, width), extended(right, width), signed=True)


def choose(logic: Logic, options: Iterable[tuple[int, Bits]]) -> Bits:
    """The option whose condition holds. The conditions exclude each other."""
    chosen = list(options)
    width = max(len(bits) for _, bits in chosen)
    wide = [(when, extended(bits, width)) for when, bits in chosen]
    return tuple(logic.disj(logic.both(when, bits[i]) for when, bits in wide) for i in range(width))


def part(bits: Bits, first: int, width: int) -> Bits:
    """Some bits of a value, as an unsigned number."""
    return (*extended(bits, first + width)[first:], FALSE)


def joined(parts: Sequence[tuple[Bits, int]]) -> Bits:
    """The concatenation of unsigned numbers, each with its width, the lowest first."""
    out: list[int] = []
    for bits, width in parts:
        out += extended(bits, width)
    return (*out, FALSE)


def apply(logic: Logic, op: str, args: list[Bits], type: DataType) -> Bits | None:
    """The bits of an operation of `program.arith`; None if it has no circuit."""
    if op == "selp":
        condition = logic.disj(args[2])
        return choose(logic, [(condition, wrap(args[0], type)), (-condition, wrap(args[1], type))])
    width, signed = type.width, type.kind == "s"
    inputs = [list(extended(arg, width)) for arg in args]
    a = inputs[0]
    b = inputs[1] if len(inputs) > 1 else []
    if op in ("eq", "ne", "lt", "le", "gt", "ge"):
        return _compare(logic, op, a, b, signed)
    if op in ("min", "max"):
        first = _less(logic, a, b, signed) if op == "min" else _less(logic, b, a, signed)
        out = [logic.choose(first, x, y) for x, y in zip(a, b, strict=True)]
    elif op == "abs":
        out = [logic.choose(a[-1], y, x) for x, y in zip(a, _negate(logic, a), strict=True)] if signed else a
    elif op in _BITWISE:
        out = [_BITWISE[op](logic, x, y) for x, y in zip(a, b, strict=True)]
    elif op == "add":
        out = _add(logic, a, b, FALSE)
    elif op == "sub":
        out = _add(logic, a, [-bit for bit in b], TRUE)
    elif op == "mul":
        out = _multiply(logic, a, b)
    elif op == "not":
        out = [-bit for bit in a]
    elif op == "neg":
        out = _negate(logic, a)
    elif op == "cvt":
        out = a
    elif op in _COUNTERS:
        out = _COUNTERS[op](logic, a, b, signed)
    elif op in ("mul.wide", "mul.hi"):
        return _whole_product(logic, op, args, type)
    else:
        return None
    return wrap(tuple(out), type)


def _whole_product(logic: Logic, op: str, args: list[Bits], type: DataType) -> Bits:
    """All bits of a product, or its upper half."""
    both = DataType(type.kind, 2 * type.width)
    product = _multiply(logic, *(list(extended(wrap(arg, type), both.width)) for arg in args))
    return wrap(tuple(product), both) if op == "mul.wide" else wrap(tuple(product[type.width :]), type)


def shift(op: str, value: Bits, amount: int, type: DataType) -> Bits:
    """shl or shr by a constant."""
    width = type.width
    amount = min(amount & 0xFFFFFFFF, width)
    kept = list(extended(value, width))
    if op == "shl":
        return wrap(tuple(([FALSE] * amount + kept)[:width]), type)
    fill = kept[-1] if type.kind == "s" else FALSE
    return wrap(tuple((kept[amount:] + [fill] * amount)[:width]), type)


def wrap(bits: Bits, type: DataType) -> Bits:
    """Reduce to a type: keep its bits, extend by its sign or by zero."""
    kept = extended(bits, type.width)
    return kept if type.kind == "s" else (*kept, FALSE)


def _xor(logic: Logic, a: int, b: int) -> int:
    if a in (TRUE, FALSE):
        return b if a == FALSE else -b
    if b in (TRUE, FALSE):
        return a if b == FALSE else -a
    return logic.either(logic.both(a, -b), logic.both(-a, b))


_BITWISE: dict[str, Callable[[Logic, int, int], int]] = {
    "and": lambda logic, a, b: logic.both(a, b),
    "or": lambda logic, a, b: logic.either(a, b),
    "xor": _xor,
}


def _inc(logic: Logic, a: list[int], b: list[int], signed: bool) -> list[int]:
    more = _add(logic, a, [FALSE] * len(a), TRUE)
    return [logic.both(_less(logic, a, b, signed), bit) for bit in more]


def _dec(logic: Logic, a: list[int], b: list[int], signed: bool) -> list[int]:
    wraps = logic.either(-logic.disj(a), _less(logic, b, a, signed))
    return [logic.choose(wraps, x, y) for x, y in zip(b, _add(logic, a, [TRUE] * len(a), FALSE), strict=True)]


_COUNTERS: dict[str, Callable[[Logic, list[int], list[int], bool], list[int]]] = {
    "inc": _inc,
    "dec": _dec,
    "cnot": lambda logic, a, *_: [-logic.disj(a)] + [FALSE] * (len(a) - 1),
}


def _add(logic: Logic, a: list[int], b: list[int], carry: int) -> list[int]:
    out = []
    for x, y in zip(a, b, strict=True):
        half = _xor(logic, x, y)
        out.append(_xor(logic, half, carry))
        carry = logic.either(logic.both(x, y), logic.both(half, carry))
    return out


def _negate(logic: Logic, a: list[int]) -> list[int]:
    return _add(logic, [-bit for bit in a], [FALSE] * len(a), TRUE)


def _multiply(logic: Logic, a: list[int], b: list[int]) -> list[int]:
    total = [FALSE] * len(a)
    for position, bit in enumerate(b):
        if bit != FALSE:
            row = [FALSE] * position + [logic.both(bit, x) for x in a[: len(a) - position]]
            total = _add(logic, total, row, FALSE)
    return total


def _less(logic: Logic, a: Sequence[int], b: Sequence[int], signed: bool) -> int:
    below = FALSE
    pairs = list(zip(a, b, strict=True))
    for i, (x, y) in enumerate(pairs):
        if signed and i == len(pairs) - 1:
            x, y = y, x
        below = logic.either(logic.both(-x, y), logic.both(-_xor(logic, x, y), below))
    return below


def _compare(logic: Logic, op: str, a: list[int], b: list[int], signed: bool) -> Bits:
    if op in ("eq", "ne"):
        same = logic.conj(-_xor(logic, x, y) for x, y in zip(a, b, strict=True))
        result = same if op == "eq" else -same
    elif op in ("lt", "ge"):
        below = _less(logic, a, b, signed)
        result = below if op == "lt" else -below
    else:
        above = _less(logic, b, a, signed)
        result = above if op == "gt" else -above
    return (result, FALSE)
