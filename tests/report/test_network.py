"""An execution as a graph of networkx and as GraphML; what a notebook shows of a report."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree

import networkx
import pytest
from click.testing import CliRunner
from helpers.places import ROOT

from memmodel.answer import Answer, Observation
from memmodel.api import check
from memmodel.cli.app import app
from memmodel.errors import InputError
from memmodel.network import graphml
from memmodel.report.picture.draw import draw, draw_focus
from memmodel.report.picture.svg import DARK
from memmodel.report.report import Report

A2 = str(ROOT / "litmus/async/proxy/A2.litmus")
WIDE = "PTX wide\n.global .u64 x;\nthread P0 @ cta 0 { st.u64 [x], 0xffffffffffffffff; }\nexists (true)\n"


@pytest.fixture(scope="module")
def report() -> Report:
    return check(A2)


def test_nodes_are_events_with_plain_attributes(report: Report) -> None:
    witness = report.execution
    assert witness is not None
    graph = witness.graph()
    assert isinstance(graph, networkx.MultiDiGraph)
    assert list(graph) == [event.uid for event in witness.events]
    by_label = {data["label"]: data for _, data in graph.nodes(data=True)}
    assert by_label["a"] == {
        "label": "a", "kind": "W", "text": "W s = 1", "initial": False, "tags": by_label["a"]["tags"], "thread": "P0",
        "line": 10, "location": "s", "value": 1, "gpu": 0, "grid": 0, "cta": 0,
    }  # fmt: skip
    assert {"W", "WEAK", "M"} <= set(by_label["a"]["tags"].split())
    assert by_label["init g"]["initial"] and "thread" not in by_label["init g"]
    assert by_label["b"]["kind"] == "F"
    assert {type(value) for data in by_label.values() for value in data.values()} <= {str, int, bool}


def test_edges_are_pairs_of_relations(report: Report) -> None:
    witness = report.execution
    assert witness is not None
    found = {(first, second, name) for first, second, name in witness.graph().edges(keys=True)}
    assert found == {(a, b, name) for name, pairs in witness.edges.items() for a, b in pairs}
    assert {"rf", "po", "fr"} <= {name for *_, name in found}


def test_a_report_has_the_graph_of_its_execution(report: Report) -> None:
    assert report.execution is not None
    assert networkx.utils.graphs_equal(report.graph(), report.execution.graph())


def test_graphml_reads_back(report: Report) -> None:
    assert report.execution is not None
    graph, text = report.graph(), graphml(report.execution)
    back = networkx.read_graphml(BytesIO(text.encode()), node_type=int, force_multigraph=True)
    assert dict(back.nodes(data=True)) == dict(graph.nodes(data=True))
    assert sorted((a, b, data["relation"]) for a, b, data in back.edges(data=True)) == sorted(graph.edges(keys=True))


def test_graphml_takes_numbers_of_64_bits() -> None:
    witness = check(WIDE).execution
    assert witness is not None
    assert max(data.get("value", 0) for _, data in witness.graph().nodes(data=True)) == (1 << 64) - 1
    text = graphml(witness)
    assert "0xffffffffffffffff" in text
    ElementTree.fromstring(text)


def test_draw_writes_graphml(report: Report, tmp_path: Path) -> None:
    out = tmp_path / "x.graphml"
    done = CliRunner().invoke(app, ["draw", A2, "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert len(networkx.read_graphml(out)) == len(report.graph())
    race = CliRunner().invoke(app, ["draw", A2, "-o", str(out), "--finding", "hang"])
    assert race.exit_code == 2


def test_a_notebook_shows_the_picture(report: Report) -> None:
    assert report.draw() == draw_focus(report)
    assert report._repr_svg_() == report.draw().replace(DARK, "")  # a notebook has colours of its own
    assert report.draw(everything=True) == draw(report)
    assert report.draw("dot").startswith("digraph")
    assert report.draw(finding="race").startswith("<svg")


def test_a_notebook_shows_text_where_there_is_no_picture(report: Report) -> None:
    nothing = replace(report, answer=Answer(Observation.UNDECIDED, "z3", reason="too long"))
    assert nothing._repr_svg_() is None
    with pytest.raises(InputError, match="too long"):
        nothing.graph()
