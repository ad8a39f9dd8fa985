"""docs/gallery: each kernel has its fault, at its line, and its fixed form has none; the page says so.

`MEMMODEL_REWRITE=1 pytest tests/docs/test_gallery.py` writes the table.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from functools import cache
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
VERDICT = CASES.Case.verdict


@cache
def judged(name: str, language: str = "", *, fixed: bool = False):  # type: ignore[no-untyped-def]
    return VERDICT(next(case for case in CASES.CASES if case.name == name), language, fixed=fixed)


FORMS = [(case, language) for case in CASES.CASES for language in ("", *case.languages)]


@pytest.mark.share(2)
@pytest.mark.parametrize(("case", "language"), FORMS, ids=[f"{language}{case.name}" for case, language in FORMS])
def test_the_fault_is_found_at_its_line_and_mended(case, language: str) -> None:  # type: ignore[no-untyped-def]
    verdict = judged(case.name, language)
    assert set(case.rules) <= {finding.rule for finding in verdict.serious}, verdict
    sides = [side for finding in verdict.serious for side in (*finding.sides, *finding.way)]
    lines = {place.rpartition(":")[0] for side in sides for place in locations(side.instruction.location)}
    assert f"{case.source(language).name}:{case.line(language)}" in lines, sorted(lines)
    fixed = judged(case.name, language, fixed=True)
    assert fixed.word in case.words, fixed
    relied = case.relied and not language
    assert relied == (case.verdict(model=CASES.RELIED).word == "clean" if relied else False)


def test_every_kernel_has_a_case_and_its_ptx() -> None:
    for language in ("", *CASES.LANGUAGES):
        names = {case.name for case in CASES.CASES if not language or language in case.languages}
        assert {path.stem for path in (GALLERY / language).glob("*.py" if language else "*.cu")} == names
        ptx = {path.stem for path in (GALLERY / language).glob("*.ptx")}
        assert ptx == names | {f"{name}-fixed" for name in names}


def test_the_page_has_the_table_of_today(monkeypatch: pytest.MonkeyPatch) -> None:
    page = GALLERY / "README.md"
    text = page.read_text(encoding="utf-8")
    rewriting = os.environ.get("MEMMODEL_REWRITE")
    if not rewriting:  # the seconds are not compared
        monkeypatch.setattr(CASES.Case, "verdict", lambda case, fixed=False: judged(case.name, fixed=fixed))
    today = TABLE.sub(lambda found: found[1] + CASES.table() + found[2], text)
    if rewriting:
        page.write_text(today, encoding="utf-8")
        return
    timeless = re.compile(r"\d+\.\d s")
    assert timeless.sub("N s", today) == timeless.sub("N s", text)
