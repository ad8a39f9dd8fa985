"""Made-up mnemonics end here: every block-layout test of the corpus assembles, or is listed with ptxas's reason."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memmodel.emit import Assembler, emit
from memmodel.errors import InputError
from memmodel.litmus.parse import parse_litmus
from memmodel.litmus.syntax import Layout
from memmodel.source import Source

ROOT = Path(__file__).parent.parent
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


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_block_of_ptx_assembles(folder: str) -> None:
    try:
        assembler = Assembler.find()
    except InputError:
        pytest.skip("no ptxas: pip install 'memmodel[ptx]'")
    paths = sorted((CORPUS / folder).glob("*.litmus"))
    with ThreadPoolExecutor(4) as pool:
        results = pool.map(lambda path: outcome(path, assembler), paths)
    found = {path.relative_to(CORPUS).as_posix(): result for path, result in zip(paths, results, strict=True)}
    wanted = {file: reason for file, reason in listed().items() if file in found}
    assert {file: result for file, result in found.items() if result is not None} == wanted


def test_what_is_listed_exists() -> None:
    assert [file for file in listed() if not (CORPUS / file).is_file()] == []
