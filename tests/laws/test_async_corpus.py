"""The asynchronous corpus: every file says what happens under each model that it names, and every rule is noticed.

In: litmus/async. Settled here: which rows of the verdict table have files, which check of the model each of them shows
to be needed, and which correct programs the model may still report something about.
"""

from __future__ import annotations

import re

import pytest
from helpers.corpus import DEFAULT, PATHS, Case, as_expected, cases, check_case, judged, questions, told, word
from helpers.examples import share

from memmodel import api
from memmodel.base.resources import axioms_dir
from memmodel.engine import Options

FILES = [path for path in PATHS if path.startswith("async/")]

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
    "No-Thin-Air": "pipelines/scheduler-branch-first-value",
    "Causality": "mbarrier/G3",
    "Mbarrier-Order": "mbarrier/order",
    "Tensor-Memory": "tcgen05/T13",
    "Tensor-Coherence": "tcgen05/T1",
    "data-race": "mbarrier/G1-race",
    "tensor-memory-hazard": "tcgen05/T13-register",
    "undefined-instruction": "undefined/src-size-beyond",
    "undefined-mbarrier": "regressions/no-complete-completes",
    "undefined-before-init": "mbarrier/init-unordered",
    "undefined-mbarrier-inval": "undefined/inval-against-wait",
    "undefined-mbarrier-state": "undefined/state-of-long-ago",
    "undefined-unobserved-phase": "undefined/phase-unobserved",
    "undefined-mbarrier-access": "mbarrier/object-overwritten",
    "undefined-barrier": "undefined/barrier-two-counts",
    "undefined-cluster-barrier": "undefined/cluster-arrived-twice",
    "undefined-unfinished-copy": "proxy/A12-undefined",
    "undefined-tensor-map": "undefined/tensor-map-not-acquired",
    "Mbarrier-Report": "fabric/put-get",
    "undefined-fabric-submit": "fabric/put-submit-late",
    "undefined-fabric-exit": "fabric/put-not-awaited",
    "undefined-fabric-layout": "fabric/put-layout-v0",
    "undefined-cancel": "undefined/cancel-after-refusal",
    "undefined-after-exit": "undefined/peer-may-have-exited",
    "undefined-tensor-memory": "tcgen05/alloc-early-free",
    "undefined-tensor-memory-freed": "undefined/tensor-memory-freed-twice",
    "undefined-tensor-memory-kept": "undefined/tensor-memory-kept",
    "undefined-tensor-memory-permit": "undefined/permit-given-up",
    "undefined-cta-groups": "undefined/two-cta-groups",
}
"""Check of the model -> a file that is no longer as expected without it."""

GENERIC = (
    "Fence-SC",
    "SC-per-Location",
    "Atomicity",
    "Atomicity-of-Any-Size",
    "Single-Copy-Atomicity",
    "Barrier-Order",
    "mixed-size-race",
    "undefined-address",
)
"""Checks that speak of nothing asynchronous; the generic corpus shows that they are needed."""

OF_KERNELS = ("undefined-before-start",)
"""Checks about CTAs that start, which all run in a test (kernel/order/test_cta_lives.py)."""

READINGS_OF_KERNELS = ("D19-together", "D20-all")
"""Readings about the lanes of a warp (kernel/machine/test_engines.py, kernel/machine/test_barriers.py)."""

REPORTED = {
    "readings/D10-fence": "the load runs after a test that failed, too",
    "readings/D10-one-shot": "the load runs after a test that failed, too",
}
"""Files whose outcome never happens although the model reports something about them, and why."""


@pytest.mark.parametrize("case", cases(share(FILES, 12)), ids=str)
def test_what_happens_is_what_the_file_expects(case: Case) -> None:
    """On both engines; and what is right is not reported, unless the file asks for a finding as well."""
    check_case(case)
    asks = any(one.test.finding for one in questions(case.path))
    if case.model == DEFAULT and case.word == "never" and not asks:
        flags = judged(case.path, case.number, DEFAULT, "z3").flags
        assert bool(flags) is (case.path.removeprefix("async/") in REPORTED), flags


def test_every_file_that_is_reported_although_it_is_right_exists() -> None:
    assert [name for name in REPORTED if word(f"async/{name}") != "never"] == []


@pytest.mark.parametrize("row", ROWS)
def test_every_row_has_a_file_and_every_forbidden_one_a_mutation_that_is_not(row: str) -> None:
    variants = {path: word(path) for path in FILES if re.search(rf"/{row}(-|$)", path)}
    assert variants
    if any(path.endswith(f"/{row}") and expected == "never" for path, expected in variants.items()):
        assert any(expected != "never" for expected in variants.values()), sorted(variants)


def test_every_check_of_the_model_is_listed() -> None:
    assert {check.name for check in api.load(DEFAULT).checks} == {*NEEDED, *GENERIC, *OF_KERNELS}


@pytest.mark.share(2)
@pytest.mark.parametrize("check", NEEDED)
def test_every_check_is_needed(check: str) -> None:
    (case,) = (one for one in cases([f"async/{NEEDED[check]}"]) if one.model == DEFAULT)
    found = judged(case.path, case.number, DEFAULT, "z3")
    without = api.judge(questions(case.path)[case.number], api.load(DEFAULT).without(check), Options("z3"))
    assert as_expected(case, found), told(found)
    assert not as_expected(case, without), told(without)


@pytest.mark.parametrize("reading", sorted(path.stem for path in (axioms_dir() / "readings").glob("*.cat")))
def test_every_reading_changes_a_file(reading: str) -> None:
    model = f"readings/{reading}"
    named = [path for path in FILES if word(path, model)]
    assert any(word(path, model) != word(path) for path in named) is (reading not in READINGS_OF_KERNELS)
