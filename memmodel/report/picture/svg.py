"""A picture as SVG text, with nothing but strings.

In: Picture, routes, words. Out: one SVG document, readable on white without zooming. Settled here: colours and fonts,
all of them attributes, so that a page which forbids foreign style can show the picture; that a picture which is a file
of its own follows the colours of the reader's system; that each arrow names its relation, so that a page can hide it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape

from memmodel.output import escaped
from memmodel.report.graph import JOIN
from memmodel.report.picture.layout import (
    BAND_LINE,
    BAND_WIDTH,
    MARGIN,
    PO_INSET,
    Column,
    NodeBox,
    PhaseBand,
    Picture,
    PictureFrame,
    label_lines,
    label_width,
    shorten,
)
from memmodel.report.picture.route import Cubic, Route, sample

PO_COLOUR = "#9aa3ad"
COLOURS = {
    "rf": "#d0312d",
    "co": "#2b5fc7",
    "fr": "#e07b00",
    "rmw": "#7a3ea8",
    "sync": "#178a3a",
    "pattern-sync": "#178a3a",
    "phase-sync": "#0f7f8c",
    "barrier-sync": "#4c7a12",
    "iss": "#8a8f98",
    "compl": "#6b5b00",
    "mbarobs": "#b0357f",
}
MARKED = "#c2185b"
"""The colour of what a picture is about, and of an arrow that is missing."""

STOPS = "#b26a00"
"""The colour of an event where the order stops."""

STOPPED = "stopped: "
"""The name of an arrow that is not there begins so; what stops the order follows."""

OTHERS = ("#4a5fa8", "#8a4b22", "#0f5f6c", "#90254f", "#5b4b00")
"""Colours for whatever else a model shows, in the order in which they appear."""

MEANINGS = {
    "rf": "reads from",
    "co": "coherence",
    "fr": "from-reads",
    "rmw": "one atomic operation",
    "sync": "synchronizes",
    "iss": "issues",
    "compl": "its end is told by",
    "mbarobs": "a wait sees the phase that it is in",
    "pattern-sync": "release to acquire pattern",
    "phase-sync": "release to acquire through an mbarrier phase",
    "barrier-sync": "arrive to wait of a barrier",
}

_FILL = {"read": "#fff6e9", "write": "#edf3fe", "fence": "#ecf8ef", "init": "#f1f2f4", "other": "#f6f0fa"}
_STROKE = {"read": "#c99a4b", "write": "#6f93d6", "fence": "#74b487", "init": "#a9afb7", "other": "#a58abf"}
_FRAMES = (("#f4f6f9", "#b9c3cf"), ("#eaf0f6", "#a8b8c8"), ("#ffffff", "#c3ccd6"))
_INK = "#1f2733"
_MONO = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"
_SANS = "'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
DARK = (
    "<style>@media (prefers-color-scheme: dark) "
    "{ svg:root { background: #191919; filter: invert(0.9) hue-rotate(180deg) } }</style>"
)
"""The colours of a dark system. A picture inside a page is no root: the page has its own."""

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Words:
    """The text around a picture: title, lines below it, lines at the foot."""

    title: str
    subtitle: tuple[str, ...]
    foot: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Emphasis:
    """What stands out: boxes, the pairs of events that the story goes through, boxes where it stops.

    `off`: relations that are drawn hidden.
    """

    boxes: Collection[int] = frozenset()
    path: Collection[tuple[int, int]] = frozenset()
    stops: Collection[int] = frozenset()
    off: Collection[str] = frozenset()
    legend: bool = True


PLAIN = Emphasis()


def colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for every name of an arrow; where relations coincide, that of the first."""
    parts = list(dict.fromkeys(name.split(JOIN)[0] for name in names))
    extra = [name for name in parts if name not in COLOURS]
    others = {name: OTHERS[index % len(OTHERS)] for index, name in enumerate(extra)}
    known = COLOURS | others | {name: MARKED for name in extra if name.startswith(STOPPED)}
    return known | {name: known[name.split(JOIN)[0]] for name in names}


def subtitle_bottom(words: Words) -> float:
    """Where the picture may begin below the title."""
    return (44.0 if words.title else 18.0) + 18 * len(words.subtitle) + 14


