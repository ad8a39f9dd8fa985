"""The page itself: one HTML file that needs nothing else.

In: sheets. Out: HTML. Settled here: the policy of the page allows its own script and its own style, by their hashes,
and nothing else, no request to anywhere; what is shown of a test stands in a `<template>` until it is opened.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from memmodel.base.resources import DEFAULT_MODEL
from memmodel.report.page.code import diff_html, shown, source_html, told_html
from memmodel.report.page.sheet import Because, Repairs, Sheet
from memmodel.report.picture.draw import Drawing

FILTERS = (("verdict", "Verdict"), ("outcome", "Expectation"), ("finding", "Finding"), ("reason", "Reason"))
"""The attribute of a row that a menu filters by, and what the menu is called."""


def page(sheets: Sequence[Sheet], title: str, note: str = "") -> Iterator[str]:
    """The whole file, piece by piece. `note`: a line on the run, such as that it was broken off."""
    style, script = _asset("page.css"), _asset("page.js")
    allowed = f"script-src '{_hash(script)}'; style-src '{_hash(style)}'"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    yield f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{shown(title)}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#sheet">Skip to the chosen test</a>
<header>
<h1>{shown(title)}</h1>
<p class="sum">{_sum(sheets)}{f". {shown(note)}" if note else ""}</p>
<button type="button" id="theme" aria-label="Colours: as the system has them">Colours: system</button>
</header>
<main>
<section id="list" aria-label="Tests">
{_controls(sheets)}
<div class="rows" id="rows">
<table role="grid" aria-label="Tests" aria-describedby="keys">
<thead><tr role="row"><th scope="col">Test</th><th scope="col">Verdict</th><th scope="col">Found</th></tr></thead>
<tbody>
"""
    for number, sheet in enumerate(sheets):
        yield _row(number, sheet)
    yield """</tbody>
</table>
<p id="none" hidden>No test matches.</p>
</div>
</section>
<section id="sheet" tabindex="-1" aria-label="The chosen test">
<p class="hint">Choose a test.</p>
<noscript><p class="hint">What is said of a test is shown by a script, which this browser does not run.</p></noscript>
</section>
</main>
"""
    for number, sheet in enumerate(sheets):
        yield f'<template id="t{number}">{_sheet(sheet)}</template>\n'
    yield f"<script>{script}</script>\n</body>\n</html>\n"


