"""The picture of an execution, as SVG or for Graphviz.

In: Report. Out: text in the chosen format; `graphml` has every event and relation, and no drawing. Settled here: what
the picture says around the drawing, and that a relation with too many arrows is named at the foot instead of drawn.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection
from typing import TYPE_CHECKING

from memmodel.answer import HANG, Observation, Witness
from memmodel.cat.flags import FindingKind
from memmodel.errors import InputError, TooLarge
from memmodel.network import graphml
from memmodel.report.because import because
from memmodel.report.execution import final_state
from memmodel.report.expect import is_called
from memmodel.report.findings import sentence
from memmodel.report.graph import BASIC, Edge, reduced, shown_edges
from memmodel.report.picture.dot import dot
from memmodel.report.picture.focus import focus_of
from memmodel.report.picture.layout import Picture, arrange, shorten
from memmodel.report.picture.route import routes
from memmodel.report.picture.svg import Words, subtitle_bottom, svg

if TYPE_CHECKING:
    from memmodel.report.report import Report

FORMATS = ("svg", "dot", "graphml")

MAX_EVENTS = 200
"""Nobody can read a picture of more events."""

MAX_ARROWS = 14
"""A relation that a model shows with more arrows than this hides the rest of the picture."""

MAX_TOLD = 3
"""Findings that are told above a picture."""

WRAP = 110

NO_BREAK = "\u00a0=\u00a0"
"""Keeps `x = 1` on one line: textwrap does not break at no-break spaces."""


def format_of(path: str) -> str:
    """`svg`, `dot` or `graphml`, by the file's name; `-` means SVG. Raises InputError for any other."""
    suffix = path.rpartition(".")[2].lower() if "." in path else ""
    if path == "-":
        return "svg"
    if suffix not in FORMATS:
        hint = "name the output picture.svg"
        raise InputError(f"{path}: pictures are written as .svg or .dot, graphs as .graphml", hint=hint)
    return suffix


def draw(report: Report, form: str = "svg", finding: str | None = None) -> str:
    """The report's execution as a picture, or with `finding` (`race`, `hang`, …) an execution that has such a finding.

    Raises InputError when there is none, TooLarge when nobody could read it.
    """
    witness = execution_of(report) if finding is None else _with_finding(report, finding)
    if form == "graphml":
        return graphml(witness)
    if len(witness.events) > MAX_EVENTS:
        raise TooLarge(f"{report.path}: {len(witness.events)} events are too many for a picture (limit {MAX_EVENTS})")
    edges = shown_edges(witness)
    count = {edge.name: sum(other.name == edge.name for other in edges) for edge in edges}
    left_out = [f"{name} ({number})" for name, number in count.items() if number > MAX_ARROWS and name not in BASIC]
    drawn = tuple(edge for edge in edges if edge.name in BASIC or count[edge.name] <= MAX_ARROWS)
    words = Words(
        f"{shorten(report.test, 80)} under {report.model}: {report.answer.observation.value}",
        (*_question(report), *_said(report, witness)),
        tuple(
            line.replace("\u00a0", " ")
            for text in (_end(final_state(witness)), f"Not drawn: {', '.join(left_out)}" if left_out else "")
            for line in textwrap.wrap(text, WRAP)
        ),
    )
    po = sorted(reduced("po", witness))
    if form == "dot":
        return dot(witness, drawn, po, words)
    layout = arrange(witness, drawn, subtitle_bottom(words))
    near = [(a, b) for a, b in po if a in layout.boxes and b in layout.boxes and _next(layout, a, b)]
    far = tuple(Edge("po", a, b) for a, b in po if a in layout.boxes and b in layout.boxes and (a, b) not in near)
    return svg(layout, routes(layout, drawn + far), near, words)


def draw_focus(
    report: Report,
    form: str = "svg",
    finding: str | None = None,
    show: Collection[str] = (),
    hide: Collection[str] = (),
) -> str:
    """The story of a report as a picture: the cycle, or the two accesses with the way between them, the rest folded.

    Where there is no story, the whole execution. Raises as `draw`.
    """
    with because(report):
        focus = None if form == "graphml" else focus_of(report, finding, show, hide)
    if focus is None:
        return draw(report, form, finding)
    witness = focus.witness
    folded = f"{focus.folded} events are folded; --all shows them." if focus.folded else ""
    words = Words(
        f"{shorten(report.test, 80)} under {report.model}: {report.answer.observation.value}",
        (*_question(report), *(part for line in focus.said for part in textwrap.wrap(line, WRAP))),
        (folded,) if folded else (),
    )
    if form == "dot":
        return dot(witness, focus.edges, focus.po, words)
    layout = arrange(witness, focus.edges, subtitle_bottom(words))
    near = [(a, b) for a, b in focus.po if _next(layout, a, b)]
    far = tuple(Edge("po", a, b) for a, b in focus.po if (a, b) not in near)
    return svg(layout, routes(layout, focus.edges + far), near, words, focus.marked)


def execution_of(report: Report) -> Witness:
    """The execution that settles the question; failing that, any that is known."""
    answer = report.answer
    found = report.execution or answer.counter
    if report.mixed:
        found = report.found(FindingKind.MIXED)[0].witness
    elif found is None and answer.findings:
        found = (answer.hang or answer.findings[0]).witness
    if found is None:
        why = answer.reason or f"the condition is {answer.observation.value} reached and no other execution is known"
        refused = TooLarge if answer.observation is Observation.UNDECIDED else InputError
        raise refused(f"{report.path}: no execution to draw: {why}")
    return found


def _with_finding(report: Report, word: str) -> Witness:
    found = next((one.witness for one in report.answer.findings if is_called(one.flag, word)), None)
    if found is None:
        why = report.answer.unsearched or f"no execution has a finding of the kind `{word}`"
        refused = TooLarge if report.answer.unsearched else InputError
        raise refused(f"{report.path}: no execution to draw: {why}")
    return found


def _next(layout: Picture, first: int, second: int) -> bool:
    """Does nothing but asynchronous events stand between two boxes of a column?"""
    (column, top), (other, bottom) = layout.cell[first], layout.cell[second]
    between = [uid for uid, (c, row) in layout.cell.items() if c == column and top < row < bottom]
    return column == other and top < bottom and all(layout.boxes[uid].dashed for uid in between)


def _question(report: Report) -> tuple[str, ...]:
    text = report.question
    if report.holds is not None:
        text += " holds" if report.holds else " does not hold"
    if report.ok is not None:
        text += ", as expected" if report.ok else f", expected {report.expected}"
    return tuple(textwrap.wrap(text, WRAP)[:4])


def _said(report: Report, witness: Witness) -> tuple[str, ...]:
    """How the execution stands to the question, what is found in it, and what its threads wait for."""
    answer = report.answer
    lines = []
    if report.finding is None and witness == answer.witness:
        lines.append("This execution satisfies the condition.")
    elif report.finding is None and witness == answer.counter:
        because = f" (forbidden by {', '.join(answer.axioms)})" if answer.axioms else ""
        lines.append(f"This execution does not satisfy the condition{because}.")
    told = [sentence(one) for one in answer.findings if one.witness == witness and one.flag != HANG]
    lines += [f"{one[:1].upper()}{one[1:]}." for one in told[:MAX_TOLD]]
    if len(told) > MAX_TOLD:
        lines.append(f"{len(told) - MAX_TOLD} more findings are not listed here.")
    return tuple(part for line in (*lines, *witness.waits) for part in textwrap.wrap(line, WRAP))


def _end(state: str) -> str:
    return "At the end: " + state.replace(" = ", NO_BREAK) if state else ""
