"""What a cat text defines, read from its tokens alone, so that it is known while the text is being typed.

In: Source. Out: `Defined` names with their comments, includes, the name at an offset.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from memmodel.cat.text import tree
from memmodel.cat.text.lexer import CHECK_WORDS, STATEMENT_WORDS, CatToken, Comment, Lexeme, tokenize
from memmodel.errors import InputError
from memmodel.recovery.every_error import Passage
from memmodel.source import Source, Span

BEGIN = frozenset(STATEMENT_WORDS) - {"match", "if", "with"} | {"enum"}
"""Words that begin a statement wherever they stand in a text that is well formed."""


@dataclass(frozen=True)
class Defined:
    """A name that a text defines: its kind (`let`, `check`, `procedure`, …), its statement, the comment above it."""

    name: str
    kind: str
    span: Span
    statement: Span
    doc: str


def tokens_of(source: Source) -> tuple[list[CatToken], list[Comment]]:
    """Tokens and comments, up to what is no token."""
    text = source.text
    for _ in range(20):
        try:
            return tokenize(Source(source.name, text))
        except InputError as error:
            if error.span is None:
                break
            at = error.span.start
            line = text.find("\n", at)
            rest = text[line:] if line >= 0 and "comment" not in error.message else ""
            text = text[:at] + " " * (len(text) - at - len(rest)) + rest
    return [], []


def defined(source: Source) -> list[Defined]:
    """Every name that the text defines, in order."""
    return _defined(source, *tokens_of(source))


def _defined(source: Source, tokens: list[CatToken], comments: list[Comment]) -> list[Defined]:
    starts = [n for n, token in enumerate(tokens) if _begins(tokens, n, token)]
    names: list[Defined] = []
    for number, first in enumerate(starts):
        last = (starts[number + 1] if number + 1 < len(starts) else len(tokens) - 1) - 1
        statement = Span(source, tokens[first].start, tokens[max(first, last)].end)
        doc = _above(source, comments, statement.start)
        for kind, token in _names(tokens[first : last + 1]):
            names.append(Defined(token.text, kind, Span(source, token.start, token.end), statement, doc))
    return names


def passage_of(source: Source, span: Span) -> Passage | None:
    """The statement that an error is in; None for an include, without which no name would be known.

    Where something is missing at the end of a statement, the error is at the first word of the next one.
    """
    tokens, comments = tokens_of(source)
    starts = [tokens[n - _modified(tokens, n)].start for n, token in enumerate(tokens) if _begins(tokens, n, token)]
    number = max(0, bisect_left(starts, span.start) - 1)
    if not starts or starts[number] > span.start:
        return None
    end = starts[number + 1] if number + 1 < len(starts) else len(source.text)
    statement = source.span(starts[number], end)
    if statement.text.startswith("include"):
        return None
    names = {name.name for name in _defined(source, tokens, comments) if statement.start <= name.span.start < end}
    return Passage(statement, frozenset(names))


def _begins(tokens: list[CatToken], number: int, token: CatToken) -> bool:
    first = token.first or _modified(tokens, number)
    return first and token.sort is Lexeme.WORD and token.text in BEGIN


def _modified(tokens: list[CatToken], number: int) -> bool:
    """True if the word before this one begins the statement: `override let`, `~empty`."""
    return number > 0 and tokens[number - 1].first and tokens[number - 1].text in ("override", "~")


def _names(tokens: list[CatToken]) -> Iterator[tuple[str, CatToken]]:
    """The names that one statement defines."""
    head = tokens[0].text
    if head in ("let", "procedure", "enum", "forall"):
        depth = 0
        wanted = True
        for at, token in enumerate(tokens[1:], 1):
            depth += (
                {"(": 1, "begin": 1, ")": -1, "end": -1}.get(token.text, 0) if token.sort is not Lexeme.STRING else 0
            )
            if token.sort is Lexeme.WORD and token.text in ("rec", "override"):
                continue
            if wanted and token.sort is Lexeme.NAME and token.text != "override":
                yield head, token
                wanted = head == "let" and depth > 0 and tokens[at + 1 :][:1] != [] and tokens[at + 1].text == ","
                continue
            wanted = wanted and token.text in ("(", ",")
            if head == "let" and depth == 0 and token.sort is Lexeme.WORD and token.text == "and":
                wanted = True
    elif head in (*CHECK_WORDS, "flag", "undefined_unless", "assert", "show", "call"):
        kind = "check" if head in CHECK_WORDS else head
        for before, token in itertools.pairwise(tokens):
            if before.text == "as" and before.sort is Lexeme.WORD and token.sort is Lexeme.NAME:
                yield kind, token


def _above(source: Source, comments: list[Comment], at: int) -> str:
    """The comments that end on the line above, or on the same line."""
    text: list[str] = []
    for comment in reversed(comments):
        between = source.text[comment.end : at]
        if comment.end > at:
            continue
        if between.strip() or between.count("\n") > 1:
            break
        text.insert(0, comment.text)
        at = comment.start
    return "\n".join(text)


def includes(source: Source) -> list[tree.Include]:
    """The includes of a text."""
    tokens, _ = tokens_of(source)
    return [
        tree.Include(path.text, Span(source, path.start, path.end))
        for word, path in itertools.pairwise(tokens)
        if word.sort is Lexeme.WORD and word.text == "include" and path.sort is Lexeme.STRING
    ]


def token_at(source: Source, offset: int) -> CatToken | None:
    """The name, word or string at an offset."""
    tokens, _ = tokens_of(source)
    kinds = (Lexeme.NAME, Lexeme.WORD, Lexeme.STRING)
    return next(
        (
            token
            for token in tokens
            if token.start <= offset <= token.end and token.sort in kinds and token.end > token.start
        ),
        None,
    )
