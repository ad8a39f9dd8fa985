"""docs/sentences.md is what tests/data/sentences.toml says, and the tests that it names exist.

`MEMMODEL_REWRITE=1 pytest tests/docs/test_sentences.py` writes the page.
"""

from __future__ import annotations

import ast
import os
from functools import cache

import pytest
from helpers.kernel.engines import verdict_of
from helpers.places import ROOT
from helpers.sentences import COUNT, MEANINGS, PAGE, Sentence, page, stored

from memmodel import api
from memmodel.errors import InputError

SENTENCES = stored()
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


@pytest.mark.parametrize("name", sorted({name for sentence in SENTENCES for name in sentence.by}))
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


def test_the_page_is_what_the_data_say() -> None:
    if os.environ.get("MEMMODEL_REWRITE") == "1":
        PAGE.write_text(page(SENTENCES), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(SENTENCES), "MEMMODEL_REWRITE=1 brings the page up to date"
