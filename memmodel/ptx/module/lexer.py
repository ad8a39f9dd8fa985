"""The words of a compiled module, and the numbers among them.

In: Source. Out: `ModuleCursor`. Embedded sources of other languages are dropped like comments.
"""

from __future__ import annotations

import re
import struct
from typing import NoReturn

from memmodel.errors import InputError
from memmodel.ptx.lexer import COMMENT, Cursor, dialect, tokenize
from memmodel.ptx.operands import Real
from memmodel.source import Source

_OPENING = r"\.source_begin\b"
_EMBEDDED = rf"{_OPENING}.*?\.source_end\b"
_UNCLOSED = {'"': "this string is never closed", "/": "this comment is never closed"}


def _refuse(source: Source, at: int) -> NoReturn:
    """Raise InputError at a character that begins no word."""
    character = source.text[at]
    opening = re.compile(_OPENING, re.ASCII).match(source.text, at)
    if opening is not None:
        raise InputError("this embedded source is never closed", source.span(at, opening.end()))
    message = _UNCLOSED.get(character, f"{character!r} begins no word of PTX")
    raise InputError(message, source.span(at, at + 1))


SPELLING = dialect(r"[][{}()<>,;:@!|+\-=*~&^]", _refuse, skipped=f"{COMMENT}|{_EMBEDDED}", opening=_OPENING)


class ModuleCursor(Cursor):
    """A place in the words of a module."""

    __slots__ = ()

    @classmethod
    def of(cls, source: Source) -> ModuleCursor:
        """The beginning of a module. Raises InputError at a character that begins no word."""
        return cls(source, tokenize(source, SPELLING))

    def integer(self, what: str) -> int:
        """A number, with its sign."""
        negative = self.accept("-") is not None
        token = self.expect("number", what)
        value = integer_of(token.text)
        if value is None:
            self.fail(f"{what} is a whole number", token)
        return -value if negative else value

    def skip_statement(self) -> None:
        """Pass over the rest of a statement and its semicolon."""
        while self.token.kind not in (";", "end"):
            self.next()
        self.expect(";")

    def skip_to_closing(self, opening: str, closing: str, message: str) -> None:
        """Pass over an opening bracket and all up to the one that closes it; `message`: for a text that ends first."""
        self.expect(opening)
        depth = 1
        while depth:
            token = self.next()
            if token.kind == "end":
                self.fail(message, token)
            depth += (token.kind == opening) - (token.kind == closing)


_INTEGER = re.compile(r"0[xX]([0-9a-fA-F]+)U?|0[bB]([01]+)U?|(\d+)U?", re.ASCII)
_EXACT = re.compile(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})", re.ASCII)
_MOST_DIGITS = 70


def integer_of(text: str) -> int | None:
    """The value of an integer literal; None if the text is no such literal."""
    match = _INTEGER.fullmatch(text)
    if match is None or len(text) > _MOST_DIGITS:
        return None
    hexadecimal, binary, digits = match.groups()
    if hexadecimal or binary:
        return int(hexadecimal or binary, 16 if hexadecimal else 2)
    if digits.startswith("0") and digits.strip("0"):
        return int(digits, 8) if not digits.strip("01234567") else None
    return int(digits)


def real_of(text: str) -> Real | None:
    """The value of a floating-point literal, by its bits or as a decimal; None if the text is no such literal."""
    match = _EXACT.fullmatch(text)
    if match is not None:
        single, double = match.groups()
        return Real(int(single or double, 16), 32 if single else 64)
    try:
        return Real(int.from_bytes(struct.pack("<d", float(text)), "little"), 64)
    except (ValueError, OverflowError):
        return None
