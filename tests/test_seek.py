"""seek: what it finds is there, and what is there it finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from memmodel import api, engine
from memmodel.answer import HANG, Observation
from memmodel.engine import Options
from memmodel.repair.glance import Glance
from memmodel.solve.seek import OUTCOME, Sought
from memmodel.source import Source

SHIPPED = Path(__file__).parent.parent / "litmus"
MODEL = api.load("ptx-9.3")
NAMES = ("async/proxy/A4", "async/honest/H6-wrong-parity", "async/tcgen05/T5-no-fence", "bytes/B10-flag-first")


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
    flagged = glance.flagged(text, "data-race")
    assert flagged is not None and flagged.flag == "data-race" and flagged.finding is not None
    assert glance.at(text.replace("fence.proxy.async.global", "fence.proxy.async.shared::cta")) is None
    assert glance.at("no test") is None
