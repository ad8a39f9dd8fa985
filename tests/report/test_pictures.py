"""Pictures of stories: what stands in which lane, phases, iterations, what is marked, what is folded."""

from __future__ import annotations

import re
from functools import cache
from xml.etree import ElementTree

import pytest
from helpers import report_samples
from helpers.places import ROOT

from memmodel import api
from memmodel.answer import Answer, Observation
from memmodel.errors import InputError
from memmodel.report.graph import Edge, merged
from memmodel.report.picture.draw import draw, draw_explained, draw_focus
from memmodel.report.picture.focus import Focus, focus_of
from memmodel.report.picture.lanes import heights_of, iterations, lanes_of
from memmodel.report.picture.svg import DARK, MARKED, STOPS
from memmodel.report.report import Report
from memmodel.why.explanation import explanation

LITMUS = ROOT / "litmus"
SCREEN = (1920, 1080)


@cache
def judged(name: str) -> Report:
    return api.check(LITMUS / f"{name}.litmus")


def focus(name: str) -> Focus:
    found = focus_of(judged(name), None)
    assert found is not None
    return found


def size(svg: str) -> tuple[int, int]:
    found = ElementTree.fromstring(svg)
    return int(found.get("width", "0")), int(found.get("height", "0"))


def words(svg: str) -> set[str]:
    return {element.text or "" for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")}


RING = "async/pipelines/gemm-tcgen05-2x3"
GEMM = "async/pipelines/gemm-tcgen05-3x3"


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "name",
    [
        f"{RING}-loop",
        f"{RING}-producer-parity",
        f"{RING}-few-bytes",
        f"{RING}-relaxed-full",
        "async/pipelines/gemm-wgmma-2x3-many-bytes",
        "async/pipelines/gemm-wgmma-2x3-no-empty-wait",
        GEMM,
        f"{GEMM}-consumer-ahead",
    ],
)
def test_rings_and_main_loops_fit_on_a_screen(name: str) -> None:
    width, height = size(draw_focus(judged(name)))
    assert width <= SCREEN[0] and height <= SCREEN[1]


def test_asynchronous_operations_have_lanes_of_their_own() -> None:
    lanes = lanes_of(focus(f"{RING}-loop").witness)
    assert [(lane.thread, lane.unit) for lane in lanes] == [
        ("TMA", ""), ("TMA", "TMA"), ("MMA", ""), ("MMA", "tensor core"),
    ]  # fmt: skip
    for lane in lanes:
        assert all(("ASYNC" in event.tags) == bool(lane.unit) for event in lane.events)


def test_order_goes_down_or_straight_across() -> None:
    found = focus(f"{RING}-loop")
    rows = heights_of(lanes_of(found.witness), found.edges)
    for edge in found.edges:
        if edge.name in ("iss", "compl", "phase-sync"):
            assert rows[edge.first] <= rows[edge.second], edge
    for first, second in found.po:
        assert rows[first] < rows[second]


def test_rows_are_found_where_order_goes_in_a_circle() -> None:
    witness = report_samples.mp_witness()
    circle = (Edge("sync", 3, 4), Edge("sync", 5, 2), Edge("rf", 4, 3))
    rows = heights_of(lanes_of(witness), circle)
    assert rows[2] < rows[3] <= rows[4] < rows[5]


def test_iterations_of_a_loop_are_grouped() -> None:
    found = focus(f"{RING}-loop")
    rounds: dict[tuple[str, int], set[int | None]] = {}  # of each instruction; the execution is the solver's choice
    for event in found.witness.events:
        if event.span:
            rounds.setdefault((event.thread, event.span.line), set()).add(found.rounds.get(event.uid))
    assert {1, 3} in rounds.values()
    assert {"iteration 1", "iteration 3"} <= words(draw_focus(judged(f"{RING}-loop")))
    assert iterations(judged(GEMM).answer.counter) == {}, "an unrolled loop has none, and a spinning wait makes none"


def test_phases_are_bands_with_what_is_counted_in_them() -> None:
    found = {(one.name, one.number): one for one in focus(f"{RING}-loop").phases}
    text = {event.uid: event.text for event in focus(f"{RING}-loop").witness.events}
    full = found["full", 0]
    assert full.over and full.counted == ("1 arrival", "32 bytes")
    counted = [text[uid] for uid in full.events if uid in text]
    assert "mbarrier.try_wait.parity.shared::cta.b64 full" in counted
    assert all(one.split(" ")[1] == "full" for one in counted)
    assert "not over" not in draw_focus(judged(f"{RING}-loop"))
    stuck = focus("async/pipelines/gemm-wgmma-2x3-many-bytes").phases
    assert {(one.name, one.over, one.counted) for one in stuck} == {
        ("full0", False, ("1 of 1 arrivals", "32 of 48 bytes")),
        ("empty0", False, ("0 of 1 arrivals",)),
    }


def test_one_arrow_where_relations_coincide() -> None:
    edges = merged((Edge("rf", 1, 2), Edge("co", 2, 1), Edge("sync", 1, 2)))
    assert edges == (Edge("rf + sync", 1, 2), Edge("co", 2, 1))
    ends = re.findall(
        r'data-relation="([^"]+)"><(?:path d="[^"]+" stroke="#c2185b"[^>]+>)?<?path d="([^"]+)"', draw(judged(GEMM))
    )
    assert len({path for _, path in ends}) == len(ends) > 10