def svg(
    layout: Picture, drawn: Sequence[Route], po: Sequence[tuple[int, int]], words: Words, emphasis: Emphasis = PLAIN
) -> str:
    """The whole document. `po` are the pairs to connect down a column."""
    names = list(dict.fromkeys(route.edge.name for route in drawn))
    colour = colours(names)
    left, right = _extent(layout, drawn)
    widest = 2 * MARGIN + 6.7 * max(map(len, (*words.subtitle, *words.foot)), default=0)
    width = max(right - left + 2 * MARGIN, widest, len(words.title) * 10.5 + 2 * MARGIN, 420)
    dashed = any(box.dashed for box in layout.boxes.values())
    legend: list[str] = []
    legend_bottom = layout.bottom + 22
    if emphasis.legend:
        shown = list(dict.fromkeys(part for name in names for part in name.split(JOIN)))
        legend, legend_bottom = _legend(shown, colours(shown), layout.bottom + 30, width, po=bool(po), dashed=dashed)
    height = legend_bottom + 18 * len(words.foot) + 12
    shift = (width - right - left) / 2
    title = [] if not words.title else [_words(MARGIN, 34, words.title, "19", ' font-weight="700"')]
    first = 58 if words.title else 26
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" font-family="{_SANS}" font-size="12" fill="{_INK}">',
        *([DARK] if words.title else ()),
        f"<title>{_text(words.title or 'The story of the answer')}</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        *title,
        *(_words(MARGIN, first + 18 * index, line, "13") for index, line in enumerate(words.subtitle)),
        f'<g transform="translate({shift:.1f} 0)">',
        *(_frame(frame) for frame in sorted(layout.frames, key=lambda frame: frame.depth)),
        *(_round(frame) for frame in layout.rounds),
        *(_band(band) for band in layout.bands),
        *(_po(layout.boxes[a], layout.boxes[b], on_path=(a, b) in emphasis.path) for a, b in po),
        *(_curve(route, colour, emphasis) for route in drawn),
        *(_box(box, emphasis) for box in layout.boxes.values()),
        *(_frame_title(frame) for frame in layout.frames),
        *(_round_title(frame) for frame in layout.rounds),
        *(_column_title(column, layout.header) for column in layout.columns),
        *(_label(route, colour, emphasis) for route in drawn),
        "</g>",
        *legend,
        *(_words(MARGIN, legend_bottom + 8 + 18 * index, line, "13") for index, line in enumerate(words.foot)),
        "</svg>",
    ]
    return "\n".join([*parts, ""])


def _words(x: float, y: float, text: str, size: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}"{more}>{_text(text)}</text>'


def _extent(layout: Picture, drawn: Sequence[Route]) -> tuple[float, float]:
    """The leftmost and the rightmost x of the drawing."""
    spans = [(frame.x, frame.x + frame.width) for frame in layout.frames]
    spans += [(box.x, box.right) for box in layout.boxes.values()]
    for route in drawn:
        half = label_width(route.edge.name) / 2 + 2
        spans += [(x, x) for x, _ in sample(route.curve)] + [(route.label[0] - half, route.label[0] + half)]
    return min((low for low, _ in spans), default=0.0), max((high for _, high in spans), default=0.0)


def _frame(frame: PictureFrame) -> str:
    fill, stroke = _FRAMES[-1 if frame.title.startswith("CTA") else min(frame.depth, 1)]
    return (
        f'<rect x="{frame.x:.1f}" y="{frame.y:.1f}" width="{frame.width:.1f}" height="{frame.height:.1f}" '
        f'rx="9" fill="{fill}" stroke="{stroke}"/>'
    )


def _frame_title(frame: PictureFrame) -> str:
    return _halo(frame.x + 9, frame.y + 16, 'font-size="11.5" font-weight="600"', frame.title, "#5b6774")


def _round(frame: PictureFrame) -> str:
    return (
        f'<rect x="{frame.x:.1f}" y="{frame.y:.1f}" width="{frame.width:.1f}" height="{frame.height:.1f}" rx="9" '
        'fill="#fbf7ea" stroke="#d8c27a" stroke-dasharray="2 3"/>'
    )


