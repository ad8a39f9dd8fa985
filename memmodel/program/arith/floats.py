"""Floating-point arithmetic on known numbers: comparisons, arithmetic, conversions.

In: the name of an operation with its modifiers, a type. Out: a function from bits to bits. None is a NaN, whose bits
PTX leaves open, or a result that is not computed here: approximations, random rounding. f32 sums, products, quotients
and roots that are rounded to nearest are computed in f64 and rounded once more, which gives the same (53 bits are more
than twice 24); what f64 does not give is computed with fractions.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from fractions import Fraction

from memmodel.errors import InternalError
from memmodel.program.arith.formats import CODES, FORMATS, bits_of, number_of
from memmodel.program.arith.integers import Operation, bounds, reader
from memmodel.ptx.vocabulary import DataType

Number = Fraction | float

TO_INTEGER: dict[str, Callable[[float], int]] = {
    "rni": round,
    "rzi": math.trunc,
    "rmi": math.floor,
    "rpi": math.ceil,
}
MODES = ("rn", "rz", "rm", "rp")
UNCOMPUTED = frozenset(("approx", "full", "rs", "rna", "oob"))
"""Modifiers that ask for what is not computed here."""

OPAQUE = frozenset(("ex2", "lg2", "sin", "cos", "tanh", "rsqrt"))
"""Operations whose results PTX only bounds."""

TESTS: dict[str, tuple[Callable[[float, float], bool], bool]] = {
    "eq": (operator.eq, False),
    "ne": (operator.ne, False),
    "lt": (operator.lt, False),
    "le": (operator.le, False),
    "gt": (operator.gt, False),
    "ge": (operator.ge, False),
    "equ": (operator.eq, True),
    "neu": (operator.ne, True),
    "ltu": (operator.lt, True),
    "leu": (operator.le, True),
    "gtu": (operator.gt, True),
    "geu": (operator.ge, True),
    "num": (lambda a, b: True, False),
    "nan": (lambda a, b: False, True),
    "testp": (lambda a, b: False, False),
}
"""Comparisons: of two numbers, and whether they hold where one of the two is NaN. testp looks at the bits of one."""


def operation(op: str, type: DataType) -> Operation:
    """The function of an operation. Raises InternalError if there is none."""
    head, *modifiers = op.split(".")
    words = frozenset(modifiers)
    if head in OPAQUE or words & UNCOMPUTED:
        return unknown
    if head == "cvt":
        return conversion(modifiers[0], words, type)
    kind = str(type)
    if head == "testp":
        return _tested(modifiers[0], type)
    if head in TESTS:
        return _compared(head, kind, flushes="ftz" in words)
    if head in ("min", "max"):
        return _chosen(head, kind, words)
    if head in ("neg", "abs", "copysign"):
        return _signed(head, kind, flushes="ftz" in words)
    if head in ROUNDED:
        return _arithmetic(head, kind, words)
    raise InternalError(f"no arithmetic operation '{op}' on .{type}")


def unknown(*args: int) -> None:
    """The result of an operation that is not computed."""
    return None


def flushed(number: float, kind: str) -> float:
    """Subnormal numbers as zero, with their sign (.ftz)."""
    return math.copysign(0.0, number) if abs(number) < FORMATS[kind].least else number


# ---- tests and choices -----------------------------------------------------------------------------------------------


def _compared(how: str, kind: str, *, flushes: bool) -> Operation:
    decide, unordered = TESTS[how]

    def compare(a: int, b: int) -> int:
        x, y = number_of(a, kind), number_of(b, kind)
        if x != x or y != y:
            return int(unordered)
        return int(decide(flushed(x, kind), flushed(y, kind)) if flushes else decide(x, y))

    return compare


def _tested(what: str, type: DataType) -> Operation:
    """testp: a property of a number."""
    form = FORMATS[str(type)]
    top = (1 << form.exponent) - 1

    def test(a: int) -> int:
        exponent, fraction = a >> form.fraction & top, a & (1 << form.fraction) - 1
        table = {
            "finite": exponent != top,
            "infinite": exponent == top and not fraction,
            "number": exponent != top or not fraction,
            "notanumber": exponent == top and bool(fraction),
            "normal": 0 < exponent < top or not (exponent or fraction),
            "subnormal": not exponent and bool(fraction),
        }
        return int(table[what])

    return test


def _least(a: float, b: float) -> float:
    """The smaller one; -0.0 is smaller than +0.0, and NaN is no number."""
    if a != a or b != b:
        return b if a != a else a
    return min(a, b, key=lambda x: (x, math.copysign(1.0, x)))


def _greatest(a: float, b: float) -> float:
    return -_least(-a, -b)


def _chosen(head: str, kind: str, words: frozenset[str]) -> Operation:
    """min and max of two or three numbers; .abs, .xorsign: of their magnitudes, with the product of the signs."""
    choose = _least if head == "min" else _greatest

    def compute(*args: int) -> int | None:
        numbers = [number_of(arg, kind) for arg in args]
        if "NaN" in words and any(number != number for number in numbers):
            return None
        if "ftz" in words:
            numbers = [flushed(number, kind) for number in numbers]
        negative = sum(math.copysign(1.0, number) < 0 for number in numbers) % 2 == 1
        if "abs" in words:
            numbers = [abs(number) for number in numbers]
        result = numbers[0]
        for number in numbers[1:]:
            result = choose(result, number)
        if result != result:
            return None
        if "xorsign" in words:
            result = -abs(result) if negative else abs(result)
        return bits_of(result, kind)

    return compute


def _signed(head: str, kind: str, *, flushes: bool) -> Operation:
    """neg, abs and copysign change the sign alone. copysign: the sign of the first number, the value of the second."""
    top = 1 << FORMATS[kind].width - 1

    def compute(*args: int) -> int | None:
        value = args[-1] & (top << 1) - 1
        number = number_of(value, kind)
        if number != number:
            return None
        if flushes and abs(number) < FORMATS[kind].least:
            value &= top
        if head == "neg":
            return value ^ top
        return value & top - 1 | (args[0] & top if head == "copysign" else 0)

    return compute


# ---- arithmetic ------------------------------------------------------------------------------------------------------


def _fused(a: float, b: float, c: float) -> float | None:
    """a * b + c in f64, rounded once."""
    if not all(math.isfinite(number) for number in (a, b, c)):
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


ROUNDED: dict[str, Callable[..., float | None]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _quotient,
    "rcp": lambda a: _quotient(1.0, a),
    "fma": _fused,
    "sqrt": lambda a: math.sqrt(a) if a >= 0 else math.nan,
}
_EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "fma": lambda a, b, c: a * b + c,
    "div": lambda a, b: a / b,
    "rcp": lambda a: 1 / a,
}


def _arithmetic(head: str, kind: str, words: frozenset[str]) -> Operation:
    mode = next((word for word in MODES if word in words), "rn")
    if head == "sqrt" and (mode != "rn" or kind not in CODES):
        return unknown
    work, exact, flushes = ROUNDED[head], _EXACT.get(head), "ftz" in words
    plain = kind in ("f32", "f64") and mode == "rn" and (kind, head) != ("f32", "fma")

    def compute(*args: int) -> int | None:
        numbers = [number_of(arg, kind) for arg in args]
        if flushes:
            numbers = [flushed(number, kind) for number in numbers]
        result: Number | None = work(*numbers)
        divides = head in ("div", "rcp") and not numbers[-1]
        if not plain and exact is not None and not divides and all(map(math.isfinite, numbers)):
            result = exact(*map(Fraction, numbers)) or _zero(head, numbers, result, mode)
        return _finished(result, kind, words, mode, flushes=flushes)

    return compute


def _zero(head: str, numbers: list[float], result: Number | None, mode: str) -> Number | None:
    """A result that is zero: f64 gives it the sign, but that opposites are -0.0 when they are rounded down."""
    if mode != "rm" or head not in ("add", "sub", "fma"):
        return result
    first, last = numbers[0] * (1.0 if len(numbers) == 2 else numbers[1]), numbers[-1]
    ends = (first, -last if head == "sub" else last)
    return 0.0 if all(number == 0 and math.copysign(1.0, number) > 0 for number in ends) else -0.0


def _finished(result: Number | None, kind: str, words: frozenset[str], mode: str, *, flushes: bool) -> int | None:
    """The bits of a result, as the modifiers of the operation want them; None for NaN."""
    if result is None or result != result:
        return 0 if result is not None and "sat" in words else None
    if "sat" in words:
        result = max(0.0, min(1.0, result)) if result > 0 else 0.0
    if "relu" in words and result <= 0:
        result = 0.0
    if kind in ("f32", "f64") and mode == "rn" and isinstance(result, float) and "satfinite" not in words:
        bits = _nearest(result, kind)
    else:
        bits = bits_of(result, kind, mode, finite="satfinite" in words)
    form = FORMATS[kind]
    return bits & 1 << form.width - 1 if flushes and not bits & form.infinite else bits


def _nearest(number: float, kind: str) -> int:
    whole, real = CODES[kind]
    try:
        return int(struct.unpack(whole, struct.pack(real, number))[0])
    except OverflowError:
        return bits_of(math.copysign(math.inf, number), kind)


# ---- conversions -----------------------------------------------------------------------------------------------------


def conversion(source: str, words: frozenset[str], type: DataType) -> Operation:
    """cvt from a type to another, of which at least one is a floating-point type."""
    kind = str(type)
    if source in FORMATS and not type.floating:
        return _to_integer(source, words, type)
    if kind not in FORMATS:
        return unknown
    if source in FORMATS:
        return _between(source, words, kind)
    if source[0] in "us" and source[1:].isdigit():
        return _from_integer(DataType(source[0], int(source[1:])), words, kind)
    return unknown


def _between(source: str, words: frozenset[str], kind: str) -> Operation:
    """From one floating-point type to another, or to a whole number in the same. Only .f32 is flushed."""
    rounding = next((TO_INTEGER[word] for word in TO_INTEGER if word in words), None)
    mode = next((word for word in MODES if word in words), "rn")
    flushes = "ftz" in words

    def convert(a: int) -> int | None:
        number = number_of(a, source)
        if flushes and source == "f32":
            number = flushed(number, source)
        if rounding is not None and math.isfinite(number):
            number = math.copysign(float(rounding(number)), number)
        return _finished(number, kind, words, mode, flushes=flushes and kind == "f32")

    return convert


def _from_integer(source: DataType, words: frozenset[str], kind: str) -> Operation:
    read, mode = reader(source), next((word for word in MODES if word in words), "rn")
    return lambda a: _finished(Fraction(read(a)), kind, words, mode, flushes=False)


def _to_integer(source: str, words: frozenset[str], type: DataType) -> Operation:
    """.sat is redundant: the result is clamped by default."""
    rounding = next((TO_INTEGER[word] for word in TO_INTEGER if word in words), None)
    if rounding is None:
        return unknown
    (low, high), mask = bounds(type), type.mask
    flushes = "ftz" in words and source == "f32"

    def convert(a: int) -> int:
        number = number_of(a, source)
        if number != number:
            return 1 << type.width - 1 if source == "f64" or type.width == 64 else 0
        if flushes:
            number = flushed(number, source)
        whole = (high if number > 0 else low) if math.isinf(number) else rounding(number)
        return max(low, min(high, whole)) & mask

    return convert
