"""The shipped corpus: every file says what it is for and what to expect, both engines agree, every axiom is needed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from memmodel import api, litmus
from memmodel.answer import Answer, Observation
from memmodel.cat.syntax import Model
from memmodel.engine import answer
from memmodel.enumeration import estimate
from memmodel.errors import InputError
from memmodel.litmus.syntax import LitmusTest
from memmodel.report.expect import FINDINGS, meets
from memmodel.resources import suite_dir
from memmodel.source import Source

ROOT = suite_dir()
PATHS = sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.litmus"))
GENERIC = [path for path in PATHS if not path.startswith("async")]

SMALL = 500_000
"""Up to about this many candidate executions, the plain enumeration judges a test here as well (0.2 s at worst)."""

LARGE = ["control/lock+cas-exch.litmus", "control/loop+atomic-adds.litmus", "readings/IRIW+all-atomic.litmus"]
"""Generic tests beyond SMALL, which only the solver judges here. Anything that joins them should have a reason to."""

MODELS = ["ptx-9.3", "ptx-7.5", "ptx-6.0", "sc"]

IMPLIED = {"Fence-SC": "docs/axioms.md shows that the other axioms imply it"}
"""Axioms that decide no test alone, and why they are kept."""

ASYNCHRONOUS = ("Mbarrier-Order", "Tensor-Memory", "Tensor-Coherence")
"""Axioms about events that only the tests of asynchronous operations have."""


@cache
def read(path: str) -> LitmusTest:
    return litmus.parse_litmus(Source.read(ROOT / path))


@cache
def model(name: str) -> Model:
    return api.load(name)


def expectations(path: str) -> list[tuple[str, str, str]]:
    """(path, model, word) of each expectation; none for a file that cannot be read, which another test reports."""
    try:
        return [(path, one.model, one.word) for one in read(path).expectations]
    except InputError:
        return []


def small(path: str) -> bool:
    try:
        return estimate(read(path), 3) <= SMALL
    except InputError:  # an instruction that is not legal: the solver's test reports it
        return False


def judge(path: str, name: str | Model, word: str, engine: str) -> Answer:
    chosen = model(name) if isinstance(name, str) else name
    return answer(read(path), chosen, engine=engine, races=word in FINDINGS)


EXPECTED = [case for path in PATHS for case in expectations(path)]
ENUMERATED = [case for case in EXPECTED if small(case[0])]


# ---- what a file says ----------------------------------------------------------------------------------------


def test_the_corpus_is_there() -> None:
    assert len(GENERIC) >= 130
    folders = {Path(path).parts[0] for path in GENERIC}
    assert folders == {"isa", "generic", "shapes", "proxy", "control", "readings"}


@pytest.mark.parametrize("path", PATHS)
def test_a_file_has_its_name_a_sentence_and_an_expectation(path: str) -> None:
    test = read(path)
    assert test.name == Path(path).stem
    sentence = " ".join(test.description)
    assert len(sentence.split()) >= 5 and sentence.endswith(".")
    assert test.expectations
    assert not test.warnings
    if path in GENERIC:
        named = {one.model for one in test.expectations}
        assert {"ptx-9.3", "sc"} <= named <= set(MODELS)


@pytest.mark.parametrize("path", GENERIC)
def test_the_question_is_answered_with_yes(path: str) -> None:
    """A generic file asks so that its question holds under ptx-9.3: a reader sees the verdict without running it."""
    test = read(path)
    word = next(one.word for one in test.expectations if one.model == "ptx-9.3").partition("+")[0]
    assert Observation(word).answers(test.quantifier) in (True, None)  # None: expected to be undecided


def test_names_are_unique() -> None:
    stems = [Path(path).stem for path in PATHS if not path.startswith(("isa", "generic"))]
    assert len(stems) == len(set(stems))


# ---- what happens --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "name", "word"), EXPECTED)
def test_the_solver_observes_what_the_file_expects(path: str, name: str, word: str) -> None:
    found = judge(path, name, word, "z3")
    assert meets(found, read(path).quantifier, word), f"{found.observation.value}, expected {word}; {found.reason}"


@pytest.mark.parametrize(("path", "name", "word"), ENUMERATED)
def test_enumeration_observes_what_the_file_expects(path: str, name: str, word: str) -> None:
    found = judge(path, name, word, "enumerate")
    assert meets(found, read(path).quantifier, word), f"{found.observation.value}, expected {word}; {found.reason}"


def test_few_generic_tests_are_left_to_the_solver_alone() -> None:
    enumerated = {path for path, _, _ in ENUMERATED}
    assert [path for path in GENERIC if path not in enumerated] == LARGE


# ---- what the models owe to each other -----------------------------------------------------------------------


@pytest.mark.parametrize("path", GENERIC)
def test_what_sequential_consistency_allows_is_allowed(path: str) -> None:
    """ptx-9.3 is no stronger than sc on any shipped test: never there is never (or no execution at all) here."""
    words = {one.model: one.word for one in read(path).expectations}
    if words["ptx-9.3"] == "never":
        assert words["sc"] in ("never", "vacuous")
    if words["ptx-9.3"] == "always":
        assert words["sc"] == "always"


@pytest.mark.parametrize("axiom", [check.name for check in model("ptx-9.3").axioms])
def test_without_the_axiom_some_test_changes(axiom: str) -> None:
    if axiom in IMPLIED:
        pytest.skip(IMPLIED[axiom])
    if axiom in ASYNCHRONOUS and len(PATHS) == len(GENERIC):
        pytest.skip("this corpus has no tests of asynchronous operations")
    weaker = model("ptx-9.3").without(axiom)
    # Fewer axioms only let more executions through, so `sometimes` stays and need not be asked again.
    cases = [case for case in EXPECTED if case[1] == "ptx-9.3" and case[2] in ("never", "always", "vacuous")]
    assert any(not meets(judge(path, weaker, word, "auto"), read(path).quantifier, word) for path, _, word in cases)


@pytest.mark.parametrize("axiom", sorted(IMPLIED))
def test_an_implied_axiom_changes_nothing(axiom: str) -> None:
    weaker = model("ptx-9.3").without(axiom)
    for path, name, word in EXPECTED:
        if name == "ptx-9.3" and path in GENERIC and word == "never":
            assert judge(path, weaker, word, "auto").observation.value == word, path
