"""Names in a cat text: what they mean, where they are defined, and the outline of the text.

In: Document and an offset. Out: hovers, locations and symbols as the protocol has them.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from memmodel.cat.names import BASE_NAMES
from memmodel.cat.text import tree
from memmodel.cat.text.lexer import CatToken, Lexeme
from memmodel.cat.text.outline import Defined, defined, token_at
from memmodel.errors import InputError
from memmodel.lsp.cat_files import found_file, model_of, texts_of
from memmodel.lsp.document import BEGIN, Document, Json, uri_of
from memmodel.source import Span

MOST_LINES = 14
"""Lines of a definition that a hover shows."""

SYMBOL_KINDS = {"let": 12, "procedure": 12, "enum": 10, "check": 24, "flag": 24, "show": 13}
"""Kinds of symbols, as the protocol numbers them."""

WORDS = {
    "acyclic": "`acyclic r as name`: an axiom; executions in which `r` has a cycle are forbidden.",
    "irreflexive": "`irreflexive r as name`: an axiom; those in which `r` relates an event to itself are forbidden.",
    "empty": "`empty r as name`: an axiom; executions in which `r` relates anything are forbidden.",
    "flag": "`flag ~empty r as name`: a finding, which forbids nothing; reports quote the comment above it.",
    "include": '`include "file.cat"`: that file is read here; beside this file, then among the shipped models.',
    "let": "`let name = expression`, `let rec … and …`, `let f(x) = …`.",
    "show": "`show r`: pictures draw `r`.",
    "rec": "`let rec a = … and b = …`: the least solution.",
}
"""Words of the language."""


def hover(document: Document, offset: int) -> Json | None:
    """What the name at an offset means."""
    token = token_at(document.source, offset)
    if token is None:
        return None
    return document.card(_meaning(document, token), token.start, token.end)


def _meaning(document: Document, token: CatToken) -> str | None:
    if token.sort is Lexeme.WORD:
        return WORDS.get(token.text)
    if token.sort is Lexeme.STRING:
        file = _included(document, token)
        return None if file is None else f"`{file}`"
    parts = []
    known = definition_of(document, token)
    if known is not None:
        path, name = known
        lines = name.statement.text.split("\n")
        more = ["…"] if len(lines) > MOST_LINES else []
        parts.append("```cat\n" + "\n".join([*lines[:MOST_LINES], *more]).replace("```", "'''") + "\n```")
        if name.doc:
            parts.append(name.doc)
        where = f"{name.span.source.name}:{name.span.line}" if path != document.path else f"line {name.span.line}"
        parts.append(f"defined at {where}")
    base = next((row for row in BASE_NAMES if row.name == token.text), None)
    if base is not None:
        parts.append(f"Base {base.kind.value} `{base.name}`: {base.meaning} [{base.source}]")
    return "\n\n".join(parts) or _computed(document, token)


def _computed(document: Document, token: CatToken) -> str | None:
    """A name of the world of another architecture, which no file of the model spells."""
    try:
        model = model_of(document)
    except InputError:
        return None
    computed = next((candidate for candidate in model.definitions if candidate.name == token.text), None)
    return None if computed is None else f"`{computed.name}`: a {computed.kind.value}. {computed.doc}".strip()


def definition(document: Document, offset: int) -> list[Json]:
    """Where the name at an offset is defined, or the file that an include names."""
    token = token_at(document.source, offset)
    if token is None or token.sort is Lexeme.WORD:
        return []
    if token.sort is Lexeme.STRING:
        path = _included(document, token)
        return [] if path is None else [{"uri": uri_of(path), "range": BEGIN}]
    known = definition_of(document, token)
    if known is None:
        return []
    path, name = known
    target = document if path == document.path else document.other(name.span.source, str(path))
    return [{"uri": target.uri, "range": target.at(name.span)}]


def _included(document: Document, token: CatToken) -> Path | None:
    before = document.source.text[: token.start].rstrip()
    if not before.endswith("include"):
        return None
    return found_file(document, tree.Include(token.text, Span(document.source, token.start, token.end)))


def definition_of(document: Document, token: CatToken) -> tuple[Path | None, Defined] | None:
    """The definition that a name refers to: the last one before it, else one in the texts around, else one after it."""
    own = [name for name in defined(document.source) if name.name == token.text and name.kind != "show"]
    before = [name for name in own if name.span.start <= token.start]
    if before:
        return document.path, before[-1]
    for path, source in texts_of(document)[1:]:
        others = [name for name in _known(source) if name.name == token.text and name.kind != "show"]
        if others:
            return path, others[-1]
    return (document.path, own[0]) if own else None


_known = lru_cache(200)(defined)
"""What a text defines; kept, since the texts around a document stay as they are."""


def symbols(document: Document) -> list[Json]:
    """The names that the text defines, and its checks."""
    return [
        {
            "name": name.name,
            "detail": " ".join(name.doc.split())[:80],
            "kind": SYMBOL_KINDS.get(name.kind, 13),
            "range": document.at(name.statement),
            "selectionRange": document.at(name.span),
        }
        for name in defined(document.source)
    ]
