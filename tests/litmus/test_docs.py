"""What docs/litmus-language.md shows is so: its worked tests read, its translations are those of the program."""

from __future__ import annotations

import re

from helpers.places import ROOT

from memmodel.isa.convert import convert
from memmodel.litmus import parse_litmus, print_litmus
from memmodel.litmus.syntax import Layout
from memmodel.source import Source

PAGE = ROOT / "docs" / "litmus-language.md"


def test_the_worked_tests_of_the_page_are_one_test_in_two_layouts() -> None:
    texts = re.findall(r"```text\n(PTX .*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    columns, blocks = (parse_litmus(Source("page", text)) for text in texts)
    assert (columns.layout, blocks.layout) == (Layout.COLUMNS, Layout.BLOCKS)
    assert columns.condition == blocks.condition
    assert columns.expectations == blocks.expectations
    assert [len(t.body) for t in columns.threads] == [len(t.body) for t in blocks.threads]
    assert not columns.warnings and not blocks.warnings


def test_the_table_of_translations_is_true() -> None:
    section = PAGE.read_text(encoding="utf-8").split("## From one layout to the other", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", section, re.MULTILINE)
    assert len(rows) == 9
    for cell, cells in rows:
        init, cell = (cell, "L: ld r0, 1") if cell.endswith(";") else ("x = 0;", f"L: {cell}")
        table = f"PTX T\n{{ {init} P0:r1 = 0; }}\n P0 | P1 ;\n {cell} | ;\nexists (P0:r0 == 1)\n"
        lines = print_litmus(convert(parse_litmus(Source("page", table)), Layout.BLOCKS)).splitlines()
        wanted = re.findall(r"`([^`]+)`", cells)
        at = [line.strip() for line in lines].index(wanted[0])
        assert [line.strip() for line in lines][at : at + len(wanted)] == wanted
