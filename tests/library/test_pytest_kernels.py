"""The fixture `memmodel_kernels`: kernels of a test are judged, each specialization an item of the report."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from helpers.places import ROOT
from helpers.triton_programs import PROLOGUE, STUBS

pytestmark = pytest.mark.turns(2)

pytest_plugins = ["pytester"]

TESTS = (
    PROLOGUE
    + """
import pytest
from memmodel import FakeArray

def test_clean_launches(memmodel_kernels):
    good[(1,)](x, y, 64, BLOCK=1)
    good[(1,)](x, y, 64, BLOCK=2)

def test_a_race_that_was_launched(memmodel_kernels):
    good[(1,)](x, y, 64, BLOCK=1)
    racy[(1,)](x, y, 64, BLOCK=64, num_warps=2)

@pytest.mark.memmodel_findings("data-race")
def test_an_expected_race(memmodel_kernels):
    memmodel_kernels.check(racy, FakeArray((64,)), FakeArray((64,)), 64, BLOCK=64, num_warps=2, grid=1)

@pytest.mark.memmodel_findings("data-race")
def test_an_expected_race_that_is_gone(memmodel_kernels):
    text = triton_ptx(barrier=True)
    memmodel_kernels.check_ptx(text, grid=1, args=[FakeArray((64,)), FakeArray((64,)), 64, None, None], label="mended")

@pytest.mark.memmodel_findings("data-race", kernel="other")
def test_an_expected_race_of_another_kernel(memmodel_kernels):
    memmodel_kernels.check(good, FakeArray((64,)), FakeArray((64,)), 64, BLOCK=64, grid=1)

def test_that_fails_by_itself(memmodel_kernels):
    racy[(1,)](x, y, 64, BLOCK=64, num_warps=2)
    assert False, "mine"

def test_without_kernels(memmodel_kernels):
    assert not len(memmodel_kernels.results)
"""
)


@pytest.fixture
def place(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(STUBS), str(ROOT), str(ROOT / "tests"))))
    monkeypatch.setenv("MEMMODEL_CACHE", str(pytester.path / "kept"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_kernels=TESTS)
    return pytester


def test_each_specialization_is_an_item(place: pytest.Pytester) -> None:
    words = ("-p", "memmodel.pytest_plugin", "-p", "no:cacheprovider", "--strict-markers", "--junitxml=out.xml", "-v")
    words += ("--memmodel-sarif=out.sarif",)
    ran = place.runpytest_subprocess(*words)
    ran.assert_outcomes(passed=9, failed=5)
    out = ran.stdout.str()
    for line in (
        "test_kernels.py::test_clean_launches::k (BLOCK=1) PASSED", "test_kernels.py::test_clean_launches PASSED",
        "test_kernels.py::test_a_race_that_was_launched::k (BLOCK=64, num_warps=2) FAILED",
        "test_kernels.py::test_a_race_that_was_launched FAILED", "k (BLOCK=64, num_warps=2): data-race",
        "test_kernels.py::test_an_expected_race PASSED", "expected: data-race",
        "test_kernels.py::test_an_expected_race_that_is_gone::k (mended) FAILED", "AssertionError: mine",
        "kernels.py:9:5: reads",
    ):  # fmt: skip
        assert any(part.startswith(line) or line in part for part in out.splitlines()), (line, out)
    found = sarif_results(place)
    assert len(found) == 2 and sum("suppressions" in result for result in found) == 1, found
    suite = ElementTree.parse(Path(place.path) / "out.xml").getroot().find("testsuite")
    assert suite is not None
    cases = {case.get("name"): case.find("failure") is not None for case in suite.iter("testcase")}
    assert (cases["k (BLOCK=1)"] is False and cases["k (BLOCK=64, num_warps=2)"] is False) or len(cases) >= 9
    assert suite.get("failures") == "5"


def sarif_results(place: pytest.Pytester) -> list[Any]:
    """What a log lists, whose places are in the source, named from the folder of the tests."""
    log = json.loads((place.path / "out.sarif").read_text())
    found = [result for run in log["runs"] for result in run["results"]]
    for result in found:
        (location,) = result["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"] == "kernels.py", location
        assert location["physicalLocation"]["region"]["startLine"] == 8
    return found


def test_on_several_processes_the_test_itself_says_it(place: pytest.Pytester) -> None:
    words = (
        "-p",
        "memmodel.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "-p",
        "xdist",
        "-n",
        "1",
        "--memmodel-sarif=out.sarif",
    )
    ran = place.runpytest_subprocess(*words, "-k", "launch")
    ran.assert_outcomes(passed=1, failed=1)
    assert "data-race" in ran.stdout.str() and "kernels.py:9:5: reads" in ran.stdout.str()
    assert len(sarif_results(place)) == 1
