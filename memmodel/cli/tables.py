"""Tables: ruled and wrapped where a person reads, aligned lines everywhere else.

In: rows of text. Out: lines on standard output.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from memmodel.cli.exits import say
from memmodel.output import escaped


@dataclass(frozen=True, slots=True)
class TextTable:
    """A title (may be empty), headings, and rows of as many cells. `roles`: the style of each row's first cell."""

    title: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    roles: Sequence[str] = ()


_STYLES = {"name": "cyan", "good": "green", "bad": "bold red", "undecided": "magenta"}


def is_ruled(stream: TextIO) -> bool:
    """True if a person reads this stream, so that tables are ruled there."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def show(tables: Sequence[TextTable], stream: TextIO | None = None) -> None:
    """Print the tables on a stream (None: stdout), one after the other."""
    stream = stream or sys.stdout
    if is_ruled(stream):
        _ruled(tables, stream)
        return
    for number, table in enumerate(tables):
        if table.title:
            say(("\n" if number else "") + table.title, stream)
        for line in lines(table):
            say(line, stream)


def lines(table: TextTable) -> list[str]:
    """The rows with their columns aligned; the last column is as long as it is."""
    widths = [max((len(row[column]) for row in table.rows), default=0) for column in range(len(table.headings) - 1)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in table.rows
    ]


def _ruled(tables: Sequence[TextTable], stream: TextIO) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=stream, highlight=False)
    for table in tables:
        ruled = Table(title=table.title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        last = len(table.headings) - 1
        for number, heading in enumerate(table.headings):
            style = "cyan" if number == 0 and not table.roles else None
            whole = number < last and heading != "test"  # a path may be longer than the terminal is wide
            ruled.add_column(heading, no_wrap=whole, overflow="fold", style=style)
        roles = table.roles or [""] * len(table.rows)
        for row, role in zip(table.rows, roles, strict=True):
            first, *rest = (Text(_printable(cell)) for cell in row)
            first.stylize(_STYLES.get(role, ""))
            ruled.add_row(first, *rest)
        console.print(ruled)


def _printable(text: str) -> str:
    """Characters that a terminal can take: a file's name may have bytes that no encoding has, and commands."""
    return escaped(text.encode("utf-8", "replace").decode("utf-8"))
