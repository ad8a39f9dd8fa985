"""A document of an editor, and its places as the protocol counts them.

In: the text that an editor has open. Out: `Document`, and positions and ranges as JSON values. Settled here: lines end
where the protocol says (`\\n`, `\\r\\n`, `\\r`), columns count the units that were agreed on, and a place outside the
text is the nearest one inside.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit

from memmodel.errors import InputError
from memmodel.source import MAX_BYTES, Source, Span

Json = dict[str, object]

MOST_OF_KERNEL = 8_000_000
"""Characters of a PTX file; each question about it sends all of them."""

BEGIN: Json = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
"""The range of the beginning of a document."""

KINDS = {".litmus": "litmus", ".cat": "cat", ".ptx": "ptx"}

_ENCODINGS = {"utf-16": ("utf-16-le", 2), "utf-8": ("utf-8", 1)}


@dataclass(frozen=True)
class Document:
    """`uri` as the editor writes it. `kind`: litmus, cat or ptx. `units`: what columns count. `open`: the other
    documents that are open, by path, since a model may include one that is not saved."""

    uri: str
    text: str
    kind: str
    units: str = "utf-16"
    open: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def kind_of(uri: str, language: str = "") -> str:
        """The kind by the ending of the name, else by what the editor calls its language; empty for any other."""
        known = KINDS.get(Path(urlsplit(uri).path).suffix)
        return known or (language if language in KINDS.values() else "")

    @cached_property
    def path(self) -> Path | None:
        """The file; None where it is in no folder, such as `untitled:`."""
        return path_of(self.uri)

    @cached_property
    def name(self) -> str:
        """The name of the document in error messages."""
        return str(self.path) if self.path is not None else self.uri

    @cached_property
    def source(self) -> Source:
        """The text as other rooms take it. Raises InputError for what is no text, or too large."""
        if self.kind == "ptx":  # a compiled kernel, which may be longer than a test
            if len(self.text) > MOST_OF_KERNEL:
                raise InputError(f"{self.name}: larger than {MOST_OF_KERNEL:,} characters")
            return Source(self.name, "\n".join(self.lines))
        return Source.decode(self.name, self.text[: MAX_BYTES + 1].encode("utf-8", "surrogatepass"))

    @cached_property
    def lines(self) -> list[str]:
        """The lines, without what ends them."""
        return self.text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff").split("\n")

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for line in self.lines:
            starts.append(starts[-1] + len(line) + 1)
        return starts

    def offset(self, line: int, character: int) -> int:
        """The offset into `source.text` of a position."""
        if line < 0:
            return 0
        if line >= len(self.lines):
            return len("\n".join(self.lines))
        text = self.lines[line]
        encoding = _ENCODINGS.get(self.units)
        if encoding is None:
            return self._starts[line] + max(0, min(character, len(text)))
        units = 0
        for number, char in enumerate(text):
            if units >= character:
                return self._starts[line] + number
            units += len(char.encode(encoding[0], "surrogatepass")) // encoding[1]
        return self._starts[line] + len(text)

    def position(self, offset: int) -> Json:
        """The position of an offset into `source.text`."""
        offset = max(0, min(offset, self._starts[-1] - 1))
        line = bisect_right(self._starts, offset) - 1
        before = self.lines[line][: offset - self._starts[line]]
        encoding = _ENCODINGS.get(self.units)
        units = len(before) if encoding is None else len(before.encode(encoding[0], "surrogatepass")) // encoding[1]
        return {"line": line, "character": units}

    def range(self, start: int, end: int) -> Json:
        """The range of the characters start..end."""
        return {"start": self.position(start), "end": self.position(max(start, end))}

    def card(self, text: str | None, start: int, end: int) -> Json | None:
        """What a hover over the characters start..end shows; None for no text."""
        return {"contents": {"kind": "markdown", "value": text}, "range": self.range(start, end)} if text else None

    def whole(self) -> Json:
        """The range of all of it."""
        return self.range(0, self._starts[-1])

    def at(self, span: Span | None) -> Json:
        """The range of a span of this document; the beginning for none."""
        return self.range(0, 0) if span is None else self.range(span.start, span.end)

    def other(self, source: Source, name: str | None = None) -> Document:
        """Another text as a document, counted alike. `name`: where it lies, if not where its name says."""
        path = Path(name or source.name)
        kind = KINDS.get(path.suffix, "")
        return Document(uri_of(path), source.text, kind, self.units, self.open)


def path_of(uri: str) -> Path | None:
    """The path of a `file:` URI; None for any other."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or "%00" in parts.path or "\0" in parts.path:
        return None
    path = unquote(parts.path)
    if len(path) > 2 and path[0] == "/" and path[2] == ":":  # file:///C:/…
        path = path[1:]
    elif parts.netloc not in ("", "localhost"):
        path = f"//{parts.netloc}{path}"
    return Path(path)


def uri_of(path: Path) -> str:
    """The `file:` URI of a path."""
    return path.absolute().as_uri()
