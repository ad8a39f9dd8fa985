"""Cut a cat text into tokens and comments.

In: Source. Out: tokens, and comments by position (the parser turns those beside a statement into its `doc`).
Settled here: nested `(* *)`, `/* */`, `//` and `#` comments, strings, what a name looks like. A name follows herd:
letters, digits, `_`, `.` and `-`, beginning with a letter or with `_` and a letter, perhaps ending in a quote.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from memmodel.errors import InputError
from memmodel.source import Source, Span


class Lexeme(Enum):
    NAME = "name"
    WORD = "keyword"
    STRING = "string"
    TAG = "tag"
    MARK = "operator"
    END = "end of text"


class CatToken(NamedTuple):
    """One token; `text` of a string or tag is without its quotes. `first`: only comments precede it on its line."""

    sort: Lexeme
    text: str
    start: int
    end: int
    first: bool


class Comment(NamedTuple):
    """One comment without its delimiters; `first` as for a token."""

    text: str
    start: int
    end: int
    first: bool


CHECK_WORDS = ("acyclic", "irreflexive", "empty")
STATEMENT_WORDS = (
    "let",
    "include",
    "show",
    "unshow",
    "flag",
    "undefined_unless",
    "assert",
    "procedure",
    "call",
    "with",
    "forall",
    "match",
    "if",
    *CHECK_WORDS,
)
IGNORED_WORDS = ("enum", "instructions", "default", "debug", "catdep", "cut")
"""They begin statements too, but say nothing of which executions a model allows (or of tags only)."""

PLAIN_WORDS = ("assert", "default", "catdep", "cut")
"""Keywords at the beginning of a statement, names anywhere else; `from`, `then`, `else`, `do` and `subset` likewise."""

WORDS = frozenset(
    (*STATEMENT_WORDS, *IGNORED_WORDS, "rec", "and", "as", "in", "begin", "end", "when", "fun", "try")
) - frozenset(PLAIN_WORDS)

_TOKEN = re.compile(
    r"""(?P<space>[ \t\f]+) | (?P<line>\n) | (?P<comment>(?://|\#)[^\n]*) | (?P<open>\(\*|/\*) | (?P<string>"[^"\n]*")
      | (?P<name>_?[A-Za-z](?:[A-Za-z0-9_.]|-(?!>))*'?) | (?P<tag>'[A-Za-z](?:[A-Za-z0-9_.]|-(?!>))*)
      | (?P<mark>_|0(?![0-9A-Za-z_])|->|-1|\|\||\+\+|[()\[\]{}|&\\;*~+?^=,])""",
    re.VERBOSE,
)
_NESTING = re.compile(r"\(\*(?!\()|\*\)")
"""Inside a comment `(*(` is not a comment: C expressions begin so."""


def tokenize(source: Source) -> tuple[list[CatToken], list[Comment]]:
    """Tokens in order, an END last, and comments in order. Raises InputError at a character that begins nothing."""
    text, position, first = source.text, 0, True
    tokens: list[CatToken] = []
    comments: list[Comment] = []
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _stray(source, position)
        sort, end = match.lastgroup, match.end()
        if sort == "line":
            first = True
        elif sort == "comment":
            comments.append(Comment(match.group().lstrip("/#").strip(), position, end, first))
        elif sort == "open":
            end = _comment_end(source, position, match.group())
            comments.append(Comment(_flat(text[position + 2 : end - 2]), position, end, first))
            first = first and "\n" not in text[position:end]
        elif sort != "space":
            tokens.append(CatToken(*_classify(sort, match.group()), position, end, first))
            first = False
        position = end
    tokens.append(CatToken(Lexeme.END, "", len(text), len(text), True))
    return tokens, comments


def _classify(sort: str | None, text: str) -> tuple[Lexeme, str]:
    if sort == "string":
        return Lexeme.STRING, text[1:-1]
    if sort == "tag":
        return Lexeme.TAG, text[1:]
    if sort == "name":
        return (Lexeme.WORD if text in WORDS else Lexeme.NAME), text
    return (Lexeme.NAME if text == "_" else Lexeme.MARK), text


def _comment_end(source: Source, start: int, opening: str) -> int:
    if opening == "/*":
        end = source.text.find("*/", start + 2)
        if end >= 0:
            return end + 2
        raise InputError("comment is never closed", source.span(start, start + 2), "close it with `*/`")
    depth = 1
    for bracket in _NESTING.finditer(source.text, start + 2):
        depth += 1 if bracket.group() == "(*" else -1
        if depth == 0:
            return bracket.end()
    raise InputError("comment is never closed", source.span(start, start + 2), "close it with `*)`; comments nest")


def _flat(text: str) -> str:
    """A block comment as one paragraph: decoration of asterisks and line breaks removed."""
    return " ".join(line.strip().strip("*").strip() for line in text.split("\n")).strip()


def _stray(source: Source, position: int) -> InputError:
    character = source.text[position]
    span = Span(source, position, position + 1)
    if character == '"':
        return InputError("string is never closed", span, 'close it with `"` on the same line')
    if character.isdigit():
        return InputError("only `0`, the empty set or relation, is a number here", span)
    if character == "'":
        return InputError("`'` begins a tag, which needs a name", span, "'name")
    return InputError(f"{character!r} has no meaning in a model", span)
