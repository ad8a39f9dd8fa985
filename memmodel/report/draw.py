"""The picture of an execution, as SVG or for Graphviz.

In: Report. Out: text in the chosen format. Settled here: what the picture says around the drawing, and that a relation
with too many arrows is named at the foot instead of drawn.
"""

from __future__ import annotations

import textwrap

from memmodel.answer import Witness
from memmodel.errors import InputError, TooLarge
from memmodel.report.dot import dot
from memmodel.report.graph import BASIC, Edge, reduced, shown_edges
from memmodel.report.layout import Picture, arrange, shorten
from memmodel.report.report import Report
from memmodel.report.route import routes
from memmodel.report.svg import Words, subtitle_bottom, svg
from memmodel.report.text import final_state

FORMATS = ("svg", "dot")

MAX_EVENTS = 200
"""Nobody can read a picture of more events."""

MAX_ARROWS = 14
"""A relation that a model shows with more arrows than this hides the rest of the picture."""

WRAP = 110

NO_BREAK = "\u00a0=\u00a0"
"""Keeps `x = 1` on one line: textwrap does not break at no-break spaces."""


def format_of(path: str) -> str:
    """`svg` or `dot`, by the file's name; `-` means SVG. Raises InputError for any other."""
    suffix = path.rpartition(".")[2].lower() if "." in path else ""
    if path == "-":
        return "svg"
    if suffix not in FORMATS:
        raise InputError(f"{path}: pictures are written as .svg or .dot", hint="name the output picture.svg")
    return suffix


def draw(report: Report, form: str = "svg") -> str:
    """The report's execution as a picture. Raises InputError when it has none, TooLarge when nobody could read it."""
    answer = report.answer
    hang = answer.hang
    witness = report.execution or answer.counter or (hang.witness if hang else None)
    if witness is None:
        why = answer.reason or f"the condition is {answer.observation.value} reached and no other execution is known"
        raise InputError(f"{report.path}: no execution to draw: {why}")
    if len(witness.events) > MAX_EVENTS:
        raise TooLarge(f"{report.path}: {len(witness.events)} events are too many for a picture (limit {MAX_EVENTS})")
    edges = shown_edges(witness)
    count = {edge.name: sum(other.name == edge.name for other in edges) for edge in edges}
    left_out = [f"{name} ({number})" for name, number in count.items() if number > MAX_ARROWS and name not in BASIC]
    drawn = tuple(edge for edge in edges if edge.name in BASIC or count[edge.name] <= MAX_ARROWS)
    shows = witness is answer.witness
    words = Words(
        f"{shorten(report.test, 80)} under {report.model}: {answer.observation.value}",
        (*_question(report), *(_waits(witness) if witness.waits else (_said(report, shows),))),
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


def _said(report: Report, shows: bool) -> str:
    """How the execution stands to the question."""
    if shows:
        return "This execution satisfies the condition."
    because = f" (forbidden by {', '.join(report.answer.axioms)})" if report.answer.axioms else ""
    return f"This execution does not satisfy the condition{because}."


def _waits(witness: Witness) -> tuple[str, ...]:
    """What threads of a hanging execution wait for."""
    return tuple(line for sentence in witness.waits for line in textwrap.wrap(sentence, WRAP))


def _end(state: str) -> str:
    return "At the end: " + state.replace(" = ", NO_BREAK) if state else ""