def _round_title(frame: PictureFrame) -> str:
    return _halo(frame.x + frame.width, frame.y - 4, 'font-size="10.5" text-anchor="end"', frame.title, "#806515")


def _band(band: PhaseBand) -> str:
    """A phase: a bar as long as its events, with what is counted in it."""
    phase, x, y = band.phase, band.x, band.y
    colour, fill = ("#0f7f8c", "#e9f5f6") if phase.over else (MARKED, "#fdeef4")
    lines = (phase.name, f"phase {phase.number}{'' if phase.over else ', not over'}", *phase.counted)
    parts = [
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{BAND_WIDTH}" height="{band.height:.1f}" rx="4" fill="{fill}"/>'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="4" height="{band.height:.1f}" rx="2" fill="{colour}"/>'
    ]
    for index, line in enumerate(lines):
        weight = ' font-weight="700"' if index == 0 else ""
        parts.append(_words(x + 11, y + 17 + BAND_LINE * index, shorten(line, 17), "11", weight))
    return "".join(parts)


def _column_title(column: Column, y: float) -> str:
    style = 'font-size="14" font-weight="700"' if not column.unit else 'font-size="12.5" font-style="italic"'
    return _halo(column.x, y, style, column.unit or column.thread, _INK if not column.unit else "#5b6774")


def _halo(x: float, y: float, style: str, text: str, colour: str) -> str:
    """Text that stays readable where a curve passes below it: once as a white outline, once as itself."""
    place, shown = f'x="{x:.1f}" y="{y:.1f}" {style}', _text(text)
    outline = 'aria-hidden="true" stroke="#ffffff" stroke-width="4" stroke-linejoin="round" fill="#ffffff"'
    return f'<text {outline} {place}>{shown}</text><text fill="{colour}" {place}>{shown}</text>'


def _box(box: NodeBox, emphasis: Emphasis) -> str:
    stroke, width = (MARKED, 2.6) if box.uid in emphasis.boxes else (_STROKE[box.kind], 1.2)
    if box.uid in emphasis.stops:
        stroke, width = STOPS, 2.2
    dashes = ' stroke-dasharray="5 3"' if box.dashed else ""
    parts = [
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="7" '
        f'fill="{_FILL[box.kind]}" stroke="{stroke}" stroke-width="{width}"{dashes}/><g font-family="{_MONO}">'
    ]
    first = box.y + (box.height - 15 * (len(box.lines) - 1)) / 2 + 4
    for index, line in enumerate(box.lines):
        faint = ' fill="#5b6774"' if line.faint else ""
        y = first + 15 * index
        parts.append(f'<text xml:space="preserve" x="{box.x + 10:.1f}" y="{y:.1f}"{faint}>{_text(line.text)}</text>')
    return "".join([*parts, "</g>"])


def _edge(name: str, emphasis: Emphasis, content: str) -> str:
    """A part of an arrow, under the name of its relation; hidden if all relations in the name are."""
    off = ' display="none"' if all(part in emphasis.off for part in name.split(JOIN)) else ""
    return f'<g data-relation="{_text(name)}"{off}>{content}</g>'


def _under(path: str) -> str:
    """A broad pale line under a line that is part of the story."""
    style = 'stroke-opacity="0.17" stroke-width="9" stroke-linecap="round" fill="none"'
    return f'<path d="{path}" stroke="{MARKED}" {style}/>'


def _po(first: NodeBox, second: NodeBox, *, on_path: bool) -> str:
    x = first.x + PO_INSET
    top, bottom = (first.bottom, second.y) if first.y <= second.y else (first.y, second.bottom)
    path = f"M{x:.1f} {top:.1f}V{bottom - 5:.1f}"
    line = f'<path d="{path}" stroke="{PO_COLOUR}" stroke-width="1.3" fill="none"/>'
    head = f'<path d="M{x - 3.5:.1f} {bottom - 7:.1f}h7l-3.5 7z" fill="{PO_COLOUR}"/>'
    return _edge("po", PLAIN, (_under(path) if on_path else "") + line + head)


