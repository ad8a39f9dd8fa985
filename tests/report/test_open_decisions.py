"""What a plain check says of the decisions that its answer depends on, without asking a reading."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.places import ROOT

from memmodel import api
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cat.evaluate.readings import readings_graph
from memmodel.report.open_decisions import OpenDecisions, decision_lines, open_decisions

ASYNC = ROOT / "litmus" / "async"


def decided(name: str, model: str = DEFAULT_MODEL) -> OpenDecisions:
    return open_decisions(api.check(ASYNC / f"{name}.litmus", model))


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("readings/D1-multicast", ("D1 issuer", "D5 fence")),  # a multicast write read by an MMA of the other CTA
        ("readings/R1", ("D2 accessor",)),  # the fence stands in another thread than the generic access
        ("readings/R6-consumer-fence", ("D2 accessor",)),
        ("readings/R4", ("D6 issuer",)),  # the signal of a multicast, waited for with .acquire.cta
        ("readings/D10-one-shot", ("D10 dependent",)),
        ("readings/D15", ("D15 fence",)),  # ~exists undefined: no axiom forbids anything
        ("readings/R6-both-fences", ()),
        ("readings/D15-fenced", ()),
        ("readings/D10-loop", ()),
    ],
)
def test_an_answer_that_is_never_seen_names_the_readings_that_have_it(name, other):
    assert decided(name) == OpenDecisions(other=other)


@pytest.mark.parametrize(
    ("name", "possible"),
    [("readings/D3", ("D3 implicit",)), ("readings/R5", ("D8 mma-cp",)), ("readings/R1-no-fence", ())],
)
def test_an_answer_that_an_execution_shows_names_the_readings_that_forbid_it(name, possible):
    assert decided(name) == OpenDecisions(possible=possible)


def test_a_forall_that_holds_depends_on_a_reading_that_breaks_it():
    text = (ASYNC / "readings" / "R4.litmus").read_text().replace("~exists (P1:r0 == 0)", "forall (P1:r0 == 1)")
    assert "forall" in text
    report = api.check(text)
    assert report.holds
    assert decision_lines(report) == ["depends on D6: broken under D6 issuer; see --model readings/D6-issuer"]
    assert api.check(text, "readings/D6-issuer").holds is False


def test_another_model_has_no_decisions():
    assert decided("readings/R1", "readings/D2-accessor") == OpenDecisions()
    assert open_decisions(api.check(ROOT / "litmus" / "generic" / "H2.litmus", "ptx-7.5")) == OpenDecisions()


@pytest.mark.share(2)
@pytest.mark.parametrize("path", sorted((ASYNC / "readings").glob("*.litmus")), ids=lambda path: path.stem)
def test_readings_that_are_named_do_give_another_answer(path):
    report = api.check(path)
    for name in open_decisions(report).other:
        asked = api.check(path, f"readings/{name.replace(' ', '-')}")
        assert asked.holds is not report.holds


def test_the_line_and_the_record_name_them():
    report = api.check(ASYNC / "readings" / "R1.litmus")
    assert "  depends on D2: allowed under D2 accessor; see --readings" in report.explain().splitlines()
    record = report.to_json()
    assert (record["depends_on"], record["may_depend_on"]) == (["D2 accessor"], [])
    assert "depends on" not in replace(report, subject=None).explain()


def test_the_graph_has_the_checks_of_every_reading():
    graph = readings_graph()
    files = tuple(f"readings/{name.replace(' ', '-')}" for name in graph.readings)
    assert (DEFAULT_MODEL, *files) == api.reading_models()
    names = [check.name for check in api.load(DEFAULT_MODEL).checks]
    assert all([check.name for check in checks] == names for checks in graph.checks.values())


def test_a_graph_on_disk_is_read_again_and_made_anew_where_it_is_spoilt(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMMODEL_CACHE", str(tmp_path))
    readings_graph.cache_clear()
    first = readings_graph()
    (path,) = (path for path in tmp_path.glob("*.model") if b'"D2 accessor"' in path.read_bytes())
    kept = path.read_bytes()
    readings_graph.cache_clear()
    assert readings_graph().checks == first.checks
    path.write_bytes(kept[:-200])
    readings_graph.cache_clear()
    assert readings_graph().checks == first.checks
    readings_graph.cache_clear()
