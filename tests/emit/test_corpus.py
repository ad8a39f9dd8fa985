"""Made-up mnemonics end here: every block-layout test of the corpus assembles, or is listed with ptxas's reason."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from helpers.examples import share
from helpers.places import ROOT

from memmodel.emit import Assembler, emit
from memmodel.errors import InputError
from memmodel.isa.convert import convert
from memmodel.litmus import print_litmus
from memmodel.litmus.parse import parse_litmus
from memmodel.litmus.syntax import Layout
from memmodel.source import Source

CORPUS = ROOT / "litmus"
_ROW = re.compile(r"^\| `(?P<file>[^`]+)` \| (?P<reason>.+) \|$", re.MULTILINE)


def listed() -> dict[str, str]:
    """The tests that ptxas refuses as a whole, with its reason."""
    text = (ROOT / "docs" / "ptx-refused.md").read_text(encoding="utf-8")
    return {match["file"]: match["reason"] for match in _ROW.finditer(text)}


FOLDERS = sorted({path.parent.relative_to(CORPUS).as_posix() for path in CORPUS.rglob("*.litmus")})


def outcome(path: Path, assembler: Assembler) -> str | None:
    """What is wrong with a file; None for one that assembles, or that is not a PTX text (columns without types)."""
    test = parse_litmus(Source.read(path))
    if test.layout is Layout.COLUMNS:
        return None
    try:
        return "; ".join(found.message for found in assembler.assemble(emit(test))) or None
    except InputError as error:
        return error.render()


@pytest.mark.share(3)
@pytest.mark.parametrize("folder", FOLDERS)
def test_every_block_of_ptx_assembles(folder: str) -> None:
    try:
        assembler = Assembler.find()
    except InputError:
        pytest.skip("no ptxas: pip install 'memmodel[ptx]'")
    paths = share(sorted((CORPUS / folder).glob("*.litmus")), 8)
    with ThreadPoolExecutor(4) as pool:
        results = pool.map(lambda path: outcome(path, assembler), paths)
    found = {path.relative_to(CORPUS).as_posix(): result for path, result in zip(paths, results, strict=True)}
    wanted = {file: reason for file, reason in listed().items() if file in found}
    assert {file: result for file, result in found.items() if result is not None} == wanted


def test_no_test_loses_its_clusters() -> None:
    """Another launch would run another test. Columns are written as blocks first, as `memmodel fmt` does."""
    lost, seen = [], 0
    for path in sorted(CORPUS.rglob("*.litmus")):
        test = parse_litmus(Source.read(path))
        clusters = {thread.place.cluster_id for thread in test.threads if thread.place.cluster is not None}
        if not clusters:
            continue
        try:
            text = emit(parse_litmus(Source(str(path), print_litmus(convert(test, Layout.BLOCKS))))).text
        except InputError as error:
            assert "PTX" in error.message, error.render()  # instructions that PTX does not have
            continue
        seen += 1
        size = max(thread.place.cta for thread in test.threads) + 1 if len(clusters) == 1 else 1
        found = re.search(r"^\.reqnctapercluster (\d+), 1, 1$", text, re.MULTILINE)
        if found is None or (len({t.place.cta_id for t in test.threads}) > 1 and int(found[1]) < size):
            lost.append(path.name)
    assert lost == []
    assert seen > 200


def test_what_is_listed_exists() -> None:
    assert [file for file in listed() if not (CORPUS / file).is_file()] == []
