"""A question may ask for a finding instead of a final state: `exists hang`, `~exists race`."""

from __future__ import annotations

import pytest

from memmodel import check
from memmodel.answer import Observation
from memmodel.errors import InputError
from memmodel.litmus import parse_litmus, print_litmus
from memmodel.source import Source


def text(question: str, store: str = "st.weak x, 1", variable: str = "x") -> str:
    return f"""PTX findings
"Two threads and a question."
{{
{variable} = 0;
}}
 P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;
 {store} | ld.relaxed.cta r0, {variable} ;
{question}
"""


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
@pytest.mark.parametrize(
    ("question", "store", "observation", "holds"),
    [
        ("exists race", "st.weak x, 1", Observation.SOMETIMES, True),
        ("~exists (race)", "st.weak x, 1", Observation.SOMETIMES, False),
        ("~exists race", "st.relaxed.cta x, 1", Observation.NEVER, True),
        ("exists hang", "bar.cta.sync 0", Observation.SOMETIMES, True),
        ("exists undefined", "st.weak x, 1", Observation.NEVER, False),
    ],
)
def test_a_finding_is_asked_for(question: str, store: str, observation: Observation, holds: bool, engine: str) -> None:
    report = check(text(question, store), engine=engine)
    assert report.answer.observation is observation
    assert report.holds is holds


def test_a_model_without_the_rule_cannot_tell() -> None:
    report = check(text("exists race"), "sc")
    assert report.answer.observation is Observation.UNDECIDED
    assert report.answer.reason == "sc has no rule for this finding"


def test_a_location_may_have_the_name_of_a_finding() -> None:
    test = parse_litmus(Source("t", text("exists (race == 1)", "st.weak race, 1", "race")))
    assert test.finding is None


@pytest.mark.parametrize("question", ["exists hang", "~exists (race)"])
def test_printing_keeps_it(question: str) -> None:
    test = parse_litmus(Source("t", text(question)))
    assert parse_litmus(Source("t", print_litmus(test))) == test


def test_forall_asks_nothing_of_a_finding() -> None:
    with pytest.raises(InputError, match="asks nothing"):
        parse_litmus(Source("t", text("forall race")))
