"""Each cell of docs/hand-overs.md and docs/semantics-and-scopes.md is a shipped test that gives the verdict shown.

A cell is a link to a litmus test whose text is the word of its verdict. The last table of semantics-and-scopes.md lists
instructions that PTX does not have.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.corpus import DEFAULT, as_expected, cases, questions
from helpers.places import ROOT

from memmodel import api
from memmodel.engine import Options
from memmodel.errors import InputError
from memmodel.isa.lower import lower_test
from memmodel.litmus import parse_litmus
from memmodel.source import Source

DOCS = ROOT / "docs"
HAND_OVERS, SCOPES = DOCS / "hand-overs.md", DOCS / "semantics-and-scopes.md"
CELL = re.compile(r"\[([^\]]+)\]\(\.\./litmus/([^)]+)\.litmus\)")
INSTRUCTION = re.compile(r"`([^`]+;)`")
PROGRAM = """PTX refused
.global .u32 x = 0;
.shared .align 8 .b64 bar = mbarrier(1);

thread P0 @ cta 0, cluster 0, gpu 0 {
    %s
}

exists true
"""


def cells(page: Path) -> list[tuple[str, str]]:
    return [(path, word) for word, path in CELL.findall(page.read_text())]


CELLS = sorted({*cells(HAND_OVERS), *cells(SCOPES)})


def refused() -> list[str]:
    section = SCOPES.read_text().split("## What PTX does not have", 1)[1]
    return [line for row in section.splitlines() if row.startswith("|") for line in INSTRUCTION.findall(row)]


def test_the_pages_have_their_tables() -> None:
    rows = re.findall(r"^\| (\d+)[ab]? \|", HAND_OVERS.read_text(), re.MULTILINE)
    assert [int(row) for row in dict.fromkeys(rows)] == list(range(1, 17))
    assert len(cells(HAND_OVERS)) >= 50 and len(cells(SCOPES)) >= 100 and len(refused()) >= 20


@pytest.mark.share(2)
@pytest.mark.parametrize(("path", "word"), CELLS)
def test_a_cell_gives_the_verdict_shown(path: str, word: str) -> None:
    by_default = [case for case in cases([path]) if case.model == DEFAULT]
    assert word in {case.word for case in by_default}
    for case in by_default:
        assert as_expected(case, api.judge(questions(path)[case.number], api.load(DEFAULT), Options()))


@pytest.mark.parametrize("instruction", refused())
def test_what_ptx_does_not_have_is_refused(instruction: str) -> None:
    with pytest.raises(InputError):
        lower_test(parse_litmus(Source("refused.litmus", PROGRAM % instruction)))
