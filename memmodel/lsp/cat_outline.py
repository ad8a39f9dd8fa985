"""What a cat text defines, read from its tokens alone, so that it is known while the text is being typed.

In: Source. Out: `Defined` names with their comments, includes, the name at an offset.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from memmodel.cat.text import tree
from memmodel.cat.text.lexer import CHECK_WORDS, STATEMENT_WORDS, CatToken, Comment, Lexeme, tokenize
from memmodel.errors import InputError
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
    tokens, comments = tokens_of(source)
    starts = [n for n, one in enumerate(tokens) if _begins(tokens, n, one)]
    found: list[Defined] = []
    for number, first in enumerate(starts):
        last = (starts[number + 1] if number + 1 < len(starts) else len(tokens) - 1) - 1
        statement = Span(source, tokens[first].start, tokens[max(first, last)].end)
        doc = _above(source, comments, statement.start)
        for kind, token in _names(tokens[first : last + 1]):
            found.append(Defined(token.text, kind, Span(source, token.start, token.end), statement, doc))
    return found


def _begins(tokens: list[CatToken], number: int, one: CatToken) -> bool:
    before = tokens[number - 1] if number else one
    first = one.first or (before.first and before.text in ("override", "~"))
    return first and one.sort is Lexeme.WORD and one.text in BEGIN


def _names(tokens: list[CatToken]) -> Iterator[tuple[str, CatToken]]:
    """The names that one statement defines."""
    head = tokens[0].text
    if head in ("let", "procedure", "enum", "forall"):
        depth = 0
        wanted = True
        for at, one in enumerate(tokens[1:], 1):
            depth += {"(": 1, "begin": 1, ")": -1, "end": -1}.get(one.text, 0) if one.sort is not Lexeme.STRING else 0
            if one.sort is Lexeme.WORD and one.text in ("rec", "override"):
                continue
            if wanted and one.sort is Lexeme.NAME and one.text != "override":
                yield head, one
                wanted = head == "let" and depth > 0 and tokens[at + 1 :][:1] != [] and tokens[at + 1].text == ","
                continue
            wanted = wanted and one.text in ("(", ",")
            if head == "let" and depth == 0 and one.sort is Lexeme.WORD and one.text == "and":
                wanted = True
    elif head in (*CHECK_WORDS, "flag", "undefined_unless", "assert", "show", "call"):
        kind = "check" if head in CHECK_WORDS else head
        for before, one in itertools.pairwise(tokens):
            if before.text == "as" and before.sort is Lexeme.WORD and one.sort is Lexeme.NAME:
                yield kind, one


def _above(source: Source, comments: list[Comment], at: int) -> str:
    """The comments that end on the line above, or on the same line."""
    text: list[str] = []
    for one in reversed(comments):
        between = source.text[one.end : at]
        if one.end > at:
            continue
        if between.strip() or between.count("\n") > 1:
            break
        text.insert(0, one.text)
        at = one.start
    return "\n".join(text)


def includes(source: Source) -> list[tree.Include]:
    """The includes of a text."""
    tokens, _ = tokens_of(source)
    return [
        tree.Include(two.text, Span(source, two.start, two.end))
        for one, two in itertools.pairwise(tokens)
        if one.sort is Lexeme.WORD and one.text == "include" and two.sort is Lexeme.STRING
    ]


def token_at(source: Source, offset: int) -> CatToken | None:
    """The name, word or string at an offset."""
    tokens, _ = tokens_of(source)
    kinds = (Lexeme.NAME, Lexeme.WORD, Lexeme.STRING)
    return next(
        (one for one in tokens if one.start <= offset <= one.end and one.sort in kinds and one.end > one.start), None
    )