@cache
def _asset(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _sum(sheets: Sequence[Sheet]) -> str:
    count = Counter(sheet.outcome for sheet in sheets)
    return ", ".join(f"{number} {shown(word)}" for word, number in count.most_common())


def _controls(sheets: Sequence[Sheet]) -> str:
    values: dict[str, Counter[str]] = {name: Counter() for name, _ in FILTERS}
    for sheet in sheets:
        for name, words_of_sheet in _attributes(sheet).items():
            values[name].update(words_of_sheet)
    menus = []
    for name, words in FILTERS:
        options = "".join(
            f'<option value="{shown(value)}">{shown(value)} ({number})</option>'
            for value, number in sorted(values[name].items())
        )
        menus.append(
            f'<label>{words} <select data-filter="{name}"><option value="">all</option>{options}</select></label>'
        )
    return f"""<form role="search" id="controls">
<label class="find">Search <input type="search" id="search" autocomplete="off" spellcheck="false"
 placeholder="name, question, reason" aria-keyshortcuts="/"></label>
{"".join(menus)}
<p id="count" role="status"></p>
<p id="keys" class="keys"><kbd>/</kbd> search, <kbd>↑</kbd> <kbd>↓</kbd> choose, <kbd>Enter</kbd> read,
<kbd>Esc</kbd> back to the list</p>
</form>"""


def _attributes(sheet: Sheet) -> dict[str, tuple[str, ...]]:
    return {
        "verdict": (sheet.verdict,) if sheet.verdict else (),
        "outcome": (sheet.outcome,),
        "finding": sheet.findings,
        "reason": _reasons(sheet),
    }


def _reasons(sheet: Sheet) -> tuple[str, ...]:
    return tuple(dict.fromkeys(because.reason for because in sheet.because))


def _row(number: int, sheet: Sheet) -> str:
    attributes = "".join(
        f' data-{name}="{shown("|".join(values))}"' for name, values in _attributes(sheet).items() if values
    )
    model = "" if sheet.model == DEFAULT_MODEL else f' <span class="model">{shown(sheet.model)}</span>'
    below = shown(sheet.question) if sheet.question else shown(sheet.path)
    chips = "".join(f'<span class="chip found">{shown(word)}</span>' for word in sheet.findings)
    reasons = "; ".join(_reasons(sheet)).replace("; forbidden by ", ", ")
    reason = f'<span class="reason">{shown(reasons)}</span>' if reasons else ""
    return (
        f'<tr role="row" data-number="{number}" tabindex="{0 if number == 0 else -1}" aria-selected="false"'
        f'{attributes} data-path="{shown(sheet.path)}">'
        f'<th role="rowheader" scope="row"><span class="name">{shown(sheet.test)}</span>{model}'
        f'<span class="below">{below}</span></th>'
        f'<td role="gridcell">{_verdict(sheet)}</td><td role="gridcell">{chips}{reason}</td></tr>\n'
    )


def _verdict(sheet: Sheet) -> str:
    word = sheet.verdict or sheet.outcome
    chips = f'<span class="chip {shown(word.replace(" ", "-"))}">{shown(word)}</span>'
    if sheet.verdict and sheet.outcome not in ("as expected", "no expectation"):
        expected = f", expected {sheet.expected}" if sheet.expected and sheet.outcome == "differs" else ""
        chips += f'<span class="chip differs">{shown(sheet.outcome + expected)}</span>'
    return chips


def _sheet(sheet: Sheet) -> str:
    """What is shown of a test when it is chosen."""
    parts = [f'<h2 tabindex="-1">{shown(sheet.test)}</h2>']
    where = f"{sheet.path} under {sheet.model}" if sheet.model else sheet.path
    chips = "".join(f'<span class="chip found">{shown(word)}</span>' for word in sheet.findings)
    parts.append(f'<p class="where">{shown(where)}</p><p class="said">{_verdict(sheet)} {chips}</p>')
    if sheet.question:
        expected = f", as the file expects ({sheet.expected})" if sheet.outcome == "as expected" else ""
        parts.append(f'<p class="question"><code>{shown(sheet.question)}</code>{shown(expected)}</p>')
    if sheet.problem:
        parts.append(f'<pre class="told" tabindex="0">{shown(sheet.problem)}</pre>')
    if sheet.because:
        items = "".join(_because(because) for because in sheet.because)
        parts.append(f'<div class="because {shown(sheet.verdict)}"><h3>Because</h3><ul>{items}</ul></div>')
    if sheet.source:
        parts.append(_section("Source", source_html(sheet.source, sheet.marks), "source"))
    if sheet.picture:
        parts.append(_section("Picture", _picture(sheet.picture), "drawn"))
    elif sheet.no_picture:
        parts.append(_section("Picture", f'<p class="hint">{shown(sheet.no_picture)}</p>', "drawn"))
    if sheet.lines:
        parts.append(_section("Explanation", told_html(sheet.lines), "explained"))
    parts += _repairs(sheet.repairs)
    return "".join(parts)


def _because(because: Because) -> str:
    text = f": {shown(because.text)}" if because.text else ""
    repair = (
        f'<br><span class="hint">{shown(because.would_do.capitalize())}: {shown(because.repair)}</span>'
        if because.repair
        else ""
    )
    return f"<li><strong>{shown(because.reason)}</strong>{text}{repair}</li>"


def _section(title: str, content: str, name: str) -> str:
    return f'<details open class="{name}"><summary>{title}</summary>{content}</details>'


def _picture(drawing: Drawing) -> str:
    """The drawing, and a switch for each relation in it."""
    switches = "".join(
        f'<label><input type="checkbox" data-relation="{shown(name)}"{"" if off else " checked"}>'
        f'<svg class="key" width="22" height="10" aria-hidden="true"><path d="M0 5h22" stroke="{shown(colour)}" '
        f'stroke-width="2.5"/></svg>{shown(name)}</label>'
        for name, colour, off in drawing.relations
    )
    size = '<button type="button" class="size" aria-pressed="false">Full size</button>'
    legend = f'<fieldset class="relations"><legend>Relations</legend>{switches}{size}</fieldset>'
    return f'{legend}<div class="picture" tabindex="0" role="group" aria-label="Picture">{drawing.svg}</div>'


def _repairs(repairs: Repairs) -> Iterable[str]:
    if not repairs.shown and not repairs.note:
        return
    content = f'<p class="hint">{shown(repairs.note)}</p>' if repairs.note else ""
    for number, repair in enumerate(repairs.shown, 1):
        changes = "".join(f"<li>{shown(change)}</li>" for change in repair.changes)
        others = "".join(f"<li>or with {shown(' and '.join(other))}</li>" for other in repair.instead)
        content += f"<h3>Repair {number}, cost {repair.cost:g}</h3><ul>{changes}{others}</ul>{diff_html(repair.diff)}"
    yield _section("Repairs", content, "repairs")
