"""The top of a file: `PTX name`, quoted sentences, `Expect=` and herd's own `Key=value` lines.

In: Source and its text without comments. Out: Header, and the offset where the rest begins. Settled here: what is a
header line and what already is a declaration (a line whose key we do not know and that has a `;`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memmodel.base.resources import DEFAULT_MODEL
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
_PAIR = re.compile(r"\S+")


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
    while line := _LINE.match(clean, at):
        key = line[2]
        if key is None:
            description.append(" ".join(line[1].split()))
        elif key == "Expect":
            _expect(source, line.start(3), line[3], expectations)
        elif key not in DROPPED:
            if ";" in line[3]:
                break
            hint = suggestion(key, KEYS) or f"known: {listed(KEYS)}; a declaration ends with `;`"
            raise InputError(f"unknown header line `{shorten(key)}`", source.span(*line.span(2)), hint)
        at = line.end()
    return Header(name, tuple(s for s in description if s), tuple(expectations.values())), at


def read_expectations(source: Source, clean: str, at: int) -> tuple[list[tuple[int, tuple[Expectation, ...]]], str]:
    """`Expect=` lines after the header, each above the question that it is about; and the text without them.

    Each comes with the offset where it stands. Raises InputError.
    """
    expectations: list[tuple[int, tuple[Expectation, ...]]] = []
    pieces: list[str] = []
    done = 0
    for line in _LATER.finditer(clean, at):
        by_model: dict[str, Expectation] = {}
        _expect(source, line.start(1), line[1], by_model)
        expectations.append((line.start(), tuple(by_model.values())))
        pieces += (clean[done : line.start()], " " * len(line[0]))
        done = line.end()
    return expectations, "".join(pieces) + clean[done:]


def _title(source: Source, clean: str) -> tuple[str, int]:
    title = _TITLE.match(clean)
    assert title is not None  # it matches the empty text too
    hint = "a litmus test begins with a line such as `PTX MP+rel.gpu+acq.gpu`"
    if title[1] != "PTX":
        place = source.span(title.start(1), min(title.end(1), title.start(1) + 48))
        # Of a file that is no test, nothing is shown: whoever named it need not have the right to read it.
        ours = title[1].upper().startswith("PTX")
        raise InputError("the first line is not `PTX` and a name", place, hint, show_line=ours)
    name = title[2].strip()
    if not name:
        raise InputError("the test has no name", source.span(*title.span(1)), hint)
    if len(name.split()) > 1 or '"' in name:
        hint = "put what it is for in quotes on the next line"
        raise InputError("the name of a test is one word", source.span(*title.span(2)), hint)
    return name, title.end()


def _expect(source: Source, start: int, line: str, by_model: dict[str, Expectation]) -> None:
    """The expectations of a line, `model:word` each, which begins at an offset."""
    for pair in _PAIR.finditer(line):
        span = source.span(start + pair.start(), start + pair.end())
        model, colon, word = pair[0].rpartition(":")
        if not colon or not model:
            raise InputError(
                f"`{shorten(pair[0])}` is not model:word", span, f"for example Expect={DEFAULT_MODEL}:never"
            )
        at = span.end - len(word)
        for part in word.split("+"):
            _check_word(source, at, part)
            at += len(part) + 1
        if model in by_model:
            hint = f"the first is on line {by_model[model].span.line}"
            raise InputError(f"two expectations for `{shorten(model)}`", span, hint)
        by_model[model] = Expectation(model, word, span)


def _check_word(source: Source, start: int, word: str) -> None:
    if word not in WORDS:
        hint = suggestion(word, WORDS) or f"known: {listed(WORDS)}; several that hold together: never+race"
        where = source.span(start, start + max(len(word), 1))
        raise InputError(f"unknown expectation `{shorten(word)}`", where, hint)