def _curve(route: Route, colour: dict[str, str], emphasis: Emphasis) -> str:
    name, curve = route.edge.name, route.curve
    (x, y), tip = curve[0][0], curve[-1]
    path = f"M{x:.1f} {y:.1f}"
    head, base = _head(tip)
    for index, (_, c1, c2, end) in enumerate(curve):
        stop = base if index == len(curve) - 1 else end
        path += f"C{c1[0]:.1f} {c1[1]:.1f} {c2[0]:.1f} {c2[1]:.1f} {stop[0]:.1f} {stop[1]:.1f}"
    on_path = {(route.edge.first, route.edge.second), (route.edge.second, route.edge.first)} & set(emphasis.path)
    dashes = ' stroke-dasharray="6 4"' if name.startswith(STOPPED) else ""
    width = 2.2 if on_path else 1.5
    line = f'<path d="{path}" stroke="{colour[name]}" stroke-width="{width}" fill="none"{dashes}/>'
    return _edge(name, emphasis, (_under(path) if on_path else "") + line + f'<path d="{head}" fill="{colour[name]}"/>')


def _head(cubic: Cubic) -> tuple[str, tuple[float, float]]:
    """The arrow head at the end of a curve as a path, and where its base is."""
    _, start, before, (x, y) = cubic
    dx, dy = x - before[0], y - before[1]
    if not (dx or dy):
        dx, dy = x - start[0], y - start[1]
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    dx, dy = dx / length, dy / length
    bx, by = x - 9 * dx, y - 9 * dy
    left, right = (bx - 4 * dy, by + 4 * dx), (bx + 4 * dy, by - 4 * dx)
    return f"M{x:.1f} {y:.1f}L{left[0]:.1f} {left[1]:.1f}L{right[0]:.1f} {right[1]:.1f}z", (bx + 2 * dx, by + 2 * dy)


def _label(route: Route, colour: dict[str, str], emphasis: Emphasis) -> str:
    (x, y), name = route.label, route.edge.name
    lines, width = label_lines(name), label_width(name) + 4
    top = y - 7.5 * len(lines)
    parts = [
        f'<rect x="{x - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" height="{15 * len(lines)}" rx="3" '
        f'fill="#ffffff" fill-opacity="0.92"/><g font-family="{_MONO}" text-anchor="middle" font-weight="700" '
        f'fill="{colour[name]}">'
    ]
    parts += [f'<text x="{x:.1f}" y="{top + 11.5 + 15 * n:.1f}">{_text(line)}</text>' for n, line in enumerate(lines)]
    return _edge(name, emphasis, "".join([*parts, "</g>"]))


def _legend(
    names: list[str], colour: dict[str, str], top: float, width: float, *, po: bool, dashed: bool
) -> tuple[list[str], float]:
    """One entry for each kind of arrow and for dashed boxes, wrapped to the width; and where the legend ends."""
    entries = [("po", PO_COLOUR, "program order")] if po else []
    entries += [(name, colour[name], MEANINGS.get(name, "")) for name in names]
    marks = []
    for name, paint, meaning in entries:
        dashes = ' stroke-dasharray="6 4"' if name.startswith(STOPPED) else ""
        line = f'<path d="M{{x:.1f}} {{y:.1f}}h26" stroke="{paint}" stroke-width="2"{dashes}/>'
        marks.append((line, f"{name}: {meaning}" if meaning else name))
    if dashed:
        box = f'<path d="M{{x:.1f}} {{y:.1f}}m0 -5h24v10h-24z" fill="none" stroke="{_STROKE["other"]}" '
        marks.append((box + 'stroke-dasharray="5 3"/>', "dashed: asynchronous, outside of program order"))
    parts, x, y = [], float(MARGIN), top
    for mark, text in marks:
        needed = 34 + 6.6 * len(text) + 20
        if x + needed > width and x > MARGIN:
            x, y = float(MARGIN), y + 19
        parts.append(mark.format(x=x, y=y - 4) + _words(x + 32, y, text, "12"))
        x += needed
    return parts, y + 16


def _text(text: str) -> str:
    return escape(escaped(_NOT_XML.sub("\ufffd", text)))
