"""What a model says of a counterexample, in words and as a picture; the bound that a search reached, drawn.

In: a property, a model, the text of a program; size -> seconds. Out: text, SVG. Settled here: the
execution that is shown is the one in which the check of the property fails.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from xml.sax.saxutils import escape

from memmodel import api
from memmodel.report.picture.draw import draw
from memmodel.report.report import Report
from memmodel.report.text import explain
from memmodel.search.properties import joined, load_property

_WIDTH, _HEIGHT, _MARGIN = 560, 300, 60
_LEAST = 0.1
"""Shorter times are drawn as this many seconds."""
_COLOURS = ("steelblue", "firebrick", "seagreen", "darkorange", "purple", "grey")


def _report(name: str, model: str, text: str, check: str) -> Report:
    prop = load_property(name)
    if prop.kind == "inclusion":
        return api.check(text, model)
    report = api.check(text, joined(prop, model), engine="enumerate")
    shown = tuple(finding for finding in report.answer.findings if finding.flag == check)
    answer = replace(report.answer, findings=shown, witness=shown[0].witness if shown else report.answer.witness)
    return replace(report, answer=answer)


def explained(name: str, model: str, text: str, check: str) -> str:
    """The report on a counterexample, with nothing but the finding that it is about."""
    return explain(_report(name, model, text, check))


def picture(name: str, model: str, text: str, check: str) -> str:
    """The execution that breaks the property, as SVG."""
    return draw(_report(name, model, text, check), "svg")


def bound_plot(searches: Mapping[str, Mapping[int, float]]) -> str:
    """A stair for each search: at each time, the size up to which all programs were judged. Time is logarithmic."""
    times = [max(time, _LEAST) for reached in searches.values() for time in reached.values()]
    largest = max((size for reached in searches.values() for size in reached), default=1)
    first, last = math.floor(math.log10(min(times, default=_LEAST))), math.ceil(math.log10(max(times, default=1.0)))
    span = max(last - first, 1)

    def at(time: float, size: float) -> tuple[float, float]:
        along = (math.log10(max(time, _LEAST)) - first) / span
        return _MARGIN + along * (_WIDTH - 2 * _MARGIN), _HEIGHT - _MARGIN - size / largest * (_HEIGHT - 2 * _MARGIN)

    (left, low), (right, top) = at(10.0**first, 0), at(10.0 ** (first + span), largest)
    drawn = [f'<path d="M{left:.0f},{top:.0f} V{low:.0f} H{right:.0f}" fill="none" stroke="black"/>']
    for power in range(first, first + span + 1):
        x, _ = at(10.0**power, 0)
        drawn.append(f'<path d="M{x:.0f},{low:.0f} v4" stroke="black"/>')
        drawn.append(f'<text x="{x:.0f}" y="{low + 18:.0f}" text-anchor="middle">{10.0**power:g} s</text>')
    for size in range(1, largest + 1):
        drawn.append(f'<text x="{left - 6:.0f}" y="{at(1.0, size)[1] + 4:.0f}" text-anchor="end">{size}</text>')
    for number, (name, reached) in enumerate(searches.items()):
        drawn += _stair(name, [at(time, size) for size, time in sorted(reached.items())], low, number)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" font-size="11"'
    body = "\n".join(['<rect width="100%" height="100%" fill="white"/>', *drawn])
    said = f'<text x="{left:.0f}" y="{top - 14:.0f}">instructions</text>'
    return f'{head} font-family="sans-serif">\n{body}\n{said}\n</svg>\n'


def _stair(name: str, points: list[tuple[float, float]], low: float, number: int) -> list[str]:
    """The curve of one search: it rises to a size when all programs of the size are done."""
    if not points:
        return []
    colour, path = _COLOURS[number % len(_COLOURS)], f"M{points[0][0]:.1f},{low:.1f}"
    for x, y in points:
        path += f" H{x:.1f} V{y:.1f}"
    x, y = points[-1]
    dots = [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5" fill="{colour}"/>' for a, b in points]
    label = f'<text x="{x + 6:.1f}" y="{y - 4 + 18 * (number % 2):.1f}" fill="{colour}">{escape(name)}</text>'
    return [f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"/>', *dots, label]
