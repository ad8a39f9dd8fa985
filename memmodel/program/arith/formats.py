"""Floating-point formats: bits to numbers, and exact numbers to bits in each rounding.

In: the name of a type. Out: `FORMATS`, `number_of`, `bits_of`. Every number of these types is a Python float exactly; a
result is a Fraction until it is rounded once.
"""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import NamedTuple


class Format(NamedTuple):
    """Bits of the exponent and of the fraction."""

    exponent: int
    fraction: int

    @property
    def width(self) -> int:
        return 1 + self.exponent + self.fraction

    @property
    def bias(self) -> int:
        return (1 << self.exponent - 1) - 1

    @property
    def infinite(self) -> int:
        return (1 << self.exponent) - 1 << self.fraction

    @property
    def least(self) -> float:
        """The smallest normal number."""
        return math.ldexp(1.0, 1 - self.bias)


FORMATS = {"f16": Format(5, 10), "bf16": Format(8, 7), "f32": Format(8, 23), "f64": Format(11, 52)}
CODES = {"f16": ("<H", "<e"), "f32": ("<I", "<f"), "f64": ("<Q", "<d")}


def number_of(bits: int, kind: str) -> float:
    """The number that bits stand for."""
    if kind == "bf16":
        bits, kind = (bits & 0xFFFF) << 16, "f32"
    whole, real = CODES[kind]
    return float(struct.unpack(real, struct.pack(whole, bits & (1 << FORMATS[kind].width) - 1))[0])


def bits_of(number: Fraction | float, kind: str, mode: str = "rn", *, finite: bool = False) -> int:
    """The bits of a number that is not NaN, rounded. `finite`: what is too large becomes the largest finite number."""
    form = FORMATS[kind]
    negative = math.copysign(1.0, number) < 0 if isinstance(number, float) else number < 0
    sign = negative << form.width - 1
    if isinstance(number, float) and math.isinf(number):
        return sign | form.infinite - finite
    exact = abs(Fraction(number))
    if not exact:
        return sign
    power = exact.numerator.bit_length() - exact.denominator.bit_length()
    power -= exact < Fraction(2) ** power
    power = max(power, 1 - form.bias)
    scaled = exact / Fraction(2) ** (power - form.fraction)
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    away = {"rn": rest * 2 > 1 or (rest * 2 == 1 and whole & 1), "rz": False,
            "rm": negative and rest > 0, "rp": not negative and rest > 0}[mode]  # fmt: skip
    # A carry out of the fraction raises the exponent, up to that of infinity.
    bits = (power + form.bias - 1 << form.fraction) + whole + away
    if bits >= form.infinite:
        towards = mode == "rz" or (mode == "rm" and not negative) or (mode == "rp" and negative)
        bits = form.infinite - (towards or finite)
    return sign | bits
