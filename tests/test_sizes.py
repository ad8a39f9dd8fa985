"""Accesses of different sizes: found, reported when they race, and never given a verdict."""

from __future__ import annotations

import pytest

from memmodel import check
from memmodel.answer import Observation
from memmodel.errors import InputError


def text(store: str, load: str, declaration: str = ".global .align 8 .u32 x[2];", between: str = "") -> str:
    return f"""PTX sizes
"A store and a load of x."
{declaration}
thread P0 @ cta 0 {{
    {store}
    {between}
}}
thread P1 @ cta 0 {{
    {between}
    {load}
}}
exists (P1:%r0 == 1)
"""


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
@pytest.mark.parametrize("store", ["st.global.u64 [x], 1;", "st.global.u16 [x], 1;", "st.global.u32 [x+2], 1;"])
def test_a_race_between_sizes_switches_the_axioms_off(store: str, engine: str) -> None:
    report = check(text(store, "ld.global.u32 %r0, [x];"), engine=engine)
    assert report.answer.observation is Observation.UNDECIDED
    assert report.answer.flags == ("mixed-size-race",)
    assert "mixed-size" in report.answer.reason


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_ordered_accesses_of_different_sizes_do_not_race_but_have_no_modelled_value(engine: str) -> None:
    report = check(text("st.global.u64 [x], 1;", "ld.global.u32 %r0, [x];", between="bar.sync 0;"), engine=engine)
    assert report.answer.observation is Observation.UNDECIDED
    assert not report.answer.races
    assert "not modelled" in report.answer.reason


def test_disjoint_accesses_of_different_sizes_are_no_mixed_race() -> None:
    declaration = ".global .align 8 .u32 x[4];"
    source = text("st.global.u64 [x+8], 1;", "ld.global.u32 %r0, [x];", declaration, "ld.global.u32 %r9, [x+8];")
    report = check(source, engine="z3")
    assert {race.flag for race in report.answer.races} == {"mixed-size-race"}
    assert all("x" in (race.first.location or "") for race in report.answer.races)


def test_one_size_other_than_the_declared_one_is_refused_with_the_repair() -> None:
    with pytest.raises(InputError, match="elements of 8 bytes"):
        check(text("st.global.u64 [x], 1;", "ld.global.u64 %r0, [x];"))
