"""Values that support themselves, under a model of the user's that has no axiom against them."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.places import ROOT

from memmodel import api
from memmodel.answer import Observation
from memmodel.cli import main
from memmodel.referee.reasons import CIRCULAR

LITMUS = ROOT / "litmus" / "async"
PAIR = LITMUS / "patterns" / "mma-pair-to-ld.cluster.litmus"
BACK = LITMUS / "patterns" / "ld-then-mma-pair.cluster.litmus"


@pytest.fixture
def model(tmp_path: Path) -> str:
    file = tmp_path / "nothing.cat"
    file.write_text('"nothing"\nempty 0 as nothing\n')
    return str(file)


@pytest.mark.parametrize("file", [PAIR, BACK], ids=["product", "back"])
def test_a_cycle_that_no_numbers_fit_is_an_answer_of_its_own(model: str, file: Path) -> None:
    answers = [report.answer for report in api.check_all(file, model, engine="z3")]
    assert any(one.observation is Observation.UNDECIDED and one.reason == CIRCULAR for one in answers)
    assert all(one.reason != CIRCULAR for one in (r.answer for r in api.check_all(file, engine="z3")))


def test_the_command_says_so(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["check", str(PAIR), "--model", model, "--engine", "z3"])
    assert left.value.code == 3
    assert CIRCULAR in capsys.readouterr().out
