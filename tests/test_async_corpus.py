"""The asynchronous corpus: every file says what happens under each model that it names, and every rule is noticed.

In: litmus/async. Settled here: which rows of the verdict table have files, which check of the model each of them shows
to be needed, and which correct programs the model may still report something about.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from memmodel.answer import Answer
from memmodel.cat import load_model
from memmodel.cat.syntax import Model
from memmodel.engine import answer
from memmodel.enumeration import estimate
from memmodel.litmus import parse_litmus
from memmodel.litmus.syntax import LitmusTest
from memmodel.report.expect import expected_word, meets
from memmodel.resources import axioms_dir, suite_dir
from memmodel.source import Source

CORPUS = suite_dir() / "async"
DEFAULT = "ptx-9.3"
FEW = 2_000
"""Up to about this many candidate executions a file is also given to explicit enumeration."""

ROWS = (
    *(f"G{n}" for n in (1, 3, 4, 5, *range(9, 17))),
    *(f"A{n}" for n in range(1, 19)),
    *(f"T{n}" for n in range(1, 19)),
    *(f"H{n}" for n in range(5, 18)),
    *(f"R{n}" for n in range(1, 7)),
)
"""The rows of the verdict table that need an mbarrier or an asynchronous operation."""

NEEDED = {
    "Coherence": "honest/H16-second",
    "Coherence-Order": "mbarrier/red.async",
    "Atomicity": "proxy/reduce-and-atom",
    "No-Thin-Air": "pipelines/scheduler-branch-first-value",
    "Causality": "mbarrier/G3",
    "Mbarrier-Order": "mbarrier/order",
    "Tensor-Memory": "tcgen05/T13",
    "Tensor-Coherence": "tcgen05/T1",
    "data-race": "mbarrier/G1-race",
    "tensor-memory-hazard": "tcgen05/T13-register",
    "undefined-mbarrier": "mbarrier/over-arrival",
    "undefined-before-init": "mbarrier/init-unordered",
    "undefined-unfinished-copy": "proxy/A12-undefined",
    "undefined-mbarrier-access": "mbarrier/object-overwritten",
    "undefined-tensor-memory": "tcgen05/alloc-early-free",
}
"""Check of the model -> a file that is no longer as expected without it."""

GENERIC = ("Fence-SC", "SC-per-Location")
"""Checks that speak of nothing asynchronous; the generic corpus shows that they are needed."""

REPORTED = {
    "pipelines/scheduler-branch-first-value": "its sentence is about the race that remains",
    "readings/D10-fence": "the load runs after a test that failed, too",
    "readings/D10-one-shot": "the load runs after a test that failed, too",
}
"""Files whose outcome never happens although the model reports something about them, and why."""


def _name(path: Path) -> str:
    return path.relative_to(CORPUS).as_posix().removesuffix(".litmus")


FILES = {_name(path): path for path in sorted(CORPUS.rglob("*.litmus"))}


@cache
def _test(name: str) -> LitmusTest:
    return parse_litmus(Source.read(FILES[name]))


@cache
def _model(name: str) -> Model:
    return load_model(name)


@cache
def _answer(name: str, model: str) -> Answer:
    return answer(_test(name), _model(model), engine="z3")


def _expectations() -> list[tuple[str, str]]:
    return [(name, expectation.model) for name in FILES for expectation in _test(name).expectations]


def _small() -> list[tuple[str, str]]:
    return [(name, model) for name, model in _expectations() if estimate(_test(name), 3) <= FEW]


def _as_expected(name: str, model: str, found: Answer) -> bool:
    word = expected_word(_test(name), model)
    assert word is not None
    return meets(found, _test(name).quantifier, word)


def _observed(name: str, found: Answer) -> str:
    return f"{name}: {found.observation.value} {found.flags} {found.reason} {found.hang}"


@pytest.mark.parametrize(("name", "model"), _expectations())
def test_what_happens_is_what_the_file_expects(name: str, model: str) -> None:
    found = _answer(name, model)
    assert _as_expected(name, model, found), _observed(name, found)


@pytest.mark.parametrize(("name", "model"), _small())
def test_enumeration_gives_the_same_answer(name: str, model: str) -> None:
    found = answer(_test(name), _model(model), engine="enumerate")
    assert _as_expected(name, model, found), _observed(name, found)


def test_every_file_says_why_and_expects_something_of_the_default_model() -> None:
    for name in FILES:
        test = _test(name)
        assert test.name == name.rpartition("/")[2], name
        assert test.description and expected_word(test, DEFAULT), name


@pytest.mark.parametrize("name", [name for name in FILES if expected_word(_test(name), DEFAULT) == "never"])
def test_what_is_right_is_not_reported(name: str) -> None:
    flags = _answer(name, DEFAULT).flags
    assert bool(flags) is (name in REPORTED), flags


@pytest.mark.parametrize("row", ROWS)
def test_every_row_has_a_file_and_every_forbidden_one_a_mutation_that_is_not(row: str) -> None:
    variants = {name: expected_word(_test(name), DEFAULT) for name in FILES if re.search(rf"/{row}(-|$)", name)}
    assert variants
    if any(name.endswith(f"/{row}") and word == "never" for name, word in variants.items()):
        assert any(word != "never" for word in variants.values()), sorted(variants)


def test_every_check_of_the_model_is_listed() -> None:
    assert {check.name for check in _model(DEFAULT).checks} == {*NEEDED, *GENERIC}


@pytest.mark.parametrize("check", NEEDED)
def test_every_check_is_needed(check: str) -> None:
    name = NEEDED[check]
    without = answer(_test(name), _model(DEFAULT).without(check), engine="z3")
    assert _as_expected(name, DEFAULT, _answer(name, DEFAULT))
    assert not _as_expected(name, DEFAULT, without), _observed(name, without)


@pytest.mark.parametrize("reading", sorted(path.stem for path in (axioms_dir() / "readings").glob("*.cat")))
def test_every_reading_changes_a_file(reading: str) -> None:
    model = f"readings/{reading}"
    named = [name for name in FILES if expected_word(_test(name), model)]
    assert any(expected_word(_test(name), model) != expected_word(_test(name), DEFAULT) for name in named)
