"""The picture of an execution, as SVG or for Graphviz.

In: Report. Out: text in the chosen format; `graphml` has every event and relation, and no drawing. Settled here: what
the picture says around the drawing, and that a relation with too many arrows is named at the foot instead of drawn.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memmodel.answer import HANG, Observation, Witness
from memmodel.base.oneline import count
from memmodel.cat.flags import FindingKind
from memmodel.errors import InputError, TooLarge
from memmodel.network import graphml
from memmodel.report.because import because
from memmodel.report.execution import final_state
from memmodel.report.expect import is_called
from memmodel.report.findings import sentence
from memmodel.report.graph import BASIC, Edge, merged, reduced, shown_edges
from memmodel.report.picture.dot import dot
from memmodel.report.picture.focus import focus_of, known_relations
from memmodel.report.picture.lanes import iterations
from memmodel.report.picture.layout import Picture, arrange, shorten
from memmodel.report.picture.phases import phases_of
from memmodel.report.picture.route import routes
from memmodel.report.picture.svg import DARK, PLAIN, PO_COLOUR, Emphasis, Words, colours, subtitle_bottom, svg

if TYPE_CHECKING:
    from memmodel.report.report import Report
    from memmodel.why.records import Dependence, Explanation

FORMATS = ("svg", "dot", "graphml")

MAX_EVENTS = 200
"""The most events that a readable picture has."""

MAX_ARROWS = 14
"""A relation that a model shows with more arrows than this hides the rest of the picture."""

MAX_LISTED = 3
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


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture with its relations: the name of each, its colour, and whether it is hidden at first."""

    svg: str
    relations: tuple[tuple[str, str, bool], ...]


def draw(
    report: Report,
    form: str = "svg",
    finding: str | None = None,
    show: Collection[str] = (),
    hide: Collection[str] = (),
) -> str:
    """The report's execution as a picture, or with `finding` (`race`, `hang`, …) an execution that has such a finding.

    `show`: relations to draw however many arrows they have; `hide`: those to leave out. Raises InputError when there is
    no execution or no such relation, TooLarge when the picture would be unreadable.
    """
    witness = execution_of(report) if finding is None else _with_finding(report, finding)
    if form == "graphml":
        return graphml(witness)
    if len(witness.events) > MAX_EVENTS:
        raise TooLarge(f"{report.path}: {len(witness.events)} events are too many for a picture (limit {MAX_EVENTS})")
    known_relations((*show, *hide), witness, ())
    edges = [edge for edge in shown_edges(witness) if edge.name not in hide]
    arrows = Counter(edge.name for edge in edges)
    kept = (*BASIC, *show)
    left_out = [f"{name} ({number})" for name, number in arrows.items() if number > MAX_ARROWS and name not in kept]
    drawn = merged(edge for edge in edges if edge.name in kept or arrows[edge.name] <= MAX_ARROWS)
    lines = (_end(final_state(witness)), f"Not drawn: {', '.join(left_out)}" if left_out else "")
    words = Words(
        _title(report),
        (*_question(report), *_captions(report, witness)),
        tuple(line.replace("\u00a0", " ") for text in lines for line in textwrap.wrap(text, WRAP)),
    )
    po = [] if "po" in hide else sorted(reduced("po", witness))
    if form == "dot":
        return dot(witness, drawn, po, words)
    layout = arrange(witness, drawn, subtitle_bottom(words), phases_of(witness), iterations(witness))
    return _svg(layout, drawn, [(a, b) for a, b in po if a in layout.boxes and b in layout.boxes], words, PLAIN)


def _title(report: Report) -> str:
    return f"{shorten(report.test, 80)} under {report.model}: {report.answer.observation.value}"


def _svg(
    layout: Picture,
    edges: tuple[Edge, ...],
    po: Sequence[tuple[int, int]],
    words: Words,
    emphasis: Emphasis,
    more: tuple[Edge, ...] = (),
) -> str:
    """The picture, with program order as lines down a column where nothing stands between, else as arrows."""
    near = [(a, b) for a, b in po if _next(layout, a, b)]
    far = tuple(Edge("po", a, b) for a, b in po if (a, b) not in near)
    drawn = routes(layout, edges + far)
    return svg(layout, drawn + (routes(layout, more) if more else ()), near, words, emphasis)


def draw_focus(
    report: Report,
    form: str = "svg",
    finding: str | None = None,
    show: Collection[str] = (),
    hide: Collection[str] = (),
    depends: Sequence[Dependence] = (),
) -> str:
    """The story of a report as a picture: the cycle, or the two accesses with the way between them, the rest folded.

    Where there is no story, the whole execution. `depends`: the readings that say the opposite, which
    the picture names. Raises as `draw`.
    """
    with because(report):
        focus = None if form == "graphml" else focus_of(report, finding, show, hide)
    if focus is None:
        return draw(report, form, finding, show, hide)
    focus = replace(focus, sentences=(*focus.sentences, *map(_dependence, depends)))
    folded = f"Folded: {count(focus.folded, 'event')}; --all shows them." if focus.folded else ""
    words = Words(_title(report), (*_question(report), *_wrapped(focus.sentences)), _wrapped((*focus.below, folded)))
    edges = merged(focus.edges)
    if form == "dot":
        return dot(focus.witness, edges, focus.po, words)
    layout = arrange(focus.witness, edges, subtitle_bottom(words), focus.phases, focus.rounds)
    return _svg(layout, edges, focus.po, words, Emphasis(focus.marked, focus.path, focus.stops))


