"""Floating-point arithmetic on known numbers; everything else about floating point is unknown.

In: the words of an opcode. Out: a function from bits to bits, which is None for NaN, or None. f32 sums, products,
quotients and roots that are rounded to nearest are computed in f64 and rounded once more, which gives the same (53 bits
are more than twice 24); what f64 does not give is computed with fractions.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction

from memmodel.program.arith.formats import FORMATS, bits_of, number_of

_CODES = {"f32": ("<I", "<f"), "f64": ("<Q", "<d")}
_ROUND: dict[str, Callable[[float], int]] = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}
_MODES = ("rn", "rz", "rm", "rp")
_OTHERS = ("rs", "approx", "full", "rna", "xorsign", "oob", "scaled::n1::ue8m0", "scaled::n2::ue8m0")
"""Words that ask for something that is not computed here."""

PAIRS = {"f16x2": "f16", "bf16x2": "bf16", "f32x2": "f32"}
Bits = Callable[..., int | None]
Number = Fraction | float


def reader(kind: str) -> Callable[[int], float] | None:
    """Bits to a number."""
    return (lambda bits: number_of(bits, kind)) if kind in FORMATS else None


def flushed(number: float, kind: str) -> float:
    """Subnormal numbers as zero, with their sign (.ftz)."""
    return math.copysign(0.0, number) if abs(number) < FORMATS[kind].least else number


def _fused(a: float, b: float, c: float) -> float | None:
    """a * b + c in f64, rounded once."""
    if not all(math.isfinite(one) for one in (a, b, c)):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _quotient(a: float, b: float) -> float:
    if b:
        return a / b
    sign = math.copysign(1.0, a) * math.copysign(1.0, b)
    return math.nan if a == 0 or a != a else math.copysign(math.inf, sign)


def _least(a: float, b: float) -> float:
    """The smaller one; -0.0 is smaller than +0.0, and NaN is no number."""
    if a != a or b != b:
        return b if a != a else a
    return min(a, b, key=lambda one: (one, math.copysign(1.0, one)))


_SIMPLE: dict[str, Callable[..., float | None]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _quotient,
    "rcp": lambda a: _quotient(1.0, a),
    "fma": _fused,
    "mad": _fused,
    "sqrt": lambda a: math.sqrt(a) if a >= 0 else math.nan,
    "min": _least,
    "max": lambda a, b: -(_least(-a, -b)),
}
_EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "fma": lambda a, b, c: a * b + c,
    "mad": lambda a, b, c: a * b + c,
    "div": lambda a, b: a / b,
    "rcp": lambda a: 1 / a,
}
_CHOSEN = ("min", "max", "neg", "abs")


def floating(words: tuple[str, ...]) -> Bits | None:
    """An arithmetic instruction, if it is computed here."""
    head, kind = words[0], words[-1]
    if kind in PAIRS:
        return _both(floating((*words[:-1], PAIRS[kind])), FORMATS[PAIRS[kind]].width)
    if kind not in FORMATS or any(word in _OTHERS for word in words):
        return None
    if head in ("neg", "abs"):
        return _signed(head, kind, flushes="ftz" in words)
    mode = next((word for word in words if word in _MODES), "rn")
    work = _SIMPLE.get(head)
    if work is None or (head == "sqrt" and (mode != "rn" or kind not in _CODES)):
        return None
    exact = _EXACT.get(head)
    plain = kind in _CODES and mode == "rn" and (kind, head) not in (("f32", "fma"), ("f32", "mad"))
    flushes, nans = "ftz" in words, "NaN" in words

    def compute(*given: int) -> int | None:
        numbers = [number_of(one, kind) for one in given]
        if flushes:
            numbers = [flushed(one, kind) for one in numbers]
        if nans and any(one != one for one in numbers):
            return None
        result: Number | None = work(*numbers)
        divides = head in ("div", "rcp") and not numbers[-1]
        if not plain and exact is not None and not divides and all(map(math.isfinite, numbers)):
            result = exact(*map(Fraction, numbers)) or _zero(head, numbers, result, mode)
        return _finished(result, kind, words, mode)

    return compute


def _zero(head: str, numbers: list[float], result: Number | None, mode: str) -> Number | None:
    """A result that is zero: f64 gives it the sign, but that opposites are -0.0 when they are rounded down."""
    if mode != "rm" or head not in ("add", "sub", "fma", "mad"):
        return result
    first, last = numbers[0] * (1.0 if len(numbers) == 2 else numbers[1]), numbers[-1]
    ends = (first, -last if head == "sub" else last)
    return 0.0 if all(one == 0 and math.copysign(1.0, one) > 0 for one in ends) else -0.0


def _finished(result: Number | None, kind: str, words: tuple[str, ...], mode: str) -> int | None:
    """The bits of a result, as the other words of the instruction want them; None for NaN."""
    if result is not None and result != result and "sat" in words:
        return 0
    if result is None or result != result:
        return None
    if "sat" in words:
        result = max(0.0, min(1.0, result)) if result > 0 else 0.0
    if "relu" in words and result <= 0:
        result = 0.0
    if kind in _CODES and mode == "rn" and isinstance(result, float) and "satfinite" not in words:
        bits = _nearest(result, kind)
    else:
        bits = bits_of(result, kind, mode, finite="satfinite" in words)
    if "ftz" in words and kind == "f32":
        return bits & 0x80000000 if not bits & 0x7F800000 else bits
    return 0 if "pzo" in words and bits == 1 << FORMATS[kind].width - 1 else bits


def _nearest(number: float, kind: str) -> int:
    whole, real = _CODES[kind]
    try:
        return int(struct.unpack(whole, struct.pack(real, number))[0])
    except OverflowError:
        return bits_of(math.copysign(math.inf, number), kind)


def _signed(head: str, kind: str, *, flushes: bool) -> Bits:
    """neg and abs change the sign alone."""
    top = 1 << FORMATS[kind].width - 1

    def compute(a: int) -> int | None:
        number = number_of(a, kind)
        if number != number:
            return None
        a = a & (top << 1) - 1 if not flushes or abs(number) >= FORMATS[kind].least else a & top
        return a ^ top if head == "neg" else a & top - 1

    return compute


def _both(fn: Bits | None, width: int) -> Bits | None:
    """The same on both halves of a register."""
    if fn is None:
        return None
    mask = (1 << width) - 1

    def compute(*given: int) -> int | None:
        low, high = fn(*(one & mask for one in given)), fn(*(one >> width & mask for one in given))
        return None if low is None or high is None else high << width | low

    return compute


def converted(words: tuple[str, ...]) -> Bits | None:
    """cvt between a floating-point type and another type, if it is computed here."""
    to, source = words[-2], words[-1]
    if any(word in _OTHERS for word in words):
        return None
    if to in ("f16x2", "bf16x2") and source == "f32":
        half = converted((*words[:-2], PAIRS[to], source))
        return None if half is None else _pair(half)
    if to in FORMATS and source[0] in "us" and source[1:].isdigit():
        return _from_integer(words, to, source)
    if source not in FORMATS:
        return None
    if to in FORMATS:
        return _between(words, to, source)
    if to[0] in "us" and to[1:].isdigit():
        return _to_integer(words, to, source)
    return None


def _pair(half: Bits) -> Bits:
    """Two numbers, the first one above the second."""

    def convert(a: int, b: int) -> int | None:
        high, low = half(a), half(b)
        return None if high is None or low is None else high << 16 | low

    return convert


def _between(words: tuple[str, ...], to: str, source: str) -> Bits:
    """From one floating-point type to another, or to a whole number in the same."""
    rounding = next((_ROUND[word] for word in words if word in _ROUND), None)
    mode = next((word for word in words if word in _MODES), "rn")
    flushes = "ftz" in words and source == "f32"

    def convert(a: int) -> int | None:
        number = number_of(a, source)
        if flushes:
            number = flushed(number, source)
        if rounding is not None and math.isfinite(number):
            number = math.copysign(float(rounding(number)), number)
        return _finished(number, to, words, mode)

    return convert


def _from_integer(words: tuple[str, ...], to: str, source: str) -> Bits:
    width = int(source[1:])
    mode = next((word for word in words if word in _MODES), "rn")

    def convert(a: int) -> int | None:
        a &= (1 << width) - 1
        number = a - (1 << width) if source[0] == "s" and a >> width - 1 else a
        return _finished(Fraction(number), to, words, mode)

    return convert


def _to_integer(words: tuple[str, ...], to: str, source: str) -> Bits | None:
    """.sat is redundant: the result is clamped by default."""
    width, signed = int(to[1:]), to[0] == "s"
    rounding = next((_ROUND[word] for word in words if word in _ROUND), None)
    if rounding is None:
        return None
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
    flushes = "ftz" in words and source == "f32"

    def convert(a: int) -> int:
        number = number_of(a, source)
        if number != number:
            return 1 << width - 1 if source == "f64" or width == 64 else 0
        if flushes:
            number = flushed(number, source)
        whole = (high if number > 0 else low) if math.isinf(number) else rounding(number)
        return max(low, min(high, whole)) & (1 << width) - 1

    return convert
