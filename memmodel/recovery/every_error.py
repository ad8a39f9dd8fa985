"""All errors of a text at once.

In: the first error of a text, its reader, and which passage of the text an error is in. Out: the errors, in their
order. Settled here: after an error, the text is read again with blanks in place of that passage; an error about a name
that a blanked passage gives is not shown, since it goes with the repair of the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from memmodel.errors import InputError, TooLarge
from memmodel.source import Source, Span

MOST_ERRORS = 10
"""At most this many errors of one text are shown."""

MOST_READINGS = 30
MOST_CHARACTERS = 500_000
"""Characters that are read again in all, so that a long text is not read thirty times, and a very long one once."""

_DECLARED = re.compile(r"[\w$.]+<?")
"""A name in a declaration; `%r<4>` declares a family of them."""

_WORD = re.compile(r"[\w$.-]+")


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a text that can be left out. `names`: what it gives a name to. `instead`: what stands in its place."""

    span: Span
    names: frozenset[str] = frozenset()
    instead: str = ""


PassageOf = Callable[[Source, Span], Passage | None]
"""The passage of a text that an error at a span is in; None if nothing can be left out."""


def without(source: Source, passage: Passage) -> Source:
    """The text with blanks in place of a passage. Everything else keeps its place."""
    start, end = passage.span.start, passage.span.end
    blank = re.sub(r"[^\n]", " ", source.text[start:end])
    return Source(
        source.name, source.text[:start] + passage.instead + blank[len(passage.instead) :] + source.text[end:]
    )


class ErrorsSoFar:
    """The errors of a text whose reader continues after a statement that has one."""

    def __init__(self) -> None:
        self.errors: list[InputError] = []
        self.names: set[str] = set()

    def note(self, error: InputError, left_out: str = "") -> None:
        """Keep an error. `left_out`: the text of a declaration that is not read because of it.

        Raises InputError, with all that was kept, where it is the last that is shown.
        """
        span = error.span
        if span is None or isinstance(error, TooLarge):
            raise error
        words = _words(span.text)
        if not self.names & (words | {f"{word.rstrip('0123456789')}<" for word in words}):
            self.errors.append(error)
        self.names |= {word for word in _DECLARED.findall(left_out) if word[:1] not in ".0123456789"}
        if len(self.errors) == MOST_ERRORS:
            raise _joined(self.errors, cut=True)

    def end(self) -> None:
        """The text ends here. Raises InputError if it has errors."""
        if self.errors:
            raise _joined(self.errors)


def every_error(
    first: InputError, source: Source, read: Callable[[Source], object], passage_of: PassageOf
) -> InputError:
    """The errors of a text, as one that has the others as `more`.

    `first`: what `read` raised for `source`. An error elsewhere, such as in an included file, ends the search.
    """
    errors: list[InputError] = []
    names: set[str] = set()
    text, error = source, first
    readings = min(MOST_READINGS, MOST_CHARACTERS // (1 + len(source.text)))
    for number in range(readings + 1):
        span = error.span
        if span is None or not names & _words(span.text):
            if len(errors) == MOST_ERRORS:
                return _joined(errors, cut=True)
            errors.append(error.at(source.span(span.start, span.end)) if span is not None else error)
        if number == readings or isinstance(error, TooLarge) or span is None or span.source.text != text.text:
            break
        passage = passage_of(text, span)
        if passage is None or not passage.span.text.strip():
            break
        names |= passage.names
        text = without(text, passage)
        try:
            read(text)
            break
        except InputError as other:
            error = other
        if error.span is None or error.span.end == 0:  # about the text as a whole: nothing is left in it
            break
    return _joined(errors)


def _words(text: str) -> set[str]:
    return {text, *_WORD.findall(text)}


def _joined(errors: list[InputError], *, cut: bool = False) -> InputError:
    errors.sort(key=lambda error: error.span.start if error.span is not None else -1)
    return errors[0].followed_by(errors[1:], cut=cut)
