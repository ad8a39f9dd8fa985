"""The shipped corpus: every file says what it is for and what to expect, both engines agree, every axiom is needed.

The files below litmus/async are read here as all others are, and judged in test_async_corpus. Both engines judge a
share of the files each day, and all at night; `memmodel suite` judges all with the engine that it chooses.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.corpus import DEFAULT, PATHS, Case, as_expected, cases, check_case, questions, word
from helpers.examples import share

from memmodel import api
from memmodel.answer import Answer, Observation
from memmodel.cat.syntax import Model
from memmodel.engine import Options

GENERIC = [path for path in PATHS if not path.startswith("async/")]

ROWS = ("bytes/", "distinguish/")
"""Where the rows of the verdict table are that need no generic model beside the default one."""

LARGE = (
    "bytes/B11",
    "bytes/B13",
    "bytes/B3",
    "control/lock+cas-exch",
    "control/loop+atomic",
    "readings/IRIW+all-atomic",
)
"""What the names of the tests begin with that only the solver judges. Anything that joins them should have a reason."""

LARGE_SC = ("control/ticket-lock",)
"""The same, under sc alone."""

MODELS = [DEFAULT, "ptx-7.5", "ptx-6.0", "sc"]

NEEDED = {
    "Coherence": "shapes/2+2W+sc.gpu@two-ctas",
    "Coherence-Order": "readings/coherence+final-value",
    "Atomicity": "shapes/RMW+add+rlx-store@two-ctas",
    "Atomicity-of-Any-Size": "bytes/atomics-of-two-sizes",
    "Single-Copy-Atomicity": "bytes/single-copy",
    "No-Thin-Air": "isa/LB+deps",
    "SC-per-Location": "readings/sc-per-location+edges",
    "Causality": "bytes/B1",
    "Barrier-Order": "bytes/barrier-order",
    "mixed-size-race": "bytes/B5-race",
    "undefined-address": "bytes/B8-undefined",
}
"""Check of the model -> a file that is no longer as expected without it; test_async_corpus has the others."""

IMPLIED = {"Fence-SC": "docs/axioms.md shows that the other axioms imply it"}
"""Axioms that decide no test alone, and why they are kept."""


# ---- what a file says ------------------------------------------------------------------------------------------------


def test_the_corpus_is_there() -> None:
    assert len(GENERIC) >= 360
    folders = {Path(path).parts[0] for path in GENERIC}
    assert folders == {"isa", "generic", "shapes", "proxy", "control", "readings", "bytes", "distinguish"}


def test_a_file_has_its_name_a_sentence_and_an_expectation() -> None:
    for path in PATHS:
        for steps in questions(path):
            test = steps.test
            assert test.name == Path(path).name
            sentence = " ".join(test.description)
            assert len(sentence.split()) >= 5 and sentence.endswith("."), path
            assert not test.warnings, path
            named = {one.model for one in test.expectations}
            assert DEFAULT in named, path
            if path in GENERIC and not path.startswith(ROWS):
                assert {DEFAULT, "sc"} <= named <= set(MODELS), path


def test_the_question_is_answered_with_yes() -> None:
    """A generic file asks so that its question holds under ptx-9.4: a reader sees the verdict without running it."""
    for path in GENERIC:
        if not path.startswith(ROWS):
            expected = (word(path) or "").partition("+")[0]
            quantifier = questions(path)[0].test.quantifier
            # None: expected to be undecided.
            assert Observation(expected).answers(quantifier) in (True, None), path


def test_names_are_unique() -> None:
    stems = [Path(path).name for path in PATHS if not path.startswith(("isa/", "generic/"))]
    assert len(stems) == len(set(stems))


# ---- what happens ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", cases(share(GENERIC, 10)), ids=str)
def test_both_engines_observe_what_the_file_expects(case: Case) -> None:
    large = LARGE + LARGE_SC if case.model == "sc" else LARGE
    assert check_case(case) is not case.path.startswith(large)


# ---- what the models owe to each other -------------------------------------------------------------------------------


def test_what_sequential_consistency_allows_is_allowed() -> None:
    """ptx-9.4 is no stronger than sc on any shipped test: never there is never (or no execution at all) here."""
    for path in GENERIC:
        if word(path, "sc") and word(path) == "never":
            assert word(path, "sc") in ("never", "vacuous"), path
        if word(path, "sc") and word(path) == "always":
            assert word(path, "sc") == "always", path


def without(check: str, case: Case) -> Answer:
    """The answer of the default model less one check."""
    weaker: Model = api.load(DEFAULT).without(check)
    return api.judge(questions(case.path)[case.number], weaker, Options(), findings=False)


@pytest.mark.parametrize("check", NEEDED)
def test_without_the_check_some_test_changes(check: str) -> None:
    of_default = [one for one in cases([NEEDED[check]]) if one.model == DEFAULT]
    assert not all(as_expected(case, without(check, case)) for case in of_default)


@pytest.mark.parametrize("axiom", IMPLIED)
def test_an_implied_axiom_changes_nothing(axiom: str) -> None:
    concerned = 0
    for case in cases(GENERIC):
        steps = questions(case.path)[case.number]
        about = ".sc" in steps.test.source.text and steps.test.finding is None
        if about and case.model == DEFAULT and case.word == "never":
            concerned += 1
            assert as_expected(case, without(axiom, case)), case
    assert concerned >= 20
