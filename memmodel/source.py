"""Text that came from a person, and places in it.

In: a path, or text with a name. Out: `Source` and `Span`, which every later stage keeps so that an error can point.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate

from memmodel.errors import InputError

STANDARD_INPUT = "-"
MAX_BYTES = 1_000_000
"""A litmus test or a model is a page of text; anything near a megabyte is a mistake."""

_READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
"""How a file is opened that may be none: nothing waits for what never comes, as in a pipe or in /proc/kmsg."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0d-\x1f]")


TAKE_DIRECTORIES = "`memmodel check` and `memmodel suite` take directories"
"""The hint to a user who gives a directory where one litmus test is read."""


def read_bytes(path: str | os.PathLike[str], most: int, directory: str | None = None) -> bytes:
    """What a file has, up to one byte more than `most`. `directory`: the hint to a user who gives one.

    Raises InputError if it is missing, a directory, or a pipe or device, from which nothing may ever come.
    """
    name = os.fspath(path)
    try:
        number = os.open(path, _READING)
    except (OSError, ValueError) as error:
        if os.path.isdir(name):  # which Windows does not open
            raise InputError(f"{name}: is a directory, not a file", hint=directory) from error
        raise InputError(f"{name}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    try:
        kind = os.fstat(number).st_mode
        if stat.S_ISDIR(kind):
            raise InputError(f"{name}: is a directory, not a file", hint=directory)
        if not stat.S_ISREG(kind):
            raise InputError(f"{name}: is a pipe or a device, not a file")
        parts, left = [], most + 1
        while left and (part := os.read(number, min(left, 1 << 20))):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or error}") from error
    finally:
        os.close(number)


def no_span() -> Span:
    """The default of a `span` field: nothing that was made in memory has a place in a file."""
    return field(default=None, compare=False, repr=False)  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Source:
    """A named piece of text. `name` is a path as the user wrote it, or a label such as `<text>`."""

    name: str
    text: str = field(repr=False)

    @property
    def in_file(self) -> bool:
        """True if it lies in a file that a user can open; False for what was compiled, or came through a pipe."""
        return not self.name.startswith("<")

    @staticmethod
    def read(path: str | os.PathLike[str], directory: str | None = None) -> Source:
        """Read a file, or standard input where the path is `-`. `directory`: the hint to a user who gives one.

        Raises InputError if it is missing, not text or larger than MAX_BYTES.
        """
        name = os.fspath(path)
        if name == STANDARD_INPUT:
            return Source.decode("<stdin>", sys.stdin.buffer.read(MAX_BYTES + 1))
        return Source.decode(name, read_bytes(path, MAX_BYTES, directory))

    @staticmethod
    def decode(name: str, data: bytes) -> Source:
        """Bytes to Source. Raises InputError on more than MAX_BYTES, on NUL bytes or bytes that are not UTF-8."""
        if len(data) > MAX_BYTES:
            raise at_byte(f"larger than {MAX_BYTES:,} bytes", name, data, MAX_BYTES)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            message = f"not a text file (byte {error.start} is not UTF-8)"
            raise at_byte(message, name, data, error.start) from error
        source = Source(name, text.replace("\r\n", "\n").replace("\r", "\n"))
        bad = _CONTROL.search(source.text)
        if bad is not None:
            raise InputError("not a text file: control character", Span(source, *bad.span()), show_line=False)
        return source

    def span(self, start: int, end: int) -> Span:
        """The characters start..end of this text (offsets into `text`)."""
        return Span(self, start, end)


def at_byte(message: str, name: str, data: bytes, number: int) -> InputError:
    """An error that points at one byte of a file that is not read as text."""
    before = data[:number].decode("utf-8-sig", "replace").replace("\r\n", "\n")
    return InputError(message, Span(Source(name, before), len(before), len(before)), show_line=False)


def line_end(text: str) -> str:
    """What ends most lines of a text."""
    return "\r\n" if 2 * text.count("\r\n") > text.count("\n") else "\n"


def in_lines(lines: Iterable[object]) -> str:
    """`line 3`, or `lines 3 and 5`."""
    shown = [str(line) for line in lines]
    return f"line{'s' if len(shown) > 1 else ''} {' and '.join(shown)}"


def with_line_ends_of(new: str, old: str) -> str:
    """A changed text with the line ends of `old`: a line that stays keeps its own, the others have what most have."""
    from difflib import SequenceMatcher

    before = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", old.removeprefix("\ufeff"))
    plain = [re.sub(r"\r\n?$", "\n", line) for line in before]
    lines = re.findall(r"[^\n]*\n|[^\n]+", new)
    most = line_end(old)
    written = [line.replace("\n", most) for line in lines]
    for a, b, size in SequenceMatcher(None, plain, lines, autojunk=False).get_matching_blocks():
        written[b : b + size] = before[a : a + size]
    return ("\ufeff" if old.startswith("\ufeff") else "") + "".join(written)


_STRETCH = 1 << 12
"""Characters. Lines of large modules are asked for often, and a hostile text has nothing but lines."""


@lru_cache(maxsize=16)
def _lines_before(text: str) -> list[int]:
    """How many lines end before each stretch of a text."""
    ended = (text.count("\n", start, start + _STRETCH) for start in range(0, len(text), _STRETCH))
    return list(accumulate(ended, initial=0))


@dataclass(frozen=True, slots=True)
class Span:
    """Characters start..end (offsets) of a source. Shows itself as `file:line:column`, both counted from 1."""

    source: Source
    start: int
    end: int

    @property
    def line(self) -> int:
        text, stretch = self.source.text, self.start // _STRETCH
        return _lines_before(text)[stretch] + text.count("\n", stretch * _STRETCH, self.start) + 1

    @property
    def column(self) -> int:
        return self.start - (self.source.text.rfind("\n", 0, self.start) + 1) + 1

    @property
    def line_text(self) -> str:
        first = self.source.text.rfind("\n", 0, self.start) + 1
        last = self.source.text.find("\n", self.start)
        return self.source.text[first : last if last >= 0 else len(self.source.text)]

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of the other."""
        return Span(self.source, self.start, other.end)

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"
