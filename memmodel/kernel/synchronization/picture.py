"""A pipeline as a picture: roles as lanes, time from left to right, an arrow for each hand-over, the phases of each
stage below.

In: Pipeline. Out: HTML with inline SVG. Settled here: names stand beside the picture, so that they stay when it is
scrolled; what is missing is dashed, and stands below in words; an arrow leads to the line of the instruction that
waits. Lines are those of the text that the page lists.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from html import escape

from memmodel.kernel.synchronization.pipeline import HandOver, Pipeline, PipelineMark
from memmodel.kernel.synchronization.report import line_of
from memmodel.output import escaped

COLUMN, LANE, ROW, TOP, EDGE = 22, 46, 20, 20, 14
"""Widths and heights, in pixels."""

COLOURS = 6
"""Colours of rings; further rings have them again."""

NAME = 30
"""Characters of a name that fit beside the picture."""


def picture(pipeline: Pipeline, *, anchors: frozenset[int] = frozenset()) -> str:
    """The picture. `anchors`: the numbers of the instructions that arrows can lead to."""
    rows = list(dict.fromkeys((over.row, over.ring) for over in pipeline.hand_overs if not over.missing))
    rows.sort(key=lambda row: (row[1], row[0] if row[1] < 0 else ""))
    stages = _stages(pipeline, rows)
    bottom = TOP + LANE * len(pipeline.lanes)
    height = bottom + ROW * len(rows) + 10
    width = max(pipeline.columns, 4) * COLUMN + 2 * EDGE
    drawn = [*_grid(pipeline, width), *_row_lines(len(rows), bottom, width)]
    for over in pipeline.hand_overs:
        drawn += _hand_over(over, anchors)
        if not over.missing:
            drawn.append(_phase(over, bottom + ROW * rows.index((over.row, over.ring))))
    names = [_name(TOP + LANE * n + LANE / 2, name, "lane") for n, name in enumerate(pipeline.lanes)]
    names += [_name(TOP + LANE * n + LANE / 2 + 14, does, "does") for n, does in enumerate(pipeline.does) if does]
    names += [_name(bottom + ROW * n + ROW / 2, stages[n], "") for n in range(len(rows))]
    full = [f"<title>{escape(escaped(row))}</title>" for row, _ in rows]
    titles = "".join(f"<g>{title}</g>" for title in full)
    return (
        f'<div class="picture"><svg class="names" width="190" height="{height}" viewBox="0 0 190 {height}" '
        f'preserveAspectRatio="xMaxYMin slice">'
        f'{"".join(names)}</svg><div class="time"><svg width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">{titles}{"".join(drawn)}</svg></div></div>'
    ) + _missing(pipeline, anchors)


def _missing(pipeline: Pipeline, anchors: frozenset[int]) -> str:
    """The missing hand-overs, which are dashed in the picture, as sentences."""
    sentences = []
    for over in pipeline.hand_overs:
        for take in over.takes if over.missing else ():
            said, number = escape(escaped(_sentence(over, take))), take.instruction.number
            sentences.append(f'<a href="#at{number}">{said}</a>' if number in anchors else said)
    items = "".join(f"<li>{sentence}</li>" for sentence in dict.fromkeys(sentences))
    return f'<ul class="absent">{items}</ul>' if items else ""


def legend(pipeline: Pipeline) -> str:
    """How to read it, in words."""
    later = f" {pipeline.left_out} later hand-overs are left out." if pipeline.left_out else ""
    missing = " Dashed: order that is missing." if any(over.missing for over in pipeline.hand_overs) else ""
    return (
        "Time goes from left to right. A full mark arrives, an open one waits. An arrow is a hand-over and leads to "
        "the line of the wait; an upright line is a barrier. Below: the phases of each mbarrier object, by the lines "
        "that arrive and wait, and of each barrier."
        f"{missing}{later}"
    )


def _stages(pipeline: Pipeline, rows: list[tuple[str, int]]) -> list[str]:
    """What the rows are called: an object by the lines that arrive and wait, and by its stage or its CTA if there are
    several."""
    counts: dict[int, int] = {}
    rings = [ring for _, ring in rows]
    first = {(over.row, over.ring): over for over in reversed(pipeline.hand_overs) if not over.missing}
    names = []
    for row, ring in rows:
        stage = counts.get(ring, 0)
        counts[ring] = stage + 1
        if ring < 0:
            names.append(row)
            continue
        over = first[row, ring]
        lines = f"{line_of(over.gives[0].instruction)} → {line_of(over.takes[0].instruction)}"
        names.append(f"{lines}, stage {stage}" if rings.count(ring) > 1 else lines)
    alike = Counter(names)
    return [
        f"{name}, {_who(pipeline.lanes[first[key].takes[0].lane])}" if key in first and alike[name] > 1 else name
        for key, name in zip(rows, names, strict=True)
    ]


def _who(lane: str) -> str:
    """The CTA of a lane, or the whole of its name."""
    cta = re.match(r"CTA \d+", lane)
    return lane if cta is None else cta[0]


def _name(y: float, name: str, kind: str) -> str:
    shown = name if len(name) <= NAME else name[: NAME - 1] + "…"
    title = f"<title>{escape(escaped(name))}</title>"
    return f'<text class="{kind}" x="184" y="{y + 4:g}">{title}{escape(escaped(shown))}</text>'


def _grid(pipeline: Pipeline, width: int) -> Iterator[str]:
    for number in range(len(pipeline.lanes)):
        y = TOP + LANE * number + LANE / 2
        yield f'<line class="axis" x1="0" y1="{y:g}" x2="{width}" y2="{y:g}"/>'


def _row_lines(count: int, bottom: int, width: int) -> Iterator[str]:
    for number in range(count + 1):
        y = bottom + ROW * number
        yield f'<line class="row" x1="0" y1="{y}" x2="{width}" y2="{y}"/>'


def _at(mark: PipelineMark) -> tuple[float, float]:
    return EDGE + COLUMN * mark.column + COLUMN / 2, TOP + LANE * mark.lane + LANE / 2


def _colour(over: HandOver) -> str:
    if over.missing:
        return "missing"
    return f"ring{over.ring % COLOURS}" if over.ring >= 0 else "meeting"


def _hand_over(over: HandOver, anchors: frozenset[int]) -> Iterator[str]:
    """Marks, and an arrow from the last one that arrives to each that waits; a line through those that meet."""
    colour = _colour(over)
    if over.ring < 0 and not over.missing and len(over.takes) > 1:
        (x, top), (_, bottom) = (_at(choose(over.takes, key=_lane_of)) for choose in (min, max))
        yield f'<line class="{colour} arrow" x1="{x:g}" y1="{top:g}" x2="{x:g}" y2="{bottom:g}"/>'
    for take in over.takes:
        x, y = _at(take)
        gives = over.gives[-1:] if over.ring >= 0 or over.missing else over.gives
        title = f"<title>{escape(escaped(_sentence(over, take)))}</title>"
        lines = []
        for give in gives:
            gx, gy = _at(give)
            if (give.lane, give.column) != (take.lane, take.column):
                bend = 0.5 * (x - gx) if give.lane != take.lane else 0
                lift = 0 if give.lane != take.lane else -18
                curve = f"{gx + bend:g} {gy + lift:g} {x - bend:g} {y + lift:g} {x:g} {y:g}"
                lines.append(f'<path class="arrow" d="M{gx:g} {gy:g}C{curve}"/>')
        if over.missing and not over.gives:
            lines.append(f'<path class="arrow" d="M{x - 2 * COLUMN:g} {y - 20:g}L{x:g} {y:g}"/>')
        mark = f'<circle class="wait" cx="{x:g}" cy="{y:g}" r="5"/>'
        group = f'<g class="{colour}">{title}{"".join(lines)}{mark}</g>'
        number = take.instruction.number
        yield f'<a href="#at{number}">{group}</a>' if number in anchors else group
    for give in over.gives:
        x, y = _at(give)
        title = f"<title>{escape(escaped(f'{give.instruction.opcode}, line {line_of(give.instruction)}'))}</title>"
        yield f'<g class="{colour}">{title}<circle class="arrive" cx="{x:g}" cy="{y:g}" r="4"/></g>'


def _lane_of(mark: PipelineMark) -> int:
    return mark.lane


def _sentence(over: HandOver, take: PipelineMark) -> str:
    gives = ", ".join(
        dict.fromkeys(f"{give.instruction.opcode} (line {line_of(give.instruction)})" for give in over.gives)
    )
    waits = f"{take.instruction.opcode} (line {line_of(take.instruction)})"
    if over.missing:
        return f"{over.missing}: {gives or 'nothing'} before {waits}"
    return f"{over.row}, phase {over.phase}: {gives} before {waits}"


def _phase(over: HandOver, y: int) -> str:
    """One phase of a stage: from the first mark to the last."""
    columns = [mark.column for mark in (*over.gives, *over.takes)]
    x, width = EDGE + COLUMN * min(columns), COLUMN * (max(columns) - min(columns) + 1)
    text = f'<text x="{x + width / 2:g}" y="{y + 14}">{over.phase}</text>'
    return (
        f'<g class="phase {_colour(over)}"><title>{escape(escaped(f"{over.row}, phase {over.phase}"))}</title>'
        f'<rect x="{x + 1:g}" y="{y + 2}" width="{width - 2:g}" height="{ROW - 4}" rx="3"/>{text}</g>'
    )
