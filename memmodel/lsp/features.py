"""What a process of the server is asked, by name, and the functions that answer.

In: a name and JSON values. Out: JSON values. Settled here: which kinds of documents a question is about.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from memmodel.errors import InputError
from memmodel.lsp import cat_names, litmus_names
from memmodel.lsp.changes import formatted, repaired
from memmodel.lsp.completion import completion
from memmodel.lsp.diagnostics import of_check, of_text
from memmodel.lsp.document import Document
from memmodel.lsp.references import highlights, references


def _names(document: Document) -> ModuleType:
    return cat_names if document.kind == "cat" else litmus_names


def _check(document: Document, **options: Any) -> object:
    return of_check(document, **options) if document.kind == "litmus" else []


def _hover(document: Document, line: int, character: int) -> object:
    return _names(document).hover(document, document.offset(line, character))


def _definition(document: Document, line: int, character: int) -> object:
    return [] if document.kind == "ptx" else _names(document).definition(document, document.offset(line, character))


def _symbols(document: Document) -> object:
    return [] if document.kind == "ptx" else _names(document).symbols(document)


def _references(document: Document, line: int, character: int, declaration: bool = True) -> object:
    return references(document, document.offset(line, character), declaration)


def _highlights(document: Document, line: int, character: int) -> object:
    return highlights(document, document.offset(line, character))


def _completion(document: Document, line: int, character: int) -> object:
    return completion(document, document.offset(line, character))


def _format(document: Document) -> object:
    return formatted(document) if document.kind == "litmus" else {"edits": [], "reason": ""}


FEATURES: dict[str, Callable[..., object]] = {
    "diagnostics": of_text,
    "check": _check,
    "hover": _hover,
    "definition": _definition,
    "references": _references,
    "highlights": _highlights,
    "completion": _completion,
    "symbols": _symbols,
    "format": _format,
    "repair": repaired,
}


def answer(name: str, document: dict[str, Any], arguments: dict[str, Any]) -> object:
    """The answer to one question; None where the text is no text."""
    try:
        return FEATURES[name](Document(**document), **arguments)
    except InputError:
        return None
