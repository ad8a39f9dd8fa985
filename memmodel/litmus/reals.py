"""Floating-point constants: as decimals, or by their exact bits, `0f3F800000` and `0d3FF0000000000000`.

In: Reader at a number. Out: Real. Settled here: how they are written ("Floating-Point Constants"). The type of an
instruction or a variable says which bits it gets (`Real.encoded`).
"""

from __future__ import annotations

import re
import struct

from memmodel.errors import InputError
from memmodel.litmus.lexer import Reader
from memmodel.ptx.lexer import shorten
from memmodel.ptx.operands import Real
from memmodel.ptx.vocabulary import DataType

_DECIMAL = re.compile(r"-?(?:(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)")
_EXACT = re.compile(r"0([fFdD])([0-9a-fA-F]*)")
_DIGITS = {"f": 8, "d": 16}


def at_real(reader: Reader) -> bool:
    """True if the reader stands at a floating-point constant."""
    text = reader.token.text
    return reader.token.kind == "number" and bool(_DECIMAL.fullmatch(text) or _EXACT.fullmatch(text))


def read_real(reader: Reader) -> Real:
    """A floating-point constant. Raises InputError if it has too few digits, or too many."""
    token = reader.next()
    exact = _EXACT.fullmatch(token.text)
    if exact is None:
        return Real(struct.unpack("<Q", struct.pack("<d", float(token.text)))[0], 64, reader.span(token))
    digits = _DIGITS[exact[1].lower()]
    if len(exact[2]) != digits:
        message = f"`{shorten(token.text)}` is not a floating-point number"
        raise InputError(message, reader.span(token), f"0{exact[1]} has {digits} hexadecimal digits after it")
    return Real(int(exact[2], 16), 4 * digits, reader.span(token))


def read_initial_value(reader: Reader, kind: DataType | None) -> int:
    """An integer, or the bits of a floating-point constant for a variable of that type."""
    if not at_real(reader):
        return reader.number("an initial value")[0]
    real = read_real(reader)
    bits = None if kind is None else real.encoded(kind)
    if bits is None:
        message = f"`{shorten(real.span.text)}` is not a value of type .{kind}" if kind else "this needs a type"
        raise InputError(message, real.span, f"declare the variable .f{real.width} or .b{real.width}")
    return bits
