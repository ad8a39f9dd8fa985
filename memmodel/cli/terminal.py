"""Colour where a person reads, a progress bar while they wait, plain text everywhere else.

In: streams. Out: a `Style` for reports, and a `Ticker`. NO_COLOR and TERM=dumb are respected.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from memmodel.cli.exits import STYLED
from memmodel.report.execution import Style, plain

if TYPE_CHECKING:
    from rich.progress import Progress

_CODES = {
    "title": "1",
    "name": "36",
    "good": "32",
    "bad": "1;31",
    "warning": "33",
    "undecided": "35",
}


def style_for(stream: TextIO) -> Style:
    """The style that suits a stream."""
    coloured = stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return _ansi if coloured else plain


def _ansi(text: str, role: str) -> str:
    return f"{STYLED}{_CODES[role]}m{text}{STYLED}0m"


def progress_bar() -> Progress | None:
    """A bar on stderr with the time left, not shown yet; None where stderr is no terminal."""
    if not sys.stderr.isatty():
        return None
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # No refresh thread: worker processes are forked while the bar is up.
    return Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True, redirect_stdout=False)


class Ticker:
    """Shows the progress of a suite on a terminal; does nothing elsewhere."""

    def __init__(self, bar: Progress | None, total: int) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=total) if bar else None

    def done(self, name: str) -> None:
        """Advance the bar: one more test is done."""
        if self._bar is not None and self._task is not None:
            self._bar.start()
            self._bar.update(self._task, advance=1, description=name[-40:], refresh=True)

    def hide(self) -> None:
        """Take the bar away, so that a line can be printed in its place; the next `done` brings it back."""
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def ticker(total: int) -> Iterator[Ticker]:
    """A bar on stderr when it is a terminal."""
    tick = Ticker(progress_bar() if total > 1 else None, total)
    try:
        yield tick
    finally:
        tick.hide()
