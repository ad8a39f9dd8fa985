"""Files that the program writes, and text as a terminal may show it.

In: a path and text, or records one by one. Out: a file that is whole or as it was before, or, where records come one by
one, a file that ends properly after each of them. Settled here: what is written goes to a file beside the target, which
takes its place at the end; pipes and devices are refused, since a reader may never come.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from memmodel.errors import InputError

STANDARD_OUTPUT = "-"

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""Controls of both sets, and what turns the direction of writing round or breaks a line; tab and line feed are fine."""


def escaped(text: str) -> str:
    """Text without characters that command a terminal: each as `\\x1b` or `\\u202e`."""
    return _UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def regular(path: str) -> bool:
    """True if this is a regular file or does not exist yet. Raises OSError."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return True


def write_text(path: str, text: str) -> None:
    """Write a whole file: if that fails, what was there before is still there. Raises InputError, OSError."""
    with Replacement(path) as file:
        file.put(text, 0)
        file.keep()


def replace_text(path: str, text: str) -> None:
    """Write what a file holds now, with the line ends that it had. Raises InputError, OSError."""
    from memmodel.source import MAX_BYTES, STANDARD_INPUT, read_bytes, with_line_ends_of

    if path == STANDARD_INPUT:
        raise InputError("standard input cannot be changed in place")
    write_text(path, with_line_ends_of(text, read_bytes(path, MAX_BYTES).decode("utf-8")))


class Replacement:
    """A file beside the target that takes its place once `keep` was called; else it is thrown away."""

    def __init__(self, path: str) -> None:
        import tempfile

        self.path = path
        target = os.path.realpath(path)  # a link stays a link
        _check_target(path)
        folder, name = os.path.split(target)
        try:
            number, self._beside = tempfile.mkstemp(prefix=f".{name[:80]}.", suffix=".part", dir=folder)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
        self._target = target
        _same_mode(number, target)
        self._number = number
        self._open = True

    def put(self, text: str, at: int) -> int:
        """Write text at a place in bytes; where it ends. Raises OSError, having written some of it perhaps."""
        data = memoryview(text.encode("utf-8", "replace"))
        try:
            os.lseek(self._number, at, os.SEEK_SET)
            while data:
                done = os.write(self._number, data)
                data, at = data[done:], at + done
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.path) from error
        return at

    def cut(self, at: int) -> None:
        """End the file there. Raises OSError."""
        os.ftruncate(self._number, at)

    def keep(self) -> None:
        """Put the file in the target's place. Raises OSError, with the target as it was."""
        try:
            os.replace(self._beside, self._target)
            self._beside = ""
            self.close()
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.path) from error

    def close(self) -> None:
        """Forget the file, if it was not kept."""
        if self._open:
            self._open = False
            os.close(self._number)
        if self._beside:
            with suppress(OSError):
                os.unlink(self._beside)

    def __enter__(self) -> Replacement:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _check_target(path: str) -> None:
    """Raises InputError for what is no plain file."""
    try:
        if os.path.isdir(path):
            raise InputError(f"{path}: is a directory, not a file")
        if not regular(path):
            hint = "name a file, or - for standard output"
            raise InputError(f"{path}: is a pipe or a device, not a file", hint=hint)
        if os.path.exists(path) and not os.access(path, os.W_OK):
            raise InputError(f"{path}: cannot be written: Permission denied")
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}") from error


def _same_mode(number: int, target: str) -> None:
    """Give the new file the mode of the old one, or the mode of any new file."""
    try:
        mode = stat.S_IMODE(os.stat(target).st_mode)
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    with suppress(OSError, AttributeError):
        os.fchmod(number, mode)


class RecordFile:
    """A file of many records between a head and a tail, proper after each of them.

    `tail`: what makes the file proper; after each record it is written, and the next record overwrites it. `head`: may
    be written again at the end, as long as before. A failing write ends the file after the last record that is whole:
    `failed` says why, and what comes after is dropped.
    """

    def __init__(self, path: str, head: str, between: str, tail: str, say: Callable[[str], None]) -> None:
        self.path, self.failed = path, ""
        self._head, self._between, self._tail, self._say = head, between, tail, say
        self.count = 0
        self._file = None if path == STANDARD_OUTPUT else Replacement(path)
        self._end = 0
        self._write(head)

    def add(self, record: str) -> None:
        """One more record."""
        if not self.failed:
            self._write((self._between if self.count else "") + record)
        if not self.failed:
            self.count += 1

    def close(self, head: str | None = None) -> None:
        """Put the file in its place, with all records that were added. `head`: in place of the first one."""
        if self._file is None:
            self._say(self._tail)
            return
        with self._file as file:
            try:
                if head is not None and len(head) == len(self._head):
                    file.put(head, 0)
                file.keep()
            except OSError as error:
                self.failed = self.failed or error.strerror or str(error)

    def drop(self) -> None:
        """Leave what was there before."""
        if self._file is not None:
            self._file.close()

    def _write(self, text: str) -> None:
        if self._file is None:
            self._say(text)
            return
        try:
            end = self._file.put(text, self._end)
            self._file.put(self._tail, end)
            self._end = end
        except OSError as error:
            self.failed = error.strerror or str(error)
            self._cut()

    def _cut(self) -> None:
        """Back to the last whole record: that needs no more room than there was."""
        assert self._file is not None
        with suppress(OSError):
            end = self._file.put(self._tail, self._end)
            self._file.cut(end)


def few(number: int, what: str) -> str:
    """A number of things, in words: `2 threads`, `1 thread`."""
    return f"{number} {what}{'s' if number > 1 else ''}"
