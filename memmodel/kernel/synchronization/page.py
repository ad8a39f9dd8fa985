"""The synchronization report of a kernel as one HTML page that needs nothing else.

In: SynchronizationReport. Out: HTML. Settled here: what is said of an instruction stands below its line of the text
that was given, PTX or what was compiled; of other lines a few around it are shown. The page runs no script, and its
policy allows nothing but its own style.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from memmodel.errors import InputError
from memmodel.kernel.output.places import on_disk, places
from memmodel.kernel.output.text import headline as verdict_line
from memmodel.kernel.synchronization.picture import legend, picture
from memmodel.kernel.synchronization.pipeline import Pipeline
from memmodel.kernel.synchronization.report import Necessity, OrderedAccesses, Synchronization, SynchronizationReport
from memmodel.kernel.synchronization.text import headline, late_lines, minimum_lines, undecided_in
from memmodel.output import escaped
from memmodel.source import Source

AROUND = 4
"""Lines that are shown before and after one with synchronization."""

MOST = 6
"""Ordered accesses that are shown of one instruction."""

STYLES = {
    Necessity.NEEDED: "needed", Necessity.STRONGER: "stronger", Necessity.READING: "reading",
    Necessity.NEEDLESS: "needless", Necessity.OPEN: "open", Necessity.UNREACHED: "unreached",
    Necessity.LATE: "open",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Listing:
    """A text, and what is said of its lines, by number."""

    source: Source
    notes: dict[int, list[Synchronization]]


def listings(report: SynchronizationReport) -> list[Listing]:
    """The texts that synchronizations stand in, in the order in which they are first met."""
    found: dict[str, Listing] = {}
    for synchronization in report.synchronizations:
        source, line = _written(synchronization)
        listing = found.setdefault(source.name, Listing(source, {}))
        listing.notes.setdefault(line, []).append(synchronization)
    return list(found.values())


def _written(synchronization: Synchronization) -> tuple[Source, int]:
    """The text that was given, and the line of an instruction in it. What was compiled and cannot be read, or comes
    from a library, stands in the PTX.
    """
    instruction = synchronization.instruction
    for location in () if on_disk(instruction) else places(instruction.location)[:1]:
        try:
            return Source.read(location.file), location.line
        except InputError:
            continue
    return instruction.span.source, instruction.line


def report_page(report: SynchronizationReport) -> str:
    """The page."""
    style = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    title, least = _shown(headline(report)), minimum_lines(report.minimum, undecided_in(report))
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta http-equiv="Content-Security-Policy" '
            f"content=\"default-src 'none'; style-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none'\">",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{title}</title><style>{style}</style></head><body>",
            f"<header><h1>{title}</h1><p>{_shown(verdict_line(report.base))}</p>",
            *(f"<p>{_shown(line.strip())}</p>" for line in (*late_lines(report), *least)),
            f"</header><main>{_drawn(report)}{_summary(report)}",
            *(_listing(listing, report.pipeline) for listing in listings(report)),
            "</main></body></html>\n",
        ]
    )


def _shown(text: str) -> str:
    return escape(escaped(text))


def _opcode(synchronization: Synchronization) -> str:
    """The opcode, which may be broken before its words."""
    return _shown(synchronization.instruction.opcode).replace(".", "<wbr>.")


def _anchor(synchronization: Synchronization) -> str:
    return f"at{synchronization.instruction.number}"


def _drawn(report: SynchronizationReport) -> str:
    """The picture of the whole kernel, if anything is handed over."""
    if report.pipeline is None or not report.pipeline.hand_overs:
        return ""
    anchors = frozenset(it.instruction.number for it in report.synchronizations)
    return f"<h2>Pipeline</h2><p>{_shown(legend(report.pipeline))}</p>{picture(report.pipeline, anchors=anchors)}"


def _summary(report: SynchronizationReport) -> str:
    """All of it in a table, each row a link to its line."""
    rows = "".join(
        f'<tr><td><a href="#{_anchor(it)}">{_written(it)[1]}</a></td>'
        f"<td><code>{_opcode(it)}</code></td><td>{_badge(it.need)}</td>"
        f"<td>{_shown(it.phrase or it.without)}</td></tr>"
        for it in report.synchronizations
    )
    head = "<tr><th>Line</th><th>Instruction</th><th>Needed</th><th>What it does</th></tr>"
    return f'<div class="wide"><table>{head}{rows}</table></div>'


def _badge(need: Necessity) -> str:
    return f'<span class="badge {STYLES[need]}">{need.value}</span>'


def _listing(listing: Listing, pipeline: Pipeline | None) -> str:
    text = listing.source.text.splitlines()
    rows = "".join(_rows(text, listing.notes, pipeline))
    return f"<h2>{_shown(listing.source.name)}</h2><div class='code'>{rows}</div>"


def _rows(text: Sequence[str], notes: dict[int, list[Synchronization]], pipeline: Pipeline | None) -> Iterator[str]:
    near = {line + step for line in notes for step in range(-AROUND, AROUND + 1)}
    left_out = 0
    for number, line in enumerate(text, 1):
        if number not in near:
            left_out += 1
            continue
        if left_out:
            yield _gap(left_out)
            left_out = 0
        here = notes.get(number, [])
        kind = f" {STYLES[here[0].need]}" if here else ""
        yield f'<div class="line{kind}"><span class="number">{number}</span><code>{_shown(line) or " "}</code></div>'
        yield from (_note(synchronization, pipeline) for synchronization in here)
    if left_out:
        yield _gap(left_out)


def _gap(count: int) -> str:
    return f'<div class="gap">{count} line{"s" if count > 1 else ""}</div>'


def _note(synchronization: Synchronization, pipeline: Pipeline | None) -> str:
    sentences = [synchronization.without, *(_weaker(what, why) for what, why in synchronization.weaker)]
    orders = synchronization.orders
    more = f"<li>{len(orders) - MOST} more</li>" if len(orders) > MOST else ""
    listed = "".join(f"<li>{_ordered(accesses)}</li>" for accesses in orders[:MOST])
    details = f"<details><summary>What it orders</summary><ul>{listed}{more}</ul></details>" if orders else ""
    return (
        f'<div class="note {STYLES[synchronization.need]}" id="{_anchor(synchronization)}">'
        f"<p>{_badge(synchronization.need)} <code>{_shown(synchronization.instruction.opcode)}</code></p>"
        + (f"<p>{_shown(orders[0].phrase)}</p>" if orders else "")
        + "".join(f"<p>{_shown(sentence)}</p>" for sentence in sentences if sentence)
        + details
        + _part(synchronization, pipeline)
        + "</div>"
    )


def _part(synchronization: Synchronization, pipeline: Pipeline | None) -> str:
    """The part of the picture that an instruction takes part in."""
    number = synchronization.instruction.number
    part = None if pipeline is None else pipeline.about(number)
    return "" if part is None else f"<details><summary>Its hand-overs</summary>{picture(part)}</details>"


def _weaker(what: str, why: str) -> str:
    return f"weaker is enough: {what}" + (f"; {why}" if why else "")


def _ordered(accesses: OrderedAccesses) -> str:
    pairs = f" ({accesses.count} pairs)" if accesses.count > 1 else ""
    return _shown(accesses.phrase) + pairs
