"""Where a name is used.

In: Document and an offset. Out: locations and highlights as the protocol has them. Settled here: a use belongs to the
declaration that it leads to, so that two threads' registers of one name are two names.
"""

from __future__ import annotations

import re
from itertools import islice

from memmodel.cat.text.lexer import Lexeme
from memmodel.cat.text.outline import defined, token_at, tokens_of
from memmodel.litmus.text.places import blanked, word_at
from memmodel.lsp import cat_names, litmus_names
from memmodel.lsp.cat_files import texts_of
from memmodel.lsp.document import Document, Json
from memmodel.source import Source, Span

MOST = 2_000
"""At most this many uses are listed."""

_NAME = re.compile(r"%?[A-Za-z_$][\w$]*")


def references(document: Document, offset: int, declaration: bool = True) -> list[Json]:
    """All uses of the name at an offset, in the texts of its model too. `declaration`: with where it is declared."""
    uses = {"litmus": _litmus, "cat": _cat, "ptx": _ptx}[document.kind](document, offset)
    places: list[Json] = []
    for owner, span, declares in uses[:MOST]:
        if declaration or not declares:
            places.append({"uri": owner.uri, "range": owner.at(span)})
    return places


def highlights(document: Document, offset: int) -> list[Json]:
    """The uses in the document itself."""
    return [{"range": place["range"]} for place in references(document, offset) if place["uri"] == document.uri]


_Use = tuple[Document, Span, bool]
"""The text, the place in it, and whether the name is declared there."""


def _litmus(document: Document, offset: int) -> list[_Use]:
    source = document.source
    test = litmus_names.parsed(source)
    span = word_at(source, offset)
    if test is None or span is None:
        return []
    word = span.text.lstrip("@!%")
    target = litmus_names.declared_at(test, source, span, offset)
    if target is None:
        return []
    uses: list[_Use] = []
    for match in _NAME.finditer(blanked(source)):
        if match[0].lstrip("%") == word:
            place = source.span(*match.span())
            if litmus_names.declared_at(test, source, place, place.start) == target:
                uses.append((document, place, target.start <= place.start < target.end))
    return uses


def _cat(document: Document, offset: int) -> list[_Use]:
    token = token_at(document.source, offset)
    if token is None or token.sort is not Lexeme.NAME:
        return []
    known = cat_names.definition_of(document, token)
    target = None if known is None else (known[1].span.source.name, known[1].span.start)
    uses: list[_Use] = []
    for path, source in texts_of(document):
        own = [name.span.start for name in defined(source) if name.name == token.text and name.kind != "show"]
        owner = document if path == document.path else document.other(source, str(path))
        for use in tokens_of(source)[0]:
            if use.text == token.text and use.sort is Lexeme.NAME:
                before = [start for start in own if start <= use.start]
                if not before or target is None or (source.name, before[-1]) == target:
                    uses.append((owner, Span(source, use.start, use.end), use.start in own))
    return uses


def _ptx(document: Document, offset: int) -> list[_Use]:
    """A name in the function around it."""
    source = document.source
    word = _word_at(source, offset)
    if word is None:
        return []
    text = source.text
    begin = max(text.rfind(".entry", 0, offset), text.rfind(".func", 0, offset), 0)
    ends = [at for mark in (".entry", ".func") if (at := text.find(mark, offset)) >= 0]
    pattern = re.compile(rf"(?<![\w$%.]){re.escape(word)}(?![\w$])")
    matches = islice(pattern.finditer(text, begin, min(ends, default=len(text))), MOST)
    return [
        (document, source.span(*match.span()), text[match.end() : match.end() + 1] in (":", "<")) for match in matches
    ]


def _word_at(source: Source, offset: int) -> str | None:
    line = source.text.rfind("\n", 0, offset) + 1
    words = re.compile(r"[%$\w]+").finditer(source.text, line, offset + 200)
    return next((word[0] for word in words if word.start() <= offset <= word.end()), None)
