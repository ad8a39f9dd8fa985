"""Floating-point arithmetic on known numbers, rounded to nearest; everything else about floating point is unknown.

In: the words of an opcode. Out: a function from bits to bits, or None. f32 sums, products, quotients and roots are
computed in f64 and rounded once more, which gives the same (53 bits are more than twice 24).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction

_CODES = {"f16": ("<H", "<e"), "f32": ("<I", "<f"), "f64": ("<Q", "<d")}
_INFINITE = {"f16": 0x7C00, "f32": 0x7F800000, "f64": 0x7FF0000000000000}
_LEAST = {"f16": 2.0**-14, "f32": 2.0**-126, "f64": 2.0**-1022}
_ROUND: dict[str, Callable[[float], int]] = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}
_OTHERS = ("rz", "rm", "rp", "rs", "approx", "full", "sat", "relu", "satfinite", "rna", "NaN", "xorsign", "oob")
"""Words that ask for something that is not computed here."""

Bits = Callable[..., int]


def reader(kind: str) -> Callable[[int], float] | None:
    """Bits to a number."""
    if kind not in _CODES:
        return None
    whole, real = _CODES[kind]
    mask = (1 << int(kind[1:])) - 1

    def read(bits: int) -> float:
        return float(struct.unpack(real, struct.pack(whole, bits & mask))[0])

    return read


def _writer(kind: str) -> Callable[[float], int]:
    whole, real = _CODES[kind]

    def write(number: float) -> int:
        try:
            return int(struct.unpack(whole, struct.pack(real, number))[0])
        except OverflowError:
            sign = 1 << int(kind[1:]) - 1 if number < 0 else 0
            return _INFINITE[kind] | sign

    return write


def _fused(a: float, b: float, c: float) -> float | None:
    """a * b + c, rounded once; None where f64 cannot tell."""
    if not all(math.isfinite(one) for one in (a, b, c)):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c
    try:
        return float(exact)
    except OverflowError:
        return math.copysign(math.inf, exact)


def _quotient(a: float, b: float) -> float:
    if b:
        return a / b
    sign = math.copysign(1.0, a) * math.copysign(1.0, b)
    return math.nan if a == 0 or a != a else math.copysign(math.inf, sign)


_SIMPLE: dict[str, Callable[..., float | None]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _quotient,
    "fma": _fused,
    "mad": _fused,
    "sqrt": lambda a: math.sqrt(a) if a >= 0 else math.nan,
    "min": lambda a, b: b if a != a else a if b != b else min(a, b),
    "max": lambda a, b: b if a != a else a if b != b else max(a, b),
}


def floating(words: tuple[str, ...]) -> Bits | None:
    """An arithmetic instruction on f32 or f64, if it is computed here."""
    head, kind = words[0], words[-1]
    if kind not in ("f32", "f64") or any(word in _OTHERS for word in words):
        return None
    if head in ("neg", "abs"):
        top = 1 << int(kind[1:]) - 1
        return (lambda a: a ^ top) if head == "neg" else (lambda a: a & top - 1)
    work = _SIMPLE.get(head)
    read = reader(kind)
    if work is None or read is None or (head in ("fma", "mad") and kind == "f32"):
        return None
    write, flushes, least = _writer(kind), "ftz" in words, _LEAST[kind]

    def compute(*given: int) -> int | None:
        numbers = [read(one) for one in given]
        if flushes:
            numbers = [math.copysign(0.0, one) if abs(one) < least else one for one in numbers]
        result = work(*numbers)
        if result is None or result != result:
            return None
        if flushes and abs(result) < least:
            result = math.copysign(0.0, result)
        return write(result)

    return compute  # type: ignore[return-value]


def converted(words: tuple[str, ...]) -> Bits | None:
    """cvt between a floating-point type and another type, if it is computed here."""
    to, source = words[-2], words[-1]
    if any(word in _OTHERS for word in words) or "ftz" in words:
        return None
    read = reader(source)
    if to in _CODES and source[0] in "us" and source[1:].isdigit():
        return _from_integer(to, source)
    if read is None:
        return None
    if to in _CODES:
        write = _writer(to)
        rounding = next((_ROUND[word] for word in words if word in _ROUND), None)
        if rounding is None:
            return lambda a: write(read(a))
        return lambda a: write(float(rounding(read(a)))) if math.isfinite(read(a)) else write(read(a))
    if to[0] in "us" and to[1:].isdigit():
        return _to_integer(to, read, next((_ROUND[word] for word in words if word in _ROUND), None))
    return None


def _from_integer(to: str, source: str) -> Bits | None:
    width = int(source[1:])
    write = _writer(to)
    if width > 32 and to != "f64":
        return None

    def convert(a: int) -> int:
        a &= (1 << width) - 1
        return write(float(a - (1 << width) if source[0] == "s" and a >> width - 1 else a))

    return convert


def _to_integer(to: str, read: Callable[[int], float], rounding: Callable[[float], int] | None) -> Bits | None:
    width, signed = int(to[1:]), to[0] == "s"
    if rounding is None:
        return None
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)

    def convert(a: int) -> int:
        number = read(a)
        if number != number:
            return 0
        whole = (high if number > 0 else low) if math.isinf(number) else rounding(number)
        return max(low, min(high, whole)) & (1 << width) - 1

    return convert
