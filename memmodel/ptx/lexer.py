"""Characters of PTX to tokens: one lexer for litmus tests and compiled modules.

In: Source, and what a dialect adds (`Dialect`). Out: `Token`s, and `Cursor`, a place among them. Comments and white
space are dropped; every token keeps its place in the text as the user wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, NoReturn, TypeVar

from memmodel.errors import InputError
from memmodel.source import Source, Span

Read = TypeVar("Read")

NAME = r"%?[A-Za-z_$][\w$]*(?:(?:\.|::)[\w$]+)*|%[\w$]+"
"""An opcode with its qualifiers, a register, a variable, a label."""

NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)[eE][+-]?\d+|\d[\w.]*|\.\d+"
"""Whatever begins like a number; what it says is looked at where a number is read."""

DIRECTIVE = r"\.[A-Za-z_]\w*(?:::\w+)*"
WARP_SIZE = "WARP_SZ", "32"
"""The integer constant that PTX predefines, by name ("Predefined Constants"), and its value."""

STRING = r"\"(?:[^\"\\\n]|\\.)*\""
COMMENT = r"//[^\n]*+|/\*.*?\*/"
"""A comment, taken whole: nothing is read twice, however much of it there is. No repetition stands within a possessive
one, in which Python 3.11.2 loses its place."""


class Token(NamedTuple):
    """`kind`: name, number, dot (`.u32`), string, end, or the punctuation itself. `start`, `end`: its characters."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a kind of file spells its tokens. `refuse` raises InputError at a character that begins none."""

    pattern: re.Pattern[str]
    refuse: Callable[[Source, int], NoReturn]
    longest: int
    most: int


def dialect(
    punctuation: str,
    refuse: Callable[[Source, int], NoReturn],
    *,
    skipped: str = COMMENT,
    opening: str = "",
    sign: str = "",
    longest: int = 1 << 20,
    most: int = 1 << 30,
) -> Dialect:
    """A dialect from its punctuation. `skipped`: what is dropped beside white space; "" if nothing is. `opening`: the
    directive that begins something skipped; where its end is missing, it begins no token. `sign`: what may belong to a
    number in front of it. `longest`, `most`: bounds of a token's characters, and of the number of tokens.
    """
    directive = f"(?!{opening}){DIRECTIVE}" if opening else DIRECTIVE
    token = (
        f"(?P<name>{NAME})|(?P<number>{sign}(?:{NUMBER})){f'|(?P<skip>{skipped})' if skipped else ''}"
        f"|(?P<dot>{directive})|(?P<string>{STRING})|(?P<punct>{punctuation})|(?P<end>\\Z)|(?P<bad>.)"
    )
    return Dialect(re.compile(f"\\s*+(?:{token})", re.ASCII | re.DOTALL), refuse, longest, most)


def tokenize(source: Source, spelling: Dialect, text: str | None = None, start: int = 0) -> list[Token]:
    """The tokens of a source from `start` on, an end token last. `text`: what stands for its text, as long as that.

    Raises InputError at a character that begins no token, and where there are too many.
    """
    text = source.text if text is None else text
    tokens: list[Token] = []
    append, new, longest, most = tokens.append, tuple.__new__, spelling.longest, spelling.most
    for match in spelling.pattern.finditer(text, start):
        kind = match.lastgroup or "bad"
        first, last = match.span(kind)
        if kind == "skip":
            continue
        if kind == "end":
            break
        if kind == "bad":
            spelling.refuse(source, first)
        word = match[kind]
        append(new(Token, (word if kind == "punct" else kind, word, first, last)))
        if last - first > longest:
            raise InputError(f"a word of more than {longest:,} characters", source.span(first, last))
        if len(tokens) > most:
            raise InputError(f"more than {most:,} words", source.span(first, last), "this is no file of this kind")
    name, value = WARP_SIZE
    if name in text:
        for index, token in enumerate(tokens):
            if token.kind == "name" and token.text == name:
                tokens[index] = token._replace(kind="number", text=value)
    end = len(text.rstrip())
    tokens.append(Token("end", "the end of the file", end, end))
    return tokens


class Cursor:
    """A place among the tokens of a source. The last token has kind `end` and is never passed."""

    __slots__ = ("at", "source", "token", "tokens")

    def __init__(self, source: Source, tokens: list[Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.at = 0
        self.token = tokens[0]

    def next(self) -> Token:
        """The current token; the cursor moves on."""
        token = self.token
        if token.kind != "end":
            self.at += 1
            self.token = self.tokens[self.at]
        return token

    def ahead(self, count: int = 1) -> Token:
        """The token `count` after the current one."""
        return self.tokens[min(self.at + count, len(self.tokens) - 1)]

    def accept(self, kind: str) -> Token | None:
        """The current token if it is of that kind, and moves on; else None."""
        return self.next() if self.token.kind == kind else None

    def accept_word(self, word: str) -> Token | None:
        """The current token if it is that name, and moves on; else None."""
        return self.next() if self.token.kind == "name" and self.token.text == word else None

    def separated(self, read: Callable[[], Read]) -> list[Read]:
        """What `read` reads at the cursor, and after each comma that follows."""
        values = [read()]
        while self.accept(","):
            values.append(read())
        return values

    def expect(self, kind: str, what: str | None = None, hint: str | None = None) -> Token:
        """The current token, which must be of that kind; `what` says in words what is wanted."""
        if self.token.kind != kind:
            raise self.wanted(what or f"`{kind}`", hint)
        return self.next()

    def wanted(self, what: str, hint: str | None = None) -> InputError:
        """The error for a current token that is not `what`."""
        word = self.token.text if self.token.kind == "end" else f"`{shorten(self.token.text)}`"
        return InputError(f"expected {what}, found {word}", self.here(), hint)

    def fail(self, message: str, token: Token | None = None, hint: str | None = None) -> NoReturn:
        """Raise InputError at a token, the current one if none is given."""
        raise InputError(message, self.span(token or self.token), hint)

    def here(self) -> Span:
        """The span of the current token."""
        return Span(self.source, self.token.start, self.token.end)

    def span(self, first: Token, last: Token | None = None) -> Span:
        """From the first token to the last (to the same one if not given)."""
        return Span(self.source, first.start, (last or first).end)


def shorten(text: str) -> str:
    """The text, cut where a message would become unreadable."""
    return text if len(text) <= 48 else text[:45] + "…"
