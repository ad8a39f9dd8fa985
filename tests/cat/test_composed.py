"""Several readings at once, and the shipped model that compilers rely on."""

from __future__ import annotations

from itertools import combinations

import pytest
from helpers.places import ROOT

import memmodel
from memmodel.cat import load_model
from memmodel.cat.composed import composed, readings_of
from memmodel.cat.decisions import decisions
from memmodel.errors import InputError

PLAIN = "ptx-9.4"
RELIED = "as-compilers-rely"
BOTH = f"{PLAIN}+D3-implicit+D4ab-no-fences"
ALL_RELIED = f"{BOTH}+D18-read+D24-ordered"
GEMM = ROOT / "docs" / "examples" / "kernels" / "gemm_sm100"
NAMES = {f"{decision.number}-{side.name}": side for decision in decisions() for side in decision.readings}


@pytest.mark.share(3)
@pytest.mark.parametrize("name", sorted(NAMES))
def test_one_reading_by_either_name_is_the_same_model(name: str) -> None:
    alone, added = load_model(f"readings/{name}"), load_model(f"{PLAIN}+{name}")
    assert [side for _, side in readings_of(added)] == [side for _, side in readings_of(alone)] == [NAMES[name]]
    assert len(alone.definitions) == len(added.definitions)


def test_what_compilers_rely_on_is_a_list_of_readings() -> None:
    relied, joined = load_model(RELIED), load_model(ALL_RELIED)
    assert [f"{decision.number} {side.name}" for decision, side in readings_of(relied)] == [
        "D3 implicit", "D4ab no-fences", "D18 read", "D24 ordered",
    ]  # fmt: skip
    assert readings_of(relied) == readings_of(joined)
    assert not readings_of(load_model(PLAIN))


@pytest.mark.parametrize("test", ["R1", "R2", "R3", "R4", "D18", "D24"])
def test_both_names_answer_alike(test: str) -> None:
    path = ROOT / "litmus" / "async" / "readings" / f"{test}.litmus"
    assert memmodel.check(path, RELIED).answer.observation is memmodel.check(path, ALL_RELIED).answer.observation


def test_every_pair_of_readings_is_a_model_or_is_refused() -> None:
    refused = set()
    for first, second in combinations(sorted(NAMES), 2):
        try:
            composed(f"{PLAIN}+{first}+{second}")
        except InputError as error:
            assert "answer one question" in str(error)
            refused.add((first, second))
    assert ("D4a-no-before", "D4ab-no-fences") in refused and ("D2-accessor", "D2-anywhere") in refused
    assert ("D3-implicit", "D4ab-no-fences") not in refused


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (f"{PLAIN}+D3-implict", "did you mean D3-implicit"),
        (f"{PLAIN}+", "no reading"),
        ("ptx-7.5+D3-implicit", "readings are added to ptx-9.4"),
        ("sc+", "readings are added to ptx-9.4"),
    ],
)
def test_what_is_no_reading_is_refused(name: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        load_model(name)
    assert message in error.value.render()


def test_a_verdict_lists_what_its_model_assumes() -> None:
    verdict = memmodel.check_kernel(f"{GEMM}.ptx", f"{GEMM}.launch.json", model=BOTH)
    assumed = [what for what in verdict.assumptions if what.startswith("D")]
    assert [what.partition(":")[0] for what in assumed] == ["D3 implicit", "D4ab no-fences"]
    assert {finding.rule for finding in verdict.serious} == {"undefined-mbarrier-inval"}
    relied = memmodel.check_kernel(f"{GEMM}.ptx", f"{GEMM}.launch.json", model=RELIED)
    assert relied.clean and sum(what.startswith("D") for what in relied.assumptions) == 4
