"""Pictures: valid, escaped, and drawn so that nothing covers anything that must be read."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from helpers.examples import examples
from helpers.places import ROOT
from helpers.report_samples import early_witness, finding, hanging, mp_witness, never, report, sometimes
from hypothesis import given
from hypothesis import strategies as st

from memmodel.answer import Answer, Observation, ShownEvent, Witness
from memmodel.errors import InputError, TooLarge
from memmodel.ptx.vocabulary import Place
from memmodel.report.graph import Edge, shown_edges
from memmodel.report.picture.draw import draw, format_of
from memmodel.report.picture.layout import CHAR, arrange, shorten
from memmodel.report.picture.route import LABEL_HEIGHT, routes, sample

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_a_picture_names_the_verdict_places_events_and_arrows():
    shown = texts(draw(report(sometimes(), "never")))
    assert shown[0] == "MP under ptx-9.4: sometimes"
    for expected in ("GPU 0", "CTA 0", "CTA 1", "P0", "P1", "a: st.weak x, 1", "   R x = 0", "init x = 0"):
        assert expected in shown
    assert {"rf", "fr", "rf + sync", "rf: reads from", "sync: synchronizes"} <= set(shown)
    assert "At the end: P1:r0 = 1, P1:r1 = 0; x = 1, y = 1" in shown


def test_for_never_the_picture_is_an_execution_that_is_allowed():
    shown = texts(draw(report(never(), "never")))
    assert "This execution does not satisfy the condition (forbidden by Causality)." in shown


def test_a_picture_of_a_finding_says_what_was_found_and_what_waits():
    race = finding("data-race", "b", "c", witness=early_witness())
    waits = "P1 waits for ever: y stays 0"
    told = report(replace(sometimes(), findings=(race, hanging(waits))))
    assert "This execution satisfies the condition." in texts(draw(told))
    shown = texts(draw(told, finding="race"))
    assert "Data race between b: R.weak x = 0 (P1, line 6) and c: W.weak x = 1 (P0, line 5)." in shown
    assert "This execution satisfies the condition." not in shown
    assert {"b: ld.weak r1, x", "   R x = 0", "c: st.weak x, 1"} <= set(shown)
    hung = texts(draw(told, finding="hang"))
    assert waits in hung and "b: st.release.gpu y, 1" in hung
    assert not any("Data race" in line for line in hung)
    with pytest.raises(InputError, match="no execution has a finding of the kind `hazard`"):
        draw(told, finding="hazard")


def test_where_no_execution_settles_the_question_a_hang_or_a_finding_is_drawn():
    waits = "P1 waits for ever: y stays 0"
    vacuous = Answer(Observation.VACUOUS, "z3", findings=(finding("data-race", "a", "d"), hanging(waits)))
    assert waits in texts(draw(report(vacuous)))
    alone = replace(vacuous, findings=vacuous.findings[:1])
    assert any(line.startswith("Data race between a: ") for line in texts(draw(report(alone))))
    mixed = finding("mixed-size-race", "b", "c", witness=early_witness())
    undecided = replace(sometimes(), observation=Observation.UNDECIDED, findings=(hanging(waits), mixed))
    assert any(line.startswith("Mixed-size data race between b: ") for line in texts(draw(report(undecided))))


def test_a_long_effect_is_wrapped_and_an_initial_value_is_that_of_the_type():
    first = mp_witness()
    bad = replace(first.events[5], text="ld.weak: address 0x1040000400 is outside every object", location=None)
    whole = replace(first.events[0], text="W x[0..1] = {-1, 2}", location="x[0..1]", value=0x2FFFFFFFF)
    read = replace(first.events[4], text="R.acquire.gpu x[0..1] = {-1, 2}")
    witness = replace(first, events=(whole, *first.events[1:4], read, bad), edges={"rf": ((0, 4),)})
    shown = texts(draw(report(replace(sometimes(), witness=witness))))
    assert {"init x[0..1] = {-1, 2}", "   R x[0..1] = {-1, 2}"} <= set(shown)
    assert {"   address 0x1040000400 is outside", "   every object"} <= set(shown)


def test_text_from_the_test_is_escaped():
    hostile = replace(report(sometimes()), test='<script>&"\x01')
    assert '<script>&"\ufffd under ptx-9.4: sometimes' in texts(draw(hostile))
    assert '\\"' in draw(hostile, "dot")


def test_dot_has_nested_clusters_and_every_arrow():
    text = draw(report(sometimes()), "dot")
    assert text.count("subgraph cluster") == 1 + 2 + 2  # one GPU, two CTAs, two threads
    assert 'e5 -> e2 [color="#e07b00"' in text
    assert text.count("{") == text.count("}")


def test_a_relation_with_too_many_arrows_is_named_not_drawn():
    events = tuple(ShownEvent(i, f"e{i}", "P0", Place(), f"W x = {i}", frozenset("W")) for i in range(10))
    pairs = tuple((a, b) for a in range(5) for b in range(5, 10))
    crowded = Witness(events, {"base": pairs}, {}, {})
    shown = texts(draw(report(replace(sometimes(), witness=crowded))))
    assert "Not drawn: base (25)" in shown
    assert "base" not in shown


def test_without_an_execution_there_is_no_picture():
    with pytest.raises(InputError, match="no execution to draw"):
        draw(report(Answer(Observation.VACUOUS, "z3", reason="every execution waits for ever")))
    many = tuple(ShownEvent(i, "e", "P0", Place(), "F", frozenset("F")) for i in range(201))
    with pytest.raises(TooLarge, match="too many"):
        draw(report(replace(sometimes(), witness=Witness(many, {}, {}, {}))))


def test_the_format_is_the_suffix():
    assert format_of("a/b.SVG") == "svg"
    assert format_of("x.dot") == "dot"
    assert format_of("-") == "svg"
    for wrong in ("x.png", "svg", "x"):
        with pytest.raises(InputError, match=r"\.svg or \.dot"):
            format_of(wrong)


def test_long_text_is_shortened():
    assert shorten("a  b\n c") == "a b c"
    assert shorten("x" * 50, 10) == "xxxxxxxxx…"


# ---- geometry ------------------------------------------------------------------------------------------------


@st.composite
def witnesses(draw_from: st.DrawFn) -> Witness:
    """Up to four threads with up to four events, some asynchronous, anywhere on two GPUs, with arbitrary arrows."""
    events = [ShownEvent(0, "i0", None, None, "W x = 0", frozenset("W"), "x", 0)]
    for thread in range(draw_from(st.integers(1, 4))):
        cluster = draw_from(st.sampled_from([None, 0, 1]))
        place = Place(draw_from(st.integers(0, 1)), cluster, draw_from(st.integers(0, 1)))
        for _ in range(draw_from(st.integers(1, 4))):
            uid = len(events)
            text = draw_from(st.sampled_from(["W.weak x = 1", "R.acquire.gpu longer_name = 12", "F.sc.gpu"]))
            tags = frozenset((text[0], *draw_from(st.sampled_from([(), (), ("ASYNC",)]))))
            events.append(ShownEvent(uid, chr(96 + uid), f"P{thread}", place, text, tags, "x", 1))
    uids = st.integers(1, len(events) - 1)
    arrows = st.tuples(uids, uids).filter(lambda pair: pair[0] != pair[1])
    edges = {name: tuple(draw_from(st.sets(arrows, max_size=3))) for name in ("rf", "co", "sync")}
    edges["rf"] += tuple((0, uid) for uid in draw_from(st.sets(uids, max_size=2)))
    return Witness(tuple(events), edges, {}, {})


@examples(150)
@given(witnesses())
def test_no_arrow_crosses_a_box_and_no_label_covers_one(witness):
    edges = shown_edges(witness)
    layout = arrange(witness, edges, 60)
    boxes = layout.boxes.values()
    for a, b in itertools.combinations(boxes, 2):
        assert a.right < b.x or b.right < a.x or a.bottom < b.y or b.bottom < a.y
    for route in routes(layout, edges):
        for x, y in sample(route.curve)[1:-1]:
            assert not any(b.x + 1 < x < b.right - 1 and b.y + 1 < y < b.bottom - 1 for b in boxes), route
        (x, y), half = route.label, len(route.edge.name) * CHAR / 2
        for box in boxes:
            assert (
                x + half <= box.x + 1
                or x - half >= box.right - 1
                or (y + LABEL_HEIGHT / 2 <= box.y + 1 or y - LABEL_HEIGHT / 2 >= box.bottom - 1)
            ), route


@examples(60)
@given(witnesses())
def test_every_picture_is_xml_inside_its_own_frame(witness):
    text = draw(report(replace(sometimes(), witness=witness)))
    root = ElementTree.fromstring(text)
    width = float(root.get("width", "0"))
    shift = float(re.search(r"translate\(([-\d.]+) 0\)", text)[1])  # type: ignore[index]
    for element in root.find(f"{SVG}g").iter(f"{SVG}rect"):  # type: ignore[union-attr]
        left = float(element.get("x", "0")) + shift
        assert left >= -1
        assert left + float(element.get("width", "0")) <= width + 1


def test_an_arrow_in_every_direction_ends_at_its_box():
    witness = mp_witness()
    edges = (Edge("rf", 3, 4), Edge("fr", 5, 2), Edge("co", 2, 3), Edge("rf", 0, 5))
    layout = arrange(witness, edges, 60)
    for route in routes(layout, edges):
        x, y = route.curve[-1][3]
        box = layout.boxes[route.edge.second]
        assert box.x <= x <= box.right
        assert box.y <= y <= box.bottom


def test_a_story_is_drawn_with_what_is_missing_and_the_rest_folded() -> None:

    from memmodel import api
    from memmodel.report.picture.draw import draw_focus

    root = ROOT / "litmus"
    report = api.check(root / "async/pipelines/gemm-tcgen05-2x2-no-commit.litmus")
    story = draw_focus(report)
    assert "stopped: " in story and "Folded: 46 events" in story
    # Of a picture inside a page nothing is a root: it keeps the colours of the page.
    assert story.count("<style>") == 1 and "prefers-color-scheme: dark) { svg:root {" in story
    assert story.count("<rect") < report.draw(everything=True).count("<rect") / 2
    forbidden = api.check(root / "async/proxy/A1.litmus")
    assert "alone forbids" in forbidden.draw() and "phase-sync" in forbidden.draw() and forbidden._repr_svg_()
    assert "phase-sync" not in draw_focus(forbidden, hide=("phase-sync",))
    assert " + mbarobs<" in draw_focus(forbidden, show=("mbarobs",))
    stuck = api.check(root / "bytes/B9-hang.litmus")
    assert "#c2185b" in stuck.draw() and "waits for ever" in stuck.draw()
