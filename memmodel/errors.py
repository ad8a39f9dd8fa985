"""Two kinds of failure that never share a handler: yours (InputError) and ours (InternalError)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memmodel.source import Span

MAX_SHOWN = 160
"""A source line longer than this is cut around the caret, so that a 2 MB line does not fill a terminal."""
MAX_MESSAGE = 1_000
"""A message longer than this, which quotes a word of the input, is cut in the middle."""


class InputError(Exception):
    """Something the user wrote cannot be used. Carries the place, the rule that it breaks, and a repair.

    `span` may be None when there is no place to show (a missing file). Command line: exit code 2. `more`: the other
    errors of the same text; `cut`: there may be more errors, because the search for them stopped.
    """

    def __init__(
        self, message: str, span: Span | None = None, hint: str | None = None, *, show_line: bool = True
    ) -> None:
        if len(message) > MAX_MESSAGE:
            message = f"{message[:MAX_SHOWN]} … {message[-MAX_SHOWN:]}"
        super().__init__(message)
        self.message = message
        self.span = span
        self.hint = hint
        self.show_line = show_line
        self.more: tuple[InputError, ...] = ()
        self.cut = False

    def __str__(self) -> str:
        return self.render()

    def render(self) -> str:
        """`file:line:column: error: message`, the source line with a caret, and the hint; then the other errors."""
        rendered = [
            render("error", error.message, error.span, error.hint, show_line=error.show_line)
            for error in (self, *self.more)
        ]
        return "\n".join([*rendered, *([f"only the first {len(rendered)} errors are shown"] if self.cut else [])])

    def at(self, span: Span) -> InputError:
        """The same error at another place."""
        moved = copy(self)
        moved.span = span
        return moved

    def followed_by(self, more: Sequence[InputError], *, cut: bool = False) -> InputError:
        """This error, with the others of the same text."""
        joined = copy(self)
        joined.more, joined.cut = tuple(more), cut
        return joined


class TooLarge(InputError):
    """The test is legal but beyond a stated limit (events, values, formula size). Command line: exit code 3."""


class BudgetSpent(Exception):
    """Effort, time or memory is used up. Engines turn it into an answer; it never reaches a caller."""


class InternalError(Exception):
    """memmodel contradicted itself: a bug of ours, never the user's."""


def exhausted(error: MemoryError | RecursionError) -> str:
    """What ran out, in words."""
    return "memory ran out" if isinstance(error, MemoryError) else "it is nested more deeply than can be followed"


def render(word: str, message: str, span: Span | None, hint: str | None, *, show_line: bool = True) -> str:
    """One diagnostic as text: place, word (`error` or `warning`), message, source line, caret, hint."""
    if span is None:
        lines = [f"{word}: {message}"]
    else:
        lines = [f"{span}: {word}: {message}"]
        if show_line:
            lines += _excerpt(span)
    if hint:
        lines.append(f"  hint: {hint}")
    return "\n".join(lines)


def _excerpt(span: Span) -> list[str]:
    text, column = span.line_text, span.column - 1
    first = max(0, column - MAX_SHOWN // 2) if len(text) > MAX_SHOWN else 0
    shown = text[first : first + MAX_SHOWN].expandtabs(1)
    width = max(1, min(span.end - span.start, len(shown) - (column - first)))
    number = str(span.line)
    return [f"  {number} | {shown}", f"  {' ' * len(number)} | {' ' * (column - first)}{'^' * width}"]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name most like `word`, or None when nothing is close."""
    import difflib

    names = list(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return close[0]
    folded = {name.lower(): name for name in names}
    return folded.get(word.lower())


def suggestion(word: str, known: Iterable[str], form: str = "{}") -> str:
    """A hint that names the known name most like `word`, written as in `form`; empty when nothing is close."""
    near = nearest(word, known)
    return f"did you mean {form.format(near)}?" if near else ""
