"""The two worked tests of docs/litmus-language.md read as they stand there, and ask the same question."""

from __future__ import annotations

import re
from pathlib import Path

from memmodel.litmus import parse_litmus
from memmodel.litmus.syntax import Layout
from memmodel.source import Source

PAGE = Path(__file__).parents[1] / "docs" / "litmus-language.md"


def test_the_worked_tests_of_the_page_are_one_test_in_two_layouts() -> None:
    texts = re.findall(r"```text\n(PTX .*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    columns, blocks = (parse_litmus(Source("page", text)) for text in texts)
    assert (columns.layout, blocks.layout) == (Layout.COLUMNS, Layout.BLOCKS)
    assert columns.condition == blocks.condition
    assert columns.expectations == blocks.expectations
    assert [len(t.body) for t in columns.threads] == [len(t.body) for t in blocks.threads]
    assert not columns.warnings and not blocks.warnings
