"""Reports as text, JSON and JUnit, and the comparison with what was expected."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import networkx as nx
import pytest
from helpers.places import ROOT
from helpers.report_samples import (
    early_witness,
    finding,
    hanging,
    litmus_test,
    mp_race,
    mp_witness,
    never,
    report,
    sometimes,
)
from hypothesis import given
from hypothesis import strategies as st

from memmodel.answer import Answer, FinalValues, Observation, Outcomes
from memmodel.batch import Entry
from memmodel.batch import Outcome as Became
from memmodel.cli.results import Results
from memmodel.errors import InputError
from memmodel.litmus.syntax import Quantifier
from memmodel.report.expect import word_for
from memmodel.report.findings import why_unordered
from memmodel.report.graph import shown_edges, transitive_reduction
from memmodel.report.picture.layout import arrange
from memmodel.report.record import states
from memmodel.report.report import Status
from memmodel.report.text import outcomes_lines

DOCS = ROOT / "docs"
UNDECIDED = Answer(Observation.UNDECIDED, "z3", reason="the budget ran out")


# ---- text ----------------------------------------------------------------------------------------------------


def test_a_reachable_outcome_is_told_with_its_execution_and_races():
    text = report(sometimes(), "never").explain()
    assert text.splitlines() == [
        r"MP under ptx-9.4: sometimes; exists (P1:r0 == 1 /\ P1:r1 == 0) holds; expected never",
        "  data race between a: W.weak x = 1 (P0, line 5) and d: R.weak x = 0 (P1, line 6)",
        "    a and d are weak, and nothing synchronizes in between",
        "  an execution that shows it:",
        "    at the start: x = 0, y = 0",
        "    P0  a: W.weak x = 1                      line 5",
        "        b: W.release.gpu y = 1               line 6",
        "    P1  c: R.acquire.gpu y = 1  from b       line 5",
        "        d: R.weak x = 0         from init x  line 6",
        "    fr: d -> a",
        "    sync: b -> c",
        "    at the end: P1:r0 = 1, P1:r1 = 0; x = 1, y = 1",
    ]


def test_an_unreachable_outcome_is_told_with_the_axioms_that_forbid_it():
    assert report(never(), "never").explain().splitlines() == [
        r"MP under ptx-9.4: never; exists (P1:r0 == 1 /\ P1:r1 == 0) does not hold; as expected",
        "  forbidden by Causality",
    ]


def test_a_broken_forall_shows_the_execution_that_breaks_it():
    broken = replace(sometimes(), witness=None, counter=mp_witness())
    text = report(broken, quantifier=Quantifier.FORALL).explain()
    assert "an execution that breaks it:" in text
    assert "does not hold" in text


def test_a_reason_is_said_and_what_was_not_searched():
    text = report(replace(UNDECIDED, unsearched="the list of findings is not complete")).explain().splitlines()
    assert text[1:] == ["  the budget ran out", "  there may be other findings: the list of findings is not complete"]
    assert len(report(replace(UNDECIDED, unsearched=UNDECIDED.reason)).explain().splitlines()) == 2


def test_many_races_are_counted():
    text = report(replace(sometimes(), findings=(mp_race(),) * 11)).explain()
    assert text.count("data race between") == 8
    assert "and 3 more: data race" in text


def test_outcomes_mark_the_states_that_satisfy_the_condition():
    found = Outcomes(
        (FinalValues((("P1:r0", 1), ("x", 0)), True), FinalValues((("P1:r0", 0), ("x", 0)), False)),
        "enumerate",
        complete=False,
    )
    lines = outcomes_lines(found)
    assert lines[0] == "* P1:r0 = 1  x = 0"
    assert lines[1] == "  P1:r0 = 0  x = 0"
    assert lines[2] == "2 final states, 1 satisfying the condition (marked *)"
    assert "there may be more" in lines[3]
    assert json.loads(json.dumps(states(found)))["states"][0] == {"values": {"P1:r0": 1, "x": 0}, "satisfies": True}


# ---- expectations --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer, expected, status",
    [
        (sometimes(), "sometimes", Status.AS_EXPECTED),
        (sometimes(), "never", Status.DIFFERS),
        (sometimes(), "race", Status.AS_EXPECTED),
        (never(), "race", Status.DIFFERS),
        (never(), "fails", Status.AS_EXPECTED),
        (never(), "holds", Status.DIFFERS),
        (never(), None, Status.NO_EXPECTATION),
        (never(findings=(hanging("P0 waits for ever"),)), "hang", Status.AS_EXPECTED),
        (never(), "hang", Status.DIFFERS),
        (sometimes(), "sometimes+race", Status.AS_EXPECTED),
        (sometimes(), "never+race", Status.DIFFERS),
        (sometimes(), "sometimes+hazard", Status.DIFFERS),
        (never(findings=(finding("undefined-mbarrier", "d"),)), "never+undefined", Status.AS_EXPECTED),
        (never(findings=(finding("mixed-size-race", "a", "d"),)), "race", Status.AS_EXPECTED),
        (never(findings=(finding("tensor-memory-hazard", "a", "d"),)), "hazard", Status.AS_EXPECTED),
        (UNDECIDED, "never", Status.UNDECIDED),
        (UNDECIDED, "holds", Status.UNDECIDED),
        (UNDECIDED, None, Status.UNDECIDED),
        (UNDECIDED, "undecided", Status.AS_EXPECTED),
    ],
)
def test_status_compares_the_answer_with_the_expectation(answer, expected, status):
    assert report(answer, expected).status is status


def test_the_expected_word_is_that_of_the_model():
    test = litmus_test("ptx-9.4:sometimes", "sc:never")
    assert word_for(test.expectations, "ptx-9.4") == "sometimes"
    assert word_for(test.expectations, "sc") == "never"
    assert word_for(test.expectations, "ptx-6.0") is None


def test_a_word_that_nobody_can_check_is_an_error_with_a_suggestion():
    with pytest.raises(InputError) as error:
        word_for(litmus_test("ptx-9.4:somtimes").expectations, "ptx-9.4")
    assert "did you mean `sometimes`?" in error.value.render()


# ---- JSON ----------------------------------------------------------------------------------------------------


def test_the_record_has_the_documented_keys_in_the_documented_order():
    lines = (DOCS / "json.md").read_text().partition("\n## ")[0].splitlines()
    listed = [line.split("`")[1] for line in lines if line.startswith("| `")]
    keys = list(report(sometimes()).to_json())
    assert keys == listed


def test_the_record_is_json_and_keeps_the_witness():
    record = json.loads(json.dumps(report(sometimes(), "sometimes").to_json()))
    assert record["observation"] == "sometimes"
    assert record["time_ms"] == {"parse": 1.5, "encode": 2.25, "solve": 3.125}
    assert record["witness"]["edges"]["rf"] == [["b", "c"], ["init x", "d"]]
    assert record["witness"]["registers"] == {"P1:r0": 1, "P1:r1": 0}
    assert record["races"][0]["second"]["line"] == 6


# ---- JUnit ---------------------------------------------------------------------------------------------------


def test_junit_is_xml_whatever_the_messages_contain(tmp_path):
    entries = [
        Entry("a.litmus", "sc", Became.AS_EXPECTED, report(never(), "never")),
        Entry("b.litmus", "sc", Became.DIFFERS, report(sometimes(), "never")),
        Entry("c.litmus", "sc", Became.NO_EXPECTATION, report(never())),
        Entry('<&"\x00\ud800>.litmus', None, Became.BAD, message="broken \x1b[1m <tag> ]]> \ud800\nsecond line"),
        Entry("d.litmus", "sc", Became.UNDECIDED, report(UNDECIDED, "never")),
    ]
    written = tmp_path / "o.xml"
    with Results(junit_out=str(written)) as results:
        for entry in entries:
            results.entry(entry)
    root = ElementTree.parse(written).getroot()
    assert {key: root.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5",
        "failures": "1",
        "errors": "2",
        "skipped": "1",
    }
    assert [[child.tag for child in case] for case in root] == [[], ["failure"], ["skipped"], ["error"], ["error"]]


# ---- edges worth showing -------------------------------------------------------------------------------------

pairs = st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda pair: pair[0] < pair[1]))


@given(pairs)
def test_transitive_reduction_is_that_of_networkx(edges):
    assert transitive_reduction(edges) == set(nx.transitive_reduction(nx.DiGraph(list(edges))).edges)


def test_a_cyclic_relation_is_shown_whole():
    edges = {(0, 1), (1, 0), (1, 2)}
    assert transitive_reduction(edges) == edges


def test_edges_that_a_reader_infers_are_not_shown():
    shown = {(edge.name, edge.first, edge.second) for edge in shown_edges(mp_witness())}
    assert shown == {("rf", 3, 4), ("rf", 0, 5), ("fr", 5, 2), ("sync", 3, 4)}


def test_from_reads_go_to_the_first_later_write_only():
    witness = replace(mp_witness(), edges={"fr": ((5, 2), (5, 3)), "co": ((2, 3),)})
    assert [(edge.first, edge.second) for edge in shown_edges(witness) if edge.name == "fr"] == [(5, 2)]


# ---- what flags found ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "first, second, why",
    [
        ("R WEAK", "W WEAK ASYNC ASY", "d is asynchronous: a has to wait for its end"),
        ("R WEAK SUR", "W WEAK", "a goes through the surface proxy and d through the generic proxy"),
        ("W ASYNC ASY", "W ASYNC ASY", "a and d are asynchronous"),
        (
            "R TMEM TLD ASYNC",
            "W TMEM MMA ASYNC",
            "a is over at a tcgen05.wait::ld, d when a wait sees its tcgen05.commit",
        ),
        ("W REL CTA", "R ACQ GPU", "the .cta of a does not reach P1"),
        ("W REL GPU", "R ACQ GPU", ""),
        ("MBAR", "R WEAK", ""),
    ],
)
def test_what_keeps_two_accesses_from_being_ordered_is_told_where_it_shows(first, second, why):
    race = mp_race()
    ends = [
        replace(event, tags=frozenset(tags.split()))
        for event, tags in zip((race.first, race.second), (first, second), strict=True)
    ]
    told = why_unordered(replace(race, first=ends[0], second=ends[1]))
    assert told.startswith(why)
    assert told or not why
    assert why_unordered(replace(race, flag="my-own-flag", first=ends[0], second=ends[1])) == ""


def test_a_mixed_size_race_is_told_as_what_it_is():
    assert "overlap only in part" in why_unordered(finding("mixed-size-race", "a", "d"))


def test_findings_are_told_by_kind_and_undefined_behaviour_with_its_rule():
    waits = "P0 waits for ever: bar phase 0: 1 of 2 arrivals"
    found = (finding("tensor-memory-hazard", "a", "d"), finding("undefined-mbarrier", "d"), hanging(waits))
    rules = (("undefined-mbarrier", "An operation breaks the counts."),)
    told = replace(report(never(findings=found)), rules=rules)
    lines = told.explain().splitlines()
    assert f"  hang: {waits}" in lines
    assert any(line.startswith("  tensor-memory hazard between a: ") for line in lines)
    assert "  undefined behaviour at d: R.weak x = 0 (P1, line 6)" in lines
    assert "    rule: An operation breaks the counts. [undefined-mbarrier]" in lines
    record = told.to_json()
    assert [len(record[key]) for key in ("races", "hazards", "undefined", "hang")] == [0, 1, 1, 1]
    assert record["undefined"][0]["rule"] == "An operation breaks the counts."
    assert record["flags"] == ["tensor-memory-hazard", "undefined-mbarrier", "hang"]


def test_a_finding_of_another_execution_is_told_with_the_labels_and_values_of_that_one():
    race = finding("data-race", "b", "c", witness=early_witness())
    told = report(replace(sometimes(), findings=(race,)))
    assert told.explain().splitlines()[1:] == [
        "  data race between b: R.weak x = 0 (P1, line 6) and c: W.weak x = 1 (P0, line 5)",
        "    b and c are weak, and nothing synchronizes in between",
        "    an execution with it:",
        "      at the start: x = 0, y = 0",
        "      P1  a: R.acquire.gpu y = 0  from init y  line 5",
        "          b: R.weak x = 0         from init x  line 6",
        "      P0  c: W.weak x = 1                      line 5",
        "          d: W.release.gpu y = 1               line 6",
        "      fr: a -> d, b -> c",
        "      at the end: P1:r0 = 0, P1:r1 = 0; x = 1, y = 1",
        *report(replace(sometimes(), findings=())).explain().splitlines()[1:],
    ]
    (record,) = told.to_json()["races"]
    assert record["first"] in record["witness"]["events"] and record["second"] in record["witness"]["events"]
    assert record["witness"] != told.to_json()["witness"]


def test_of_a_flag_that_two_executions_raise_one_is_printed_and_the_other_told_without_labels():
    found = (mp_race(), finding("data-race", "b", "d", witness=early_witness()))
    lines = report(never(findings=found)).explain().splitlines()
    assert sum("an execution with it:" in line for line in lines) == 1
    assert "  data race between R.weak x = 0 (P1, line 6) and W.release.gpu y = 1 (P0, line 6)" in lines
    assert "    the first is weak, and nothing synchronizes in between" in lines


def test_a_hang_is_told_with_an_execution_of_its_own():
    waits = "P1 waits for ever: flag stays 0"
    told = report(never(findings=(hanging(waits),)))
    assert told.explain().splitlines()[2:] == [
        f"  hang: {waits}",
        "    an execution with it:",
        "      at the start: x = 0, y = 0",
        "      P0  a: W.weak x = 1           line 5",
        "          b: W.release.gpu y = 1    line 6",
        f"      {waits}",
        "      at the end: x = 1, y = 1",
    ]
    record = told.to_json()
    assert record["hang"] == [waits] and record["hanging"]["waits"] == [waits]
    assert [event["label"] for event in record["hanging"]["events"]] == ["init x", "init y", "a", "b"]


def test_of_a_program_with_a_mixed_size_race_no_outcome_is_shown():
    race = finding("mixed-size-race", "a", "d", witness=early_witness())
    told = report(replace(sometimes(), observation=Observation.UNDECIDED, findings=(race,)))
    assert told.execution is None
    assert "an execution that shows it" not in told.explain()
    assert "an execution with it" in told.explain()


def test_addresses_are_told_in_hexadecimal():
    far = replace(mp_witness(), registers={("P1", "a"): 0x10_4000_0400, ("P1", "n"): 4096})
    assert "P1:a = 0x1040000400, P1:n = 4096" in report(replace(sometimes(), witness=far)).explain()


def test_asynchronous_events_stand_apart_from_what_issued_them():
    events = list(mp_witness().events)
    events[3] = replace(events[3], tags=frozenset({"W", "ASYNC"}))
    moved = replace(mp_witness(), events=(*events[:2], events[3], events[2], *events[4:]), edges={"iss": ((2, 3),)})
    assert any(
        "b:   W.release.gpu y = 1" in line
        for line in report(replace(sometimes(), witness=moved)).explain().splitlines()
    )
    layout = arrange(moved, shown_edges(moved), 60)
    issue, part = layout.boxes[2], layout.boxes[3]
    assert part.dashed and not issue.dashed
    assert part.x > issue.right and part.middle >= issue.middle
    assert {edge.name for edge in shown_edges(moved)} == {"iss"}
