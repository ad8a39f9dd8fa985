"""What a model says of a counterexample, in words and as a picture; the bound that a search reached, drawn.

In: a property, a model, the text of a program; size -> seconds. Out: text, SVG. Settled here: the
execution that is shown is the one in which the check of the property fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from memmodel import api
from memmodel.report.picture.draw import draw
from memmodel.report.report import Report
from memmodel.report.text import explain
from memmodel.search.properties import joined, load_property

_WIDTH, _HEIGHT, _MARGIN = 480, 240, 40


def _report(name: str, model: str, text: str, check: str) -> Report:
    it = load_property(name)
    if it.kind == "inclusion":
        return api.check(text, model)
    report = api.check(text, joined(it, model), engine="enumerate")
    shown = tuple(one for one in report.answer.findings if one.flag == check)
    answer = replace(report.answer, findings=shown, witness=shown[0].witness if shown else report.answer.witness)
    return replace(report, answer=answer)


def explained(name: str, model: str, text: str, check: str) -> str:
    """The report on a counterexample, with nothing but the finding that it is about."""
    return explain(_report(name, model, text, check))


def picture(name: str, model: str, text: str, check: str) -> str:
    """The execution that breaks the property, as SVG."""
    return draw(_report(name, model, text, check), "svg")


def bound_plot(seconds: Mapping[int, float]) -> str:
    """A stair: at each time, the size up to which all programs were judged."""
    longest = max(seconds.values(), default=1.0) or 1.0
    largest = max(seconds, default=1)

    def at(time: float, size: float) -> tuple[float, float]:
        return _MARGIN + time / longest * (_WIDTH - 2 * _MARGIN), _HEIGHT - _MARGIN - size / largest * (
            _HEIGHT - 2 * _MARGIN
        )

    points, before = [at(0.0, 0.0)], 0
    for size, time in sorted(seconds.items()):
        points += [at(time, before), at(time, size)]
        before = size
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    marks = [
        f'<text x="{x:.1f}" y="{y - 6:.1f}" text-anchor="middle">{size}: {time:.1f} s</text>'
        for size, time in sorted(seconds.items())
        for x, y in [at(time, size)]
    ]
    left, low = at(0.0, 0.0)
    right, top = at(longest, largest)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" font-size="11" '
            'font-family="sans-serif">',
            '<rect width="100%" height="100%" fill="white"/>',
            f'<path d="M{left},{top} V{low} H{right}" fill="none" stroke="black"/>',
            f'<polyline points="{line}" fill="none" stroke="steelblue" stroke-width="2"/>',
            *marks,
            f'<text x="{right}" y="{low + 24}" text-anchor="end">seconds</text>',
            f'<text x="{left - 8}" y="{top - 18}">instructions</text>',
            "</svg>",
            "",
        ]
    )
