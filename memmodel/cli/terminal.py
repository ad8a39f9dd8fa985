"""Colour where a person reads, a progress bar while they wait, plain text everywhere else.

In: streams. Out: a `Style` for `report.text`, and a progress context. NO_COLOR and TERM=dumb are respected.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from memmodel.report.text import Style, plain

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
    return f"\x1b[{_CODES[role]}m{text}\x1b[0m"


@contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """A bar on stderr when it is a terminal; the yielded function says that one more test is done."""
    if not sys.stderr.isatty() or total < 2:
        yield lambda name: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    # No refresh thread: worker processes are forked while the bar is up.
    with Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True) as bar:
        task = bar.add_task("", total=total)

        def done(name: str) -> None:
            bar.update(task, advance=1, description=name[-40:], refresh=True)

        yield done
