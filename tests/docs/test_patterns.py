"""docs/model.md and docs/patterns.md speak of what is shipped: every test, verdict and line of cat is there.

A code span `folder/name` is a test below litmus/async, or below litmus; `-end` continues the last test named in full.
`Forbidden: … Allowed: ….` promises verdicts, and so does a row of patterns.md whose last two columns name tests.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.places import ROOT

from memmodel.litmus import parse_litmus
from memmodel.source import Source

LITMUS = ROOT / "litmus"
MODEL, PATTERNS = ROOT / "docs" / "model.md", ROOT / "docs" / "patterns.md"
FOLDERS = {path.name for path in LITMUS.rglob("*") if path.is_dir()}

SPAN = re.compile(r"`([^`\n]+)`")
PAIR = re.compile(r"Forbidden:\s(.*?)\.\s+Allowed:\s(.*?)\.$", re.MULTILINE | re.DOTALL)
CAT = re.compile(r"^```cat\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def named(text: str) -> list[str]:
    """The tests that a text names, in order, as `folder/name`; an `-end` continues the last one named in full."""
    found, last = [], ""
    for span in SPAN.findall(text):
        if re.fullmatch(r"-[\w.-]+", span):
            found.append(last + span)
        elif re.fullmatch(r"[\w-]+(/[^\s/]+)+", span) and span.split("/")[0] in FOLDERS:
            last = span
            found.append(span)
    return found


def file_of(name: str) -> Path:
    nested, direct = LITMUS / "async" / f"{name}.litmus", LITMUS / f"{name}.litmus"
    return nested if nested.is_file() else direct


def promised(path: Path) -> list[tuple[str, bool]]:
    """(test, does the page call its outcome forbidden) for every pair on the page."""
    text = path.read_text()
    pairs = PAIR.findall(text)
    for row in re.findall(r"^\| (.*) \|$", text, re.MULTILINE):
        pairs += [tuple(row.rsplit(" | ", 2)[1:])] if row.count(" | ") > 1 else []
    verdicts = []
    for right, wrong in pairs:
        names = named(f"{right} {wrong}") if named(right) else []
        border = len(named(right))
        verdicts += [(name, k < border) for k, name in enumerate(names)]
    return verdicts


@pytest.mark.parametrize("page", [MODEL, PATTERNS], ids=lambda page: page.name)
def test_every_test_that_is_named_is_shipped(page: Path) -> None:
    names = named(FENCED.sub("", page.read_text()))
    assert len(names) >= 80
    assert [name for name in names if not file_of(name).is_file()] == []


@pytest.mark.parametrize("page", [MODEL, PATTERNS], ids=lambda page: page.name)
def test_pairs_are_forbidden_and_allowed_as_the_page_says(page: Path) -> None:
    pairs = promised(page)
    assert {forbidden for _, forbidden in pairs} == {True, False}
    wrong = []
    for name, forbidden in pairs:
        test = parse_litmus(Source.read(file_of(name)))
        words = {one.word for one in test.expectations if one.model == "ptx-9.4"}
        if forbidden != (words <= {"never", "always", "never+hang"}):  # a hang beside an outcome does not allow it
            wrong.append((name, words))
    assert wrong == []


def test_every_pattern_stands_on_the_page() -> None:
    found = {file_of(name) for name in named(PATTERNS.read_text())}
    assert sorted(set((LITMUS / "async" / "patterns").glob("*.litmus")) - found) == []


def test_every_quoted_line_of_cat_is_in_the_model() -> None:
    shipped = {line.strip() for path in (ROOT / "axioms").rglob("*.cat") for line in path.read_text().splitlines()}
    quoted = [line.strip() for block in CAT.findall(MODEL.read_text()) for line in block.splitlines() if line.strip()]
    assert len(quoted) >= 60
    assert [line for line in quoted if line not in shipped] == []
