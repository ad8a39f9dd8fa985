"""A picture as SVG text, with nothing but strings.

In: Picture, routes, words. Out: one SVG document, readable on white without zooming. Settled here: colours and fonts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from html import escape

from memmodel.base.classes import dataclass
from memmodel.report.picture.layout import CHAR, INDENT, MARGIN, NodeBox, Picture, ThreadFrame
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
_MONO = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"
_SANS = "'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Words:
    """The text around a picture: title, lines below it, lines at the foot."""

    title: str
    subtitle: tuple[str, ...]
    foot: tuple[str, ...] = ()


def colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for every relation name."""
    extra = [name for name in names if name not in COLOURS]
    others = {name: OTHERS[index % len(OTHERS)] for index, name in enumerate(extra)}
    return COLOURS | others | {name: MARKED for name in extra if name.startswith("stopped: ")}


def subtitle_bottom(words: Words) -> float:
    """Where the picture may begin below the title."""
    return 46 + 18 * len(words.subtitle) + 12


def svg(
    layout: Picture,
    drawn: Sequence[Route],
    po: Sequence[tuple[int, int]],
    words: Words,
    marked: Collection[int] = (),
) -> str:
    """The whole document. `marked`: the boxes that the picture is about."""
    names = list(dict.fromkeys(route.edge.name for route in drawn))
    colour = colours(names)
    widest = max((len(line) for line in (*words.subtitle, *words.foot)), default=0) * 6.9 + 2 * MARGIN
    left, right = _extent(layout, drawn)
    width = max(right - left + 2 * MARGIN, widest, len(words.title) * 10.5 + 2 * MARGIN, 420)
    dashed = any(box.dashed for box in layout.boxes.values())
    legend, legend_bottom = _legend(names, colour, layout.bottom + 30, width, po=bool(po), dashed=dashed)
    height = legend_bottom + 18 * len(words.foot) + 20
    shift = (width - right - left) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img">',
        f"<title>{_text(words.title)}</title>",
        f"<style>text{{font-family:{_MONO};font-size:12px;fill:#1f2733}} .s{{font-family:{_SANS}}} "
        ".halo{stroke:#fff;stroke-width:4px;stroke-linejoin:round}</style>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        f'<text class="s" x="{MARGIN}" y="34" style="font-size:19px;font-weight:700">{_text(words.title)}</text>',
    ]
    for index, line in enumerate(words.subtitle):
        parts.append(f'<text class="s" x="{MARGIN}" y="{58 + 18 * index}" style="font-size:13px">{_text(line)}</text>')
    parts.append(f'<g transform="translate({shift:.1f} 0)">')
    parts += (_frame(frame) for frame in sorted(layout.frames, key=lambda frame: frame.depth))
    parts += (_po(layout.boxes[a], layout.boxes[b]) for a, b in po)
    parts += (_curve(route.curve, colour[route.edge.name], sync=route.edge.name not in MEANINGS) for route in drawn)
    parts += (_box(box, marked=box.uid in marked) for box in layout.boxes.values())
    parts += (_frame_title(frame) for frame in layout.frames)
    for column in layout.columns:
        parts.append(_halo(column.x, layout.header, "font-size:14px;font-weight:700", column.thread))
    parts += (_label(route, colour[route.edge.name]) for route in drawn)
    parts += ["</g>", *legend]
    for index, line in enumerate(words.foot):
        y = legend_bottom + 8 + 18 * index
        parts.append(f'<text class="s" x="{MARGIN}" y="{y:.1f}" style="font-size:13px">{_text(line)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _extent(layout: Picture, drawn: Sequence[Route]) -> tuple[float, float]:
    """The leftmost and the rightmost x of the drawing."""
    spans = [(frame.x, frame.x + frame.width) for frame in layout.frames]
    spans += [(box.x, box.right) for box in layout.boxes.values()]
    for route in drawn:
        half = len(route.edge.name) * CHAR / 2 + 2
        spans += [(x, x) for x, _ in sample(route.curve)] + [(route.label[0] - half, route.label[0] + half)]
    return min((low for low, _ in spans), default=0.0), max((high for _, high in spans), default=0.0)


def _frame(frame: ThreadFrame) -> str:
    fill, stroke = _FRAMES[-1 if frame.title.startswith("CTA") else min(frame.depth, 1)]
    return (
        f'<rect x="{frame.x:.1f}" y="{frame.y:.1f}" width="{frame.width:.1f}" height="{frame.height:.1f}" '
        f'rx="9" fill="{fill}" stroke="{stroke}"/>'
    )


def _frame_title(frame: ThreadFrame) -> str:
    return _halo(frame.x + 9, frame.y + 16, "font-size:11.5px;fill:#5b6774;font-weight:600", frame.title)


def _halo(x: float, y: float, style: str, text: str) -> str:
    """Text that stays readable where a curve passes below it: once as a white outline, once as itself."""
    place = f'x="{x:.1f}" y="{y:.1f}" style="{style}"'
    shown = _text(text)
    return f'<text class="s halo" aria-hidden="true" {place}>{shown}</text><text class="s" {place}>{shown}</text>'


def _box(box: NodeBox, *, marked: bool) -> str:
    stroke, width = (MARKED, 2.6) if marked else (_STROKE[box.kind], 1.2)
    dashes = ' stroke-dasharray="5 3"' if box.dashed else ""
    parts = [
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="7" '
        f'fill="{_FILL[box.kind]}" stroke="{stroke}" stroke-width="{width}"{dashes}/>'
    ]
    first = box.y + (box.height - 15 * (len(box.lines) - 1)) / 2 + 4
    for index, line in enumerate(box.lines):
        style = ' style="fill:#5b6774"' if line.faint else ""
        y = first + 15 * index
        parts.append(f'<text xml:space="preserve" x="{box.x + 10:.1f}" y="{y:.1f}"{style}>{_text(line.text)}</text>')
    return "".join(parts)


def _po(first: NodeBox, second: NodeBox) -> str:
    x = first.x + INDENT / 2
    top, bottom = (first.bottom, second.y) if first.y <= second.y else (first.y, second.bottom)
    line = f'<path d="M{x:.1f} {top:.1f}V{bottom - 5:.1f}" stroke="{PO_COLOUR}" stroke-width="1.3" fill="none"/>'
    return line + f'<path d="M{x - 3.5:.1f} {bottom - 7:.1f}h7l-3.5 7z" fill="{PO_COLOUR}"/>'


def _curve(curve: tuple[Cubic, ...], colour: str, *, sync: bool) -> str:
    (x, y), tip = curve[0][0], curve[-1]
    path = f"M{x:.1f} {y:.1f}"
    head, base = _head(tip)
    for index, (_, c1, c2, end) in enumerate(curve):
        stop = base if index == len(curve) - 1 else end
        path += f"C{c1[0]:.1f} {c1[1]:.1f} {c2[0]:.1f} {c2[1]:.1f} {stop[0]:.1f} {stop[1]:.1f}"
    dashes = ' stroke-dasharray="6 3"' if sync else ""
    line = f'<path d="{path}" stroke="{colour}" stroke-width="1.8" fill="none"{dashes}/>'
    return line + f'<path d="{head}" fill="{colour}"/>'


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


def _label(route: Route, colour: str) -> str:
    x, y = route.label
    width = len(route.edge.name) * CHAR + 4
    return (
        f'<rect x="{x - width / 2:.1f}" y="{y - 7.5:.1f}" width="{width:.1f}" height="15" rx="3" fill="#ffffff" '
        f'fill-opacity="0.92"/><text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" '
        f'style="fill:{colour};font-weight:700">{_text(route.edge.name)}</text>'
    )


def _legend(
    names: list[str], colour: dict[str, str], top: float, width: float, *, po: bool, dashed: bool
) -> tuple[list[str], float]:
    """One entry for each kind of arrow and for dashed boxes, wrapped to the width; and where the legend ends."""
    entries = [("po", PO_COLOUR, "program order")] if po else []
    entries += [(name, colour[name], MEANINGS.get(name, "")) for name in names]
    marks = []
    for name, paint, meaning in entries:
        dashes = "" if name in MEANINGS or name == "po" else ' stroke-dasharray="6 3"'
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
        shown = f'<text class="s" x="{x + 32:.1f}" y="{y:.1f}">{_text(text)}</text>'
        parts.append(mark.format(x=x, y=y - 4) + shown)
        x += needed
    return parts, y + 16


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text))
