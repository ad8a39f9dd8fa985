"""The top of a file: `PTX name`, quoted sentences, `Expect=` and herd's own `Key=value` lines.

In: Source and its text without comments. Out: Header, and the offset where the rest begins. Settled here: what is a
header line and what already is a declaration (a line whose key we do not know and that has a `;`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memmodel.errors import InputError, suggestion
from memmodel.litmus.lexer import listed
from memmodel.litmus.syntax import Expectation
from memmodel.ptx.lexer import shorten
from memmodel.source import Source

WORDS = ("never", "sometimes", "always", "vacuous", "undecided", "race", "hang", "hazard", "undefined")
"""What a file can expect of a model; `a+b` expects both."""

DROPPED = ("Orig", "Com", "Generator", "Prefetch", "Cycle", "Relax", "Safe")
"""Header lines that herd's generators write; they say nothing that a model needs."""

KEYS = ("Expect", *DROPPED)

_TITLE = re.compile(r"\s*(\S*)([^\n]*)")
_LINE = re.compile(r'\s*(?:"([^"]*)"|([A-Za-z][A-Za-z0-9_]*)[ \t]*=(?!=)([^\n]*))')
_LATER = re.compile(r"(?m)^[ \t]*Expect[ \t]*=(?!=)([^\n;]*)$")
_ITEM = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Header:
    """The name of a test, its sentences (white space made single blanks) and what it expects."""

    name: str
    description: tuple[str, ...]
    expectations: tuple[Expectation, ...]


def read_header(source: Source, clean: str) -> tuple[Header, int]:
    """Header and the offset after it. Raises InputError on a missing title, an unknown key or an unknown word."""
    name, at = _title(source, clean)
    description: list[str] = []
    expectations: dict[str, Expectation] = {}
    while found := _LINE.match(clean, at):
        key = found[2]
        if key is None:
            description.append(" ".join(found[1].split()))
        elif key == "Expect":
            _expect(source, found.start(3), found[3], expectations)
        elif key not in DROPPED:
            if ";" in found[3]:
                break
            hint = suggestion(key, KEYS) or f"known: {listed(KEYS)}; a declaration ends with `;`"
            raise InputError(f"unknown header line `{shorten(key)}`", source.span(*found.span(2)), hint)
        at = found.end()
    return Header(name, tuple(s for s in description if s), tuple(expectations.values())), at


def read_expectations(source: Source, clean: str, at: int) -> tuple[list[tuple[int, tuple[Expectation, ...]]], str]:
    """`Expect=` lines after the header, each above the question that it is about; and the text without them.

    Each comes with the offset where it stands. Raises InputError.
    """
    found: list[tuple[int, tuple[Expectation, ...]]] = []
    pieces: list[str] = []
    done = 0
    for line in _LATER.finditer(clean, at):
        into: dict[str, Expectation] = {}
        _expect(source, line.start(1), line[1], into)
        found.append((line.start(), tuple(into.values())))
        pieces += (clean[done : line.start()], " " * len(line[0]))
        done = line.end()
    return found, "".join(pieces) + clean[done:]


def _title(source: Source, clean: str) -> tuple[str, int]:
    found = _TITLE.match(clean)
    assert found is not None  # it matches the empty text too
    hint = "a litmus test begins with a line such as `PTX MP+rel.gpu+acq.gpu`"
    if found[1] != "PTX":
        end = min(found.end(1), found.start(1) + 48)
        # Of a file that is no test, nothing is shown: whoever named it need not have the right to read it.
        ours = found[1].upper().startswith("PTX")
        raise InputError(
            "the first line is not `PTX` and a name", source.span(found.start(1), end), hint, show_line=ours
        )
    name = found[2].strip()
    if not name:
        raise InputError("the test has no name", source.span(*found.span(1)), hint)
    if len(name.split()) > 1 or '"' in name:
        where = source.span(found.start(2), found.end(2))
        raise InputError("the name of a test is one word", where, "put what it is for in quotes on the next line")
    return name, found.end()


def _expect(source: Source, start: int, line: str, into: dict[str, Expectation]) -> None:
    for item in _ITEM.finditer(line):
        span = source.span(start + item.start(), start + item.end())
        model, colon, word = item[0].rpartition(":")
        if not colon or not model:
            raise InputError(f"`{shorten(item[0])}` is not model:word", span, "for example Expect=ptx-9.3:never")
        at = span.end - len(word)
        for part in word.split("+"):
            _check_word(source, at, part)
            at += len(part) + 1
        if model in into:
            hint = f"the first is on line {into[model].span.line}"
            raise InputError(f"two expectations for `{shorten(model)}`", span, hint)
        into[model] = Expectation(model, word, span)


def _check_word(source: Source, start: int, word: str) -> None:
    if word not in WORDS:
        hint = suggestion(word, WORDS) or f"known: {listed(WORDS)}; several that hold together: never+race"
        where = source.span(start, start + max(len(word), 1))
        raise InputError(f"unknown expectation `{shorten(word)}`", where, hint)
