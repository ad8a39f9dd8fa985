"""A file that keeps what a long run has finished, so that an interrupted run goes on where it stopped.

In: a path, what the run is. Out: the entries that an earlier run has kept. Settled here: one line of JSON for each
entry, the first one says which run it is; a line that was cut short counts as not written.
"""

from __future__ import annotations

import json
import os
from typing import Any

from memmodel.errors import InputError
from memmodel.output import regular


class Journal:
    """`what`: the kind of run, for people. `key`: all that its results depend on, under `name` in the first line.
    `repeat`: what has to be the same to go on. Without a path nothing is kept. Raises InputError for another file.
    """

    def __init__(self, path: str | None, key: str, *, name: str, what: str, repeat: str) -> None:
        self._path = path
        self.entries: list[dict[str, Any]] = []
        if path is None:
            return
        if not regular(path):
            raise InputError(f"{path}: not a plain file")
        lines = _lines(path)
        if lines and not (isinstance(lines[0], dict) and name in lines[0]):
            raise InputError(f"{path}: no record of a {what}", hint="name a new file")
        if lines and lines[0][name] != key:
            raise InputError(f"{path}: this file is of another {what}", hint=f"name another file, or repeat {repeat}")
        self.entries = [line for line in lines[1:] if isinstance(line, dict)]
        # After a line that was cut short the next one must not be lost with it.
        self._write("" if lines else json.dumps({name: key}))

    def add(self, entry: dict[str, Any]) -> None:
        """Keep an entry."""
        if self._path is not None:
            self._write(json.dumps(entry))

    def _write(self, line: str) -> None:
        assert self._path is not None
        with open(self._path, "a", encoding="utf-8") as handle:
            handle.write(line + "\n")


def _lines(path: str) -> list[Any]:
    """What the lines of a file say. A first line that is no JSON says nothing that a journal could have."""
    if not os.path.exists(path):
        return []
    entries: list[Any] = []
    with open(path, encoding="utf-8", errors="replace") as handle:
        for line in handle:
            try:
                entries.append(json.loads(line))
            except (ValueError, RecursionError):
                entries = entries or [None]
    return entries
