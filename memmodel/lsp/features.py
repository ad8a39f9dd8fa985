"""What a process of the server is asked, by name, and the functions that answer.

In: a name and JSON values. Out: JSON values. Settled here: a question about a document of no known kind has no answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memmodel.errors import InputError
from memmodel.lsp.document import Document


def _diagnostics(document: Document) -> object:
    from memmodel.lsp.diagnostics import of_text

    return of_text(document)


def _check(document: Document, **options: Any) -> object:
    from memmodel.lsp.diagnostics import of_check

    return of_check(document, **options) if document.kind == "litmus" else []


def _hover(document: Document, line: int, character: int) -> object:
    offset = document.offset(line, character)
    if document.kind == "cat":
        from memmodel.lsp import cat_names

        return cat_names.hover(document, offset)
    from memmodel.lsp import litmus_names

    return litmus_names.hover(document, offset)


def _definition(document: Document, line: int, character: int) -> object:
    offset = document.offset(line, character)
    if document.kind == "cat":
        from memmodel.lsp import cat_names

        return cat_names.definition(document, offset)
    from memmodel.lsp import litmus_names

    return litmus_names.definition(document, offset) if document.kind == "litmus" else []


def _symbols(document: Document) -> object:
    if document.kind == "cat":
        from memmodel.lsp import cat_names

        return cat_names.symbols(document)
    from memmodel.lsp import litmus_names

    return litmus_names.symbols(document) if document.kind == "litmus" else []


def _format(document: Document) -> object:
    from memmodel.lsp.changes import formatted

    return formatted(document) if document.kind == "litmus" else {"edits": [], "reason": ""}


def _repair(document: Document, **options: Any) -> object:
    from memmodel.lsp.changes import repaired

    return repaired(document, **options)


FEATURES: dict[str, Callable[..., object]] = {
    "diagnostics": _diagnostics,
    "check": _check,
    "hover": _hover,
    "definition": _definition,
    "symbols": _symbols,
    "format": _format,
    "repair": _repair,
}


def answer(name: str, document: dict[str, Any], arguments: dict[str, Any]) -> object:
    """The answer to one question; None where the text is no text."""
    try:
        return FEATURES[name](Document(**document), **arguments)
    except InputError:
        return None
