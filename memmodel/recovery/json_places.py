"""Where the values of a JSON text stand.

In: Source. Out: spans, by the path of keys and indices that leads to a value. Settled here: what is not there has the
place of the nearest value around it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from memmodel.source import Source, Span

Path = tuple[str | int, ...]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


class JsonPlaces:
    """The places in a text that is JSON."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._values: dict[Path, tuple[int, int]] = {}
        self._keys: dict[Path, tuple[int, int]] = {}
        self._read()

    def _read(self) -> None:
        path: list[str | int] = []
        """Of the value that comes next: in an object, a key is put in the place of the last one."""
        open_brackets: list[str] = []
        key: tuple[int, int] | None = None
        for token in _TOKEN.finditer(self.source.text):
            text, span = token[0], token.span()
            in_object = bool(open_brackets) and open_brackets[-1] == "{"
            if in_object and key is None and text[0] == '"':
                key, path[-1] = span, str(json.loads(text, strict=False))
                self._keys[tuple(path)] = span
            elif text == ",":
                key = None
                if open_brackets and not in_object and isinstance(path[-1], int):
                    path[-1] += 1
            elif text in "{[":
                self._values[tuple(path)] = span
                open_brackets.append(text)
                path.append("" if text == "{" else 0)
                key = None
            elif text in "}]" and open_brackets:
                open_brackets.pop()
                path.pop()
                key = span  # the key of the object around is spent
            elif text != ":":
                self._values[tuple(path)] = span

    def value(self, path: Sequence[str | int]) -> Span | None:
        """The value that a path leads to; of an object or a list, its bracket."""
        return self._nearest(self._values, tuple(path))

    def key(self, path: Sequence[str | int]) -> Span | None:
        """The key that a path ends with."""
        place = self._keys.get(tuple(path))
        return self.source.span(*place) if place is not None else self.value(path)

    def of_name(self, word: str) -> Span | None:
        """The last `name` that is this string, or if there is none the last other value that is."""
        texts = ((path, span, self.source.text[slice(*span)]) for path, span in self._values.items())
        values = [
            (path[-1:] == ("name",), span)
            for path, span, text in texts
            if text[0] == '"' and json.loads(text, strict=False) == word
        ]
        return self.source.span(*max(values)[1]) if values else None

    def _nearest(self, places: dict[Path, tuple[int, int]], path: Path) -> Span | None:
        """Nothing for the text as a whole: that has no place of its own."""
        while path and path not in places:
            path = path[:-1]
        return self.source.span(*places[path]) if path else None