def _dependence(dependence: Dependence) -> str:
    """Sentences: the decision that makes the difference, and the model under which the outcome can be seen."""
    answers = f"Here: {dependence.default} Under {dependence.decision}: {dependence.other}"
    where = f"The outcome can be seen under {dependence.allowed_by}."
    return f"It depends on {dependence.decision}: {dependence.question} {answers} {where}"


def draw_explained(report: Report, explanation: Explanation) -> Drawing:
    """The picture for the HTML page, whose text stands beside it: with all relations among its events, some hidden.

    Raises as `draw`.
    """
    focus = focus_of(report, None, explanation=explanation)
    if focus is None:
        return Drawing(draw(report).replace(DARK, ""), ())  # the page has colours of its own
    folded = f"Folded: {count(focus.folded, 'event')} of the execution." if focus.folded else ""
    words = Words("", (), _wrapped((*focus.below, folded)))
    edges = merged(focus.edges)
    arrows = Counter(edge.name for edge in focus.more)
    more = tuple(edge for edge in focus.more if arrows[edge.name] <= MAX_ARROWS)
    shown = list(dict.fromkeys(edge.name for edge in focus.edges))
    off = [name for name in dict.fromkeys(edge.name for edge in more) if name not in shown]
    layout = arrange(focus.witness, edges, subtitle_bottom(words), focus.phases, focus.rounds)
    emphasis = Emphasis(focus.marked, focus.path, focus.stops, frozenset(off), legend=False)
    text = _svg(layout, edges, focus.po, words, emphasis, tuple(edge for edge in more if edge.name in off))
    colour = colours([*shown, *off])
    po = (("po", PO_COLOUR, False),) if focus.po else ()
    return Drawing(text, (*po, *((name, colour[name], name in off) for name in (*shown, *off))))


def _wrapped(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(part for line in lines for part in textwrap.wrap(line, WRAP, drop_whitespace=True))


def execution_of(report: Report) -> Witness:
    """The execution that settles the question; failing that, any that is known."""
    answer = report.answer
    witness = report.execution or answer.counter
    if report.mixed:
        witness = report.found(FindingKind.MIXED)[0].witness
    elif witness is None and answer.findings:
        witness = (answer.hang or answer.findings[0]).witness
    if witness is None:
        why = answer.reason or f"the condition is {answer.observation.value} reached and no other execution is known"
        refused = TooLarge if answer.observation is Observation.UNDECIDED else InputError
        raise refused(f"{report.path}: no execution to draw: {why}")
    return witness


def _with_finding(report: Report, word: str) -> Witness:
    witness = next((finding.witness for finding in report.answer.findings if is_called(finding.flag, word)), None)
    if witness is None:
        why = report.answer.unsearched or f"no execution has a finding of the kind `{word}`"
        refused = TooLarge if report.answer.unsearched else InputError
        raise refused(f"{report.path}: no execution to draw: {why}")
    return witness


def _next(layout: Picture, first: int, second: int) -> bool:
    """True if the second box is below the first in the same column, with nothing between them."""
    (column, top), (other, bottom) = layout.cell[first], layout.cell[second]
    between = any(c == column and top < row < bottom for c, row in layout.cell.values())
    return column == other and top < bottom and not between


def _question(report: Report) -> tuple[str, ...]:
    text = report.question
    if report.holds is not None:
        text += " holds" if report.holds else " does not hold"
    if report.ok is not None:
        text += ", as expected" if report.ok else f", expected {report.expected}"
    return tuple(textwrap.wrap(text, WRAP)[:4])


def _captions(report: Report, witness: Witness) -> tuple[str, ...]:
    """The lines above the picture: whether the execution satisfies the condition, its findings, and who waits."""
    answer = report.answer
    lines = []
    if report.finding is None and witness == answer.witness:
        lines.append("This execution satisfies the condition.")
    elif report.finding is None and witness == answer.counter:
        because = f" (forbidden by {', '.join(answer.axioms)})" if answer.axioms else ""
        lines.append(f"This execution does not satisfy the condition{because}.")
    sentences = [
        sentence(finding) for finding in answer.findings if finding.witness == witness and finding.flag != HANG
    ]
    lines += [f"{text[:1].upper()}{text[1:]}." for text in sentences[:MAX_LISTED]]
    if len(sentences) > MAX_LISTED:
        lines.append(f"{len(sentences) - MAX_LISTED} more findings are not listed here.")
    return tuple(part for line in (*lines, *witness.waits) for part in textwrap.wrap(line, WRAP))


def _end(state: str) -> str:
    return "At the end: " + state.replace(" = ", NO_BREAK) if state else ""
