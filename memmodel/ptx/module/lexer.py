"""PTX text to tokens.

In: Source. Out: `tokens`, `Cursor`. Comments, white space and embedded sources of other languages are dropped; every
token keeps its place.
"""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from memmodel.errors import InputError
from memmodel.source import Source, Span

_TOKEN = re.compile(
    r"(?P<blank>(?:\s|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/|\.source_begin\b(?:[^.]|\.(?!source_end\b))*\.source_end\b)+)"
    r"|(?P<name>%?[A-Za-z_$][\w$]*(?:(?:\.|::)[\w$]+)*|%[\w$]+)"
    r"|(?P<number>0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b|0[xX][0-9a-fA-F]+U?|0[bB][01]+U?"
    r"|(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+U?)"
    r"|(?P<dot>\.[A-Za-z_]\w*(?:::\w+)*)"
    r"|(?P<string>\"(?:[^\"\\\n]|\\.)*\")"
    r"|(?P<punct>[][{}()<>,;:@!|+\-=*~&^])"
    r"|(?P<bad>.)",
    re.ASCII | re.DOTALL,
)


class PtxToken(NamedTuple):
    """`kind`: name, number, dot (a directive), string, end, or the punctuation itself."""

    kind: str
    text: str
    start: int
    end: int


def tokens(source: Source) -> list[PtxToken]:
    """All tokens, then one of kind `end`. Raises InputError at a character that begins none."""
    found: list[PtxToken] = []
    for match in _TOKEN.finditer(source.text):
        kind = match.lastgroup or "bad"
        if kind == "blank":
            continue
        text = match.group()
        if kind == "bad":
            what = {'"': "this string is never closed", "/": "this comment is never closed"}.get(text)
            message = what or f"{text!r} begins no word of PTX"
            raise InputError(message, source.span(match.start(), match.end()))
        found.append(PtxToken(text if kind == "punct" else kind, text, match.start(), match.end()))
    end = len(source.text)
    found.append(PtxToken("end", "end of file", end, end))
    return found


class Cursor:
    """A place in the tokens of a source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._tokens = tokens(source)
        self._at = 0

    @property
    def next(self) -> PtxToken:
        return self._tokens[self._at]

    @property
    def second(self) -> PtxToken:
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    def take(self) -> PtxToken:
        """The next token, which is passed."""
        token = self._tokens[self._at]
        if token.kind != "end":
            self._at += 1
        return token

    def accept(self, kind: str) -> PtxToken | None:
        """The next token if it is of that kind."""
        return self.take() if self._tokens[self._at].kind == kind else None

    def expect(self, kind: str, what: str | None = None) -> PtxToken:
        """The next token, which has to be of that kind."""
        token = self._tokens[self._at]
        if token.kind != kind:
            self.fail(f"{what or repr(kind)} is expected here, not {shown(token)}", token)
        return self.take()

    def span(self, token: PtxToken) -> Span:
        return self.source.span(token.start, token.end)

    def fail(self, message: str, token: PtxToken | None = None, hint: str | None = None) -> NoReturn:
        raise InputError(message, self.span(token or self.next), hint)

    def integer(self, what: str) -> int:
        """A number, with its sign."""
        negative = self.accept("-") is not None
        token = self.expect("number", what)
        value = integer_of(token.text)
        if value is None:
            self.fail(f"{what} is a whole number", token)
        return -value if negative else value


def integer_of(text: str) -> int | None:
    """The value of an integer literal; None for a floating-point one."""
    digits = text.rstrip("U")
    low = digits[:2].lower()
    if low in ("0f", "0d") or "." in digits or len(digits) > 70:
        return None
    if low == "0x":
        return int(digits, 16)
    if low == "0b":
        return int(digits, 2)
    if "e" in digits.lower():
        return None
    if digits.startswith("0") and digits != "0" * len(digits):
        return int(digits, 8) if digits.strip("01234567") == "" else None
    return int(digits)


def shown(token: PtxToken) -> str:
    """A token as an error quotes it."""
    if token.kind == "end":
        return "the end of the file"
    return repr(token.text if len(token.text) <= 40 else token.text[:37] + "...")