def test_the_missing_edge_carries_its_reason_and_the_accesses_are_marked() -> None:
    for name, reason in (
        ("async/proxy/A2", "no proxy fence on the path"),
        ("async/proxy/A4", "a proxy fence for another state space or range"),
        ("async/undefined/peer-may-have-exited", "an object or CTA that may be gone"),
        ("async/undefined/tensor-memory-freed-early", "no tcgen05.wait"),
        ("async/readings/R2", "no tcgen05.fence"),
    ):
        found = focus(name)
        missing = [edge for edge in found.edges if edge.name.startswith("stopped: ")]
        assert [edge.name for edge in missing] == [f"stopped: {reason}"]
        assert len(found.marked) == 2
        svg = draw_focus(judged(name))
        assert 'stroke-dasharray="6 4"' in svg and svg.count(f'stroke="{MARKED}" stroke-width="2.6"') == 2
    assert f'stroke="{STOPS}"' in draw_focus(judged("async/proxy/A4")), "the fence that does not do"


def test_the_decision_that_makes_the_difference_is_named() -> None:
    report = judged("async/readings/R1")
    text = re.sub(r"<[^>]*>|\s+", " ", draw_focus(report, depends=api.depends(report)))
    assert "It depends on D2 accessor: Where may a proxy fence stand?" in text
    assert "The outcome can be seen under D2 accessor." in text


def test_a_broken_rule_is_drawn_with_what_came_before() -> None:
    found = focus("async/undefined/state-of-long-ago")
    assert len(found.marked) == 1 and 1 < len(found.witness.events) <= 4
    assert any(line.startswith("Rule: ") for line in found.sentences)


def test_a_hang_shows_who_waits_and_what_was_done_towards_it() -> None:
    found = focus("async/pipelines/gemm-wgmma-2x3-many-bytes")
    thread = {event.uid: event.thread for event in found.witness.events}
    assert sorted(thread[uid] or "" for uid in found.marked) == ["TMA", "WG"] and found.folded > 20
    assert any(
        "line 46: full0 phase 0" in line and "expected bytes that do not match" in line for line in found.sentences
    )


def test_the_cta_of_each_location_is_told() -> None:
    (below,) = focus("async/pipelines/multicast-few-bytes").below  # of one CTA: they mirror each other
    assert re.fullmatch(r"Shared memory of CTA [01]: (full(, s[ab])?|s[ab])\.", below)
    assert focus(f"{RING}-loop").below[0] in {f"Shared memory of CTA 0: empty, full, s{which}." for which in "ab"}


def test_a_picture_for_a_page_has_every_relation_and_hides_what_is_not_of_the_story() -> None:
    report = judged("async/proxy/A2")
    subject = report.subject
    assert subject is not None
    told = explanation(subject.lowered, subject.model, report.answer, subject.options, report.question, {})
    drawing = draw_explained(report, told)
    named = {name: off for name, _, off in drawing.relations}
    assert named["fr"] is False and named["mbarobs"] is True and "po" in named
    drawn = set(re.findall(r'<g data-relation="([^"]+)"', drawing.svg))
    assert {part for name in drawn for part in name.split(" + ")} == set(named)
    assert all(
        ("display" in group) == (relation == "mbarobs")
        for relation, group in re.findall(r'<g data-relation="([^"]+)"([^>]*)>', drawing.svg)
    )


def test_relations_are_added_and_left_out() -> None:
    report = judged("async/proxy/A2")
    for shown in (draw, draw_focus):
        assert "fr" in words(shown(report)) and "fr" not in words(shown(report, hide=("fr", "po")))
        with pytest.raises(InputError, match="no relation `mbarob` is known") as wrong:
            shown(report, show=("mbarob",))
        assert "did you mean mbarobs?" in wrong.value.render()
    assert "phase-sync + mbarobs" in words(draw_focus(report, show=("mbarobs",)))
    crowded = judged(f"{RING}-loop")
    assert "iss" not in words(draw(crowded)) and "iss (41)" in draw(crowded)
    assert "iss" in words(draw(crowded, show=("iss",)))


def test_a_notebook_shows_the_picture() -> None:
    report = judged("async/proxy/A2")
    shown = report._repr_svg_()
    assert (
        shown is not None
        and shown == report.draw().replace(DARK, "")
        and " style=" not in shown
        and "<style" not in shown
    )
    assert size(shown)[0] > 400
    assert report.draw("dot").startswith("digraph") and report.draw(everything=True) != shown
    assert "data race" in report.draw(finding="race").lower() or "stopped: " in report.draw(finding="race")
    assert report_samples.report(Answer(Observation.VACUOUS, "z3", reason="every execution waits"))._repr_svg_() is None


def test_a_forbidden_outcome_is_drawn_as_its_cycle_and_a_race_beside_it_by_itself() -> None:
    report = judged("shapes/MP+acq_rel.gpu+acq_rel.gpu@two-ctas")
    cycle, race = words(draw_focus(report)), words(draw_focus(report, finding="race"))
    assert {"An execution that Causality alone forbids.", "--finding race draws one.", "pattern-sync"} <= cycle
    assert any(line.startswith("Data race between a: W.weak x = 1 (P0, line 6)") for line in race)
    assert "d: ld.relaxed.gpu r0, y" in race and "d: ld.relaxed.gpu r0, y" not in cycle
