"""The engines agree on programs that were chosen because together they make conditions matter.

Seven are written by hand, each for a change of a condition that no other test noticed. The others are those of some
thousands of random ones that `benchmarks.chosen` takes: they reach the most conditions of the engines, in either way.
So do the shipped tests that are named in `data/chosen_shipped.txt`, which run on both engines every day.
"""

from __future__ import annotations

import pytest
from helpers.agreement import agree
from helpers.corpus import DEFAULT, cases, check_case
from helpers.places import ROOT

from memmodel.cat import load_model

PROGRAMS = (ROOT / "tests" / "data" / "chosen_programs.txt").read_text(encoding="utf-8").split("// ----\n")
SHIPPED = (ROOT / "tests" / "data" / "chosen_shipped.txt").read_text(encoding="utf-8").splitlines()
"""Names of shipped tests, each with the number of a question."""


@pytest.mark.share(2)
@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_engines_agree_on_a_chosen_program(number: int) -> None:
    agree(PROGRAMS[number], load_model("ptx-9.4"))


@pytest.mark.parametrize("named", SHIPPED)
def test_engines_agree_on_a_chosen_shipped_test(named: str) -> None:
    path, number = named.split()
    case = next(one for one in cases([path]) if (one.number, one.model) == (int(number), DEFAULT))
    assert check_case(case)
