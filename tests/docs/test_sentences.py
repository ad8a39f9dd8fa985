"""docs/sentences.md and sentences-missed.md are what the files of tests/data say, and the tests that they name exist.

`MEMMODEL_REWRITE=1 pytest tests/docs/test_sentences.py` writes the page.
"""

from __future__ import annotations

import ast
import os
from functools import cache
from pathlib import Path

import pytest
from helpers.kernel.engines import verdict_of
from helpers.places import ROOT
from helpers.sentences import COUNT, MEANINGS, MISSED_PAGE, PAGE, Sentence, missed, missed_page, page, stored

from memmodel import api
from memmodel.errors import InputError

SENTENCES, MISSED = stored(), missed()
NAMED = {name for known in (*(sentence.by for sentence in SENTENCES), *(row.tests for row in MISSED)) for name in known}
REFUSED = [sentence for sentence in SENTENCES if sentence.verdict == "refused"]

LITMUS = """PTX refused
.global .align 128 .b32 data[32];
.shared .align 128 .b32 tile[32];
.shared .align 8 .b64 bar = mbarrier(1);
.const .align 64 .b8 map[128] = tensormap(data);
thread P0 @ cta 0, cluster 0, gpu 0 {{
    {line}
}}
exists true
"""
NAMES = {"tile": "tile", "address": "data", "bar": "bar", "map": "map", "wide": "%d0"}
REGISTERS = {"tile": "%r2", "address": "%d0", "bar": "%r4", "map": "%d1", "wide": "%d0"}


def test_every_sentence_has_one_verdict() -> None:
    assert len({(sentence.page, sentence.text) for sentence in SENTENCES}) == len(SENTENCES) == COUNT
    for sentence in SENTENCES:
        assert sentence.verdict in MEANINGS and sentence.found in ("", "mended", "added")
        assert bool(sentence.by) is (sentence.verdict == "test"), sentence
        assert bool(sentence.line and sentence.says) is (sentence.verdict == "refused"), sentence
        assert sentence.why or sentence.verdict in ("test", "refused"), sentence


@cache
def names_in(file: str) -> set[str]:
    """The names of the tests in a file."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@pytest.mark.parametrize("name", sorted(NAMED))
def test_every_test_that_is_named_exists(name: str) -> None:
    file, _, test = name.partition("::")
    if file.startswith("litmus/"):
        assert file.endswith(".litmus") and (ROOT / file).is_file()
    else:
        assert test in names_in(file)


@pytest.mark.parametrize("sentence", REFUSED, ids=lambda sentence: sentence.page)
def test_what_is_refused_is_refused_with_that_reason(sentence: Sentence) -> None:
    with pytest.raises(InputError) as refusal:
        api.check(LITMUS.format(line=sentence.line.format(**NAMES)))
    assert sentence.says in refusal.value.render()
    try:
        reasons = verdict_of(sentence.line.format(**REGISTERS)).open
    except InputError as error:
        reasons = [error.render()]
    assert any(sentence.says in reason for reason in reasons)


def test_every_sentence_that_was_missed_has_a_test() -> None:
    assert len(MISSED) == 19 and all(row.litmus or row.kernels for row in MISSED)


@pytest.mark.parametrize(("path", "text"), [(PAGE, page(SENTENCES)), (MISSED_PAGE, missed_page(MISSED))])
def test_the_pages_are_what_the_data_say(path: Path, text: str) -> None:
    if os.environ.get("MEMMODEL_REWRITE") == "1":
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, "MEMMODEL_REWRITE=1 brings the page up to date"
