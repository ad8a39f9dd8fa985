"""Tables: ruled and wrapped where a person reads, aligned lines everywhere else.

In: rows of text. Out: lines on standard output.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from memmodel.base.classes import dataclass
from memmodel.cli.exits import say


@dataclass(frozen=True, slots=True)
class TextTable:
    """A title (may be empty), headings, and rows of as many cells."""

    title: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def show(tables: Sequence[TextTable]) -> None:
    """Print the tables, one after the other."""
    if sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        _ruled(tables)
        return
    for number, table in enumerate(tables):
        if table.title:
            say(("\n" if number else "") + table.title)
        for line in lines(table):
            say(line)


def lines(table: TextTable) -> list[str]:
    """The rows with their columns aligned; the last column is as long as it is."""
    widths = [max((len(row[column]) for row in table.rows), default=0) for column in range(len(table.headings) - 1)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in table.rows
    ]


def _ruled(tables: Sequence[TextTable]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    for table in tables:
        ruled = Table(title=table.title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for number, heading in enumerate(table.headings):
            ruled.add_column(heading, no_wrap=number < len(table.headings) - 1, style="cyan" if number == 0 else None)
        for row in table.rows:
            ruled.add_row(*(cell.replace("[", r"\[") for cell in row))
        console.print(ruled)
