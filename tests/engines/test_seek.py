"""seek: what it finds is there, and what is there it finds."""

from __future__ import annotations

import pytest
from helpers.places import ROOT

from memmodel import api, engine
from memmodel.answer import HANG, Observation
from memmodel.engine import Options
from memmodel.repair.glance import Glance
from memmodel.solve.kept_queries import KeptQueries
from memmodel.solve.seek import OUTCOME, Sought
from memmodel.source import Source

SHIPPED = ROOT / "litmus"
MODEL = api.load("ptx-9.4")
NAMES = ("async/proxy/A4", "async/honest/H6-wrong-parity", "async/tcgen05/T5-no-fence", "bytes/B10-flag-first")


@pytest.mark.share(2)
@pytest.mark.parametrize("name", NAMES)
def test_a_flag_and_an_outcome_are_found_where_they_are(name: str) -> None:
    steps = api.lowered(Source.read(str(SHIPPED / f"{name}.litmus")))
    answer = api.judge(steps, MODEL, Options())
    assert not answer.unsearched
    for flag in (HANG, *(one.name for one in MODEL.flags)):
        seen = engine.seek(steps, MODEL, Options(), Sought((flag,)))
        assert (seen is not None) is (flag in answer.flags), flag
    for satisfied in (True, False) if steps.test.finding is None else ():
        seen = engine.seek(steps, MODEL, Options(), Sought((OUTCOME,), satisfied=satisfied))
        settled = Observation.ALWAYS if satisfied else Observation.NEVER
        assert (seen is not None) is (answer.observation in (Observation.SOMETIMES, settled))


@pytest.mark.parametrize("name", NAMES[:2])
def test_the_state_that_is_not_known_is_found(name: str) -> None:
    source = Source.read(str(SHIPPED / f"{name}.litmus"))
    steps, states = api.lowered(source), frozenset(one.values for one in api.outcomes(source).states)
    assert engine.seek(steps, MODEL, Options(), Sought((OUTCOME,), known=states)) is None
    for state in states:
        assert engine.seek(steps, MODEL, Options(), Sought((OUTCOME,), known=states - {state})) is not None


def test_a_glance_begins_with_what_it_saw_last() -> None:
    text = (SHIPPED / "async/proxy/A4.litmus").read_text()
    glance = Glance("t", (MODEL,), Options(), frozenset(("data-race",)), outcomes=True)
    first = glance.at(text)
    assert first is not None and first.flag is None
    flagged = glance.counterexample_of(text, "data-race")
    assert flagged is not None and flagged.flag == "data-race" and flagged.finding is not None
    assert glance.at(text.replace("fence.proxy.async.global", "fence.proxy.async.shared::cta")) is None
    assert glance.at("no test") is None


@pytest.mark.share(3)
@pytest.mark.parametrize("name", ["async/proxy/A2", "async/honest/H6", "async/tcgen05/T5-no-fence"])
def test_what_was_begun_is_answered_as_if_it_was_not(name: str) -> None:
    """The formulas of a test in which nothing was found are taken once, by that test alone."""
    steps, other = (api.lowered(Source.read(str(SHIPPED / f"{one}.litmus"))) for one in (name, "async/proxy/A4"))
    queries, options = KeptQueries(), Options("z3")
    for sought in (("data-race",), (OUTCOME, "data-race"), ("undefined-instruction",)):
        seen = engine.seek(steps, MODEL, options, Sought(sought), queries)
        query = queries.take(steps, MODEL, options.bound)
        assert (query is None) is (seen is not None) and queries.take(steps, MODEL, options.bound) is None
        if query is not None:
            queries.keep(steps, MODEL, options.bound, query)
            assert queries.take(other, MODEL, options.bound) is None
        for findings in (True, False):
            fresh = engine.answer(steps, MODEL, options, findings=findings)
            again = engine.answer(steps, MODEL, options, findings=findings, queries=queries)
            assert (again.observation, again.axioms, again.flags) == (fresh.observation, fresh.axioms, fresh.flags)
            assert {one.rule for one in again.findings} == {one.rule for one in fresh.findings}
        assert queries.take(steps, MODEL, options.bound) is None
