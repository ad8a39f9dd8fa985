"""The files that a run leaves: JSON and JUnit, opened before the first test and whole after each.

In: entries as they come. Out: files; a sentence about each that could not take everything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from time import gmtime, perf_counter, strftime
from types import TracebackType
from typing import TYPE_CHECKING

from memmodel.cli.exits import Exit, complain, give, worst
from memmodel.output import RecordFile

if TYPE_CHECKING:
    from memmodel.batch import Entry


class Results:
    """`with Results(json, junit) as results:` opens the files and keeps in them what was added, however it ends."""

    def __init__(self, json_out: str | None = None, junit_out: str | None = None) -> None:
        self._json = None if json_out is None else RecordFile(json_out, "[\n ", ",\n ", "\n]\n", give)
        self._kinds: list[str] = []
        self._began = strftime("%Y-%m-%dT%H:%M:%S+00:00", gmtime())
        self._started = perf_counter()
        self._junit = None
        if junit_out is not None:
            from memmodel.cli.junit import TAIL

            try:
                self._junit = RecordFile(junit_out, self._head(), "\n", TAIL, give)
            except BaseException:
                self.__exit__(None, None, None)
                raise

    def _head(self) -> str:
        from memmodel.cli.junit import head

        return head(self._kinds, perf_counter() - self._started, self._began)

    def record(self, make: Callable[[], object]) -> None:
        """One more object of the JSON file, made only if there is such a file."""
        if self._json is not None:
            self._json.add(json.dumps(make(), indent=1).replace("\n", "\n "))

    def entry(self, entry: Entry, *, explained: bool = False) -> None:
        """One more test of both files. `explained`: with the reasons."""
        if self._json is not None:
            from memmodel.library import entry_record

            self.record(lambda: entry_record(entry, explained=explained))
        if self._junit is not None:
            from memmodel.cli.junit import case

            kind, text = case(entry)
            self._kinds.append(kind)
            self._junit.add(text)

    def __enter__(self) -> Results:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for file in self._files():
            if error is not None and file.count == 0:
                file.drop()  # nothing was done: what was there before is better
            else:
                file.close(self._head() if file is self._junit else None)

    def _files(self) -> Sequence[RecordFile]:
        return [file for file in (self._json, self._junit) if file is not None]

    def exit_code(self, codes: Iterable[Exit]) -> Exit:
        """After the end: the code of the run, once it is said what its files lack."""
        failed = [file for file in self._files() if file.failed]
        for file in failed:
            complain(f"error: {file.path}: {file.failed}; it has the first {file.count} results")
        return worst([*codes, *(Exit.BAD_INPUT for _ in failed)])
