"""docs/gallery: each kernel has its fault, at its line, and its fixed form has none; the page says so.

`MEMMODEL_REWRITE=1 pytest tests/docs/test_gallery.py` writes the table.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from types import ModuleType

import pytest
from helpers.places import ROOT

from memmodel.kernel.output.text import locations

GALLERY = ROOT / "docs" / "gallery"
TABLE = re.compile(r"(<!-- table -->\n).*?(<!-- end -->)", re.DOTALL)


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gallery_cases", GALLERY / "cases.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # as dataclasses want it
    spec.loader.exec_module(module)
    return module


CASES = loaded()


@pytest.mark.share(2)
@pytest.mark.parametrize("case", CASES.CASES, ids=lambda case: case.name)
def test_the_fault_is_found_at_its_line_and_mended(case) -> None:  # type: ignore[no-untyped-def]
    verdict = case.verdict()
    assert set(case.rules) <= {finding.rule for finding in verdict.serious}, verdict
    sides = [side for finding in verdict.serious for side in (*finding.sides, *finding.way)]
    lines = {place.rpartition(":")[0] for side in sides for place in locations(side.instruction.location)}
    assert f"{case.name}.cu:{case.line}" in lines, sorted(lines)
    fixed = case.verdict(fixed=True)
    assert fixed.word in case.words, fixed
    assert case.relied == (case.verdict(model=CASES.RELIED).word == "clean" if case.relied else False)


def test_every_kernel_has_a_case_and_its_ptx() -> None:
    names = {path.stem for path in GALLERY.glob("*.cu")}
    assert names == {case.name for case in CASES.CASES}
    assert {path.stem for path in GALLERY.glob("*.ptx")} == names | {f"{name}-fixed" for name in names}


def test_the_page_has_the_table_of_today() -> None:
    page = GALLERY / "README.md"
    text = page.read_text(encoding="utf-8")
    today = TABLE.sub(lambda found: found[1] + CASES.table() + found[2], text)
    if os.environ.get("MEMMODEL_REWRITE"):
        page.write_text(today, encoding="utf-8")
        return
    timeless = re.compile(r"\d+\.\d s")
    assert timeless.sub("N s", today) == timeless.sub("N s", text)
