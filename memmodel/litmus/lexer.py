"""Characters to tokens, with offsets into the text as the user wrote it.

In: Source. Out: `Reader`, a cursor over tokens, and the small readers that every part of the language uses (numbers,
names). Comments become blanks of the same length first, so that an offset never shifts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NoReturn

from memmodel.errors import InputError
from memmodel.ptx.lexer import Cursor, Token, dialect, shorten
from memmodel.source import Source, Span

MAX_TOKENS = 200_000
"""More words than any test has; reading stops there, so that a huge file fails fast."""

MAX_WORD = 500
"""The longest instruction names of PTX have some 150 characters."""

RESERVED = frozenset({"exists", "forall", "locations", "thread", "aliases", "true", "not"})
"""Words that name nothing but themselves."""

INSTANCE_HINT = "one CTA's instance of x is written x@cta1"

_COMMENT = re.compile(r'"[^"]*"|"|//[^\n]*|\(\*|/\*')
_NOTE_EDGE = re.compile(r"\(\*|\*\)")
_NOT_NEWLINE = re.compile(r"[^\n]")
_NUMBER = re.compile(r"(-?)(?:0[xX]([0-9a-fA-F]{1,40})|(0|[1-9][0-9]{0,40}))U?")
_IDENTIFIER = re.compile(r"(?!_$)[A-Za-z_$][\w$]*", re.ASCII)


def _refuse(source: Source, at: int) -> NoReturn:
    """Raise InputError at a character that begins no word."""
    character = source.text[at]
    hint = "conjunction is `/\\`" if character == "&" else None
    message = f"`{character}` means nothing here" if character.isprintable() else "unreadable character"
    raise InputError(message, source.span(at, at + 1), hint)


SPELLING = dialect(
    r"/\\|\\/|==|!=|<=|>=|[][{}()<>=;:,|@!~+-]", _refuse, skipped="", sign="-?", longest=MAX_WORD, most=MAX_TOKENS
)
"""Words of litmus tests: the sign belongs to a number, and comments are blanks already (`blank_comments`)."""


def blank_comments(source: Source) -> str:
    """The text with `// …`, `/* … */` and nesting `(* … *)` as blanks. Raises InputError if one is never closed."""
    text = source.text
    pieces: list[str] = []
    done = 0
    for comment in comments(source):
        pieces += (text[done : comment.start], _NOT_NEWLINE.sub(" ", comment.text))
        done = comment.end
    return "".join(pieces) + text[done:]


def comments(source: Source) -> Iterator[Span]:
    """The comments of a text, in order. Raises InputError if one is never closed."""
    text = source.text
    at = 0
    while comment := _COMMENT.search(text, at):
        start, mark, at = comment.start(), comment[0], comment.end()
        if mark == '"':
            raise InputError("this sentence is never closed", source.span(start, start + 1), 'end it with `"`')
        if mark[0] == '"':
            continue
        if mark == "(*":
            at = _end_of_note(source, start)
        elif mark == "/*":
            at = text.find("*/", start + 2) + 2
            if at == 1:
                raise InputError("this comment is never closed", source.span(start, start + 2), "end it with `*/`")
        yield source.span(start, at)


def _end_of_note(source: Source, start: int) -> int:
    depth = 0
    for edge in _NOTE_EDGE.finditer(source.text, start):
        depth += 1 if edge[0] == "(*" else -1
        if depth == 0:
            return edge.end()
    raise InputError("this comment is never closed", source.span(start, start + 2), "end it with `*)`")


class Reader(Cursor):
    """A cursor over the words of a litmus test."""

    __slots__ = ()

    def replace(self, end: int, tokens: list[Token]) -> None:
        """Put other tokens in place of those from the cursor up to `end`, which stays where it is in the text."""
        self.tokens = [*self.tokens[: self.at], *tokens, *self.tokens[end:]]
        self.token = self.tokens[self.at]

    def part(self, first: int, last: int, name: str) -> Reader:
        """A cursor over tokens first..last alone; `name` is what its end is called."""
        end = self.tokens[last].start if first == last else self.tokens[last - 1].end
        return Reader(self.source, [*self.tokens[first:last], Token("end", f"the end of the {name}", end, end)])

    def number(self, what: str = "a number", *, bits: int = 64) -> tuple[int, Token]:
        """An integer of at most `bits` bits (signed or unsigned), decimal or 0x. Raises InputError with the rule."""
        token = self.expect("number", what)
        spelling = _NUMBER.fullmatch(token.text)
        if spelling is None:
            if token.text.lstrip("-").isdigit() and len(token.text) > 40:
                raise self._too_wide(token, bits)
            hint = "a whole number, decimal without leading zeros, or hexadecimal as 0x1f"
            raise InputError(f"`{shorten(token.text)}` is not a number", self.span(token), hint)
        value = int(spelling[2], 16) if spelling[2] else int(spelling[3])
        value = -value if spelling[1] else value
        if not -(1 << (bits - 1)) <= value < 1 << bits:
            raise self._too_wide(token, bits)
        return value, token

    def _too_wide(self, token: Token, bits: int) -> InputError:
        return InputError(f"`{shorten(token.text)}` does not fit in {bits} bits", self.span(token))

    def count(self, what: str, limit: int) -> tuple[int, Token]:
        """An integer from 0 to `limit`."""
        value, token = self.number(what)
        if not 0 <= value <= limit:
            raise InputError(f"{what} must be from 0 to {limit}, not {value}", self.span(token))
        return value, token

    def identifier(self, what: str) -> Token:
        """A plain name: letters, digits, `_` and `$`, and no word of the language."""
        token = self.expect("name", what)
        if not _IDENTIFIER.fullmatch(token.text):
            hint = "letters, digits, `_` and `$` only"
            raise InputError(f"`{shorten(token.text)}` cannot be {what}", self.span(token), hint)
        if token.text in RESERVED:
            raise InputError(f"`{token.text}` is a word of the language and cannot be {what}", self.span(token))
        return token

    def register(self) -> tuple[str, Token]:
        """A register name without its `%`."""
        token = self.expect("name", "a register")
        return self.register_name(token), token

    def register_name(self, token: Token) -> str:
        """The name of the register that a name token spells."""
        if "::" in token.text:
            raise InputError(f"`{shorten(token.text)}` is not a register", self.span(token))
        return token.text.removeprefix("%")

    def cta_number(self) -> tuple[int, Token]:
        """What follows the `@` of one CTA's instance: `cta1` or `cta 1`."""
        token = self.expect("name", "`cta` and a number", INSTANCE_HINT)
        if token.text == "cta":
            return self.count("a CTA number", MAX_PLACE)
        digits = token.text[3:]
        if not token.text.startswith("cta") or not digits.isdigit() or len(digits) > 5 or int(digits) > MAX_PLACE:
            message = f"expected `cta` and a number, found `{shorten(token.text)}`"
            raise InputError(message, self.span(token), INSTANCE_HINT)
        return int(digits), token


MAX_PLACE = 65_535
"""The largest number that a CTA, cluster, gpu or warp may have."""


def listed(words: Iterable[str]) -> str:
    """`a, b or c`."""
    *head, last = words
    return f"{', '.join(head)} or {last}" if head else last
