"""Litmus tests, diffs and explanations as HTML: coloured, marked, and escaped.

In: text from files of other people. Out: HTML in which none of that text can be markup, leave its element or turn the
direction of writing round. Settled here: every piece of such text goes through `shown`.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import accumulate, pairwise

from memmodel.output import escaped
from memmodel.report.page.sheet import STYLE_MARK, WORDS, SourceMark

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/|\(\*.*?\*\))
    | (?P<string>"[^"]*")
    | (?P<word>\b(?:PTX|thread|exists|forall|locations|aliases|not|true)\b)
    | (?P<label>^[ \t]*[A-Za-z_$][\w$]*:(?!:))
    | (?P<place>@[ ]?(?:cta|gpu|cluster|grid|warp)\b|\b(?:cta|gpu|cluster|grid|warp)(?=[ ]\d))
    | (?P<guard>@!?%?\w+)
    | (?P<register>%[\w$]+(?:\.[xyz]\b)?)
    | (?P<directive>(?<![\w$])\.[A-Za-z]\w*(?:::\w+)*)
    | (?P<operation>\b[a-z][a-z0-9]*(?:_\w+)?(?:(?:\.|::)[\w]+)+)
    | (?P<number>(?<![\w$.])-?(?:0[xX][0-9a-fA-F]+|\d[\w.]*))""",
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_KINDS = {"place": "word", "guard": "label"}
"""Kinds that are coloured like another one."""

MOST_LINES = 20_000
"""At most this many lines of a source are shown, and those with a mark."""

_ROLES = frozenset(("title", "name", "good", "bad", "warning", "undecided"))


Piece = tuple[int, int, str]
"""Characters start..end of the source, and their kind."""


def shown(text: str) -> str:
    """Text as HTML, also inside an attribute; controls and marks of direction written out."""
    return escape(escaped(text), quote=True)


def source_html(text: str, marks: Sequence[SourceMark]) -> str:
    """A test with its lines numbered and its marks labelled. Of a very long one, the first lines and the marked."""
    spelled = text.rstrip("\n").split("\n")
    starts = list(accumulate((len(line) + 1 for line in spelled), initial=0))
    tokens: list[list[Piece]] = [[] for _ in starts]
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        for line_number in range(bisect(starts, match.start()) - 1, bisect(starts, match.end() - 1)):
            tokens[line_number].append((match.start(), match.end(), _KINDS.get(kind, kind)))
    lines: list[str] = []
    for number, (start, line) in enumerate(zip(starts, spelled, strict=False), 1):
        end = start + len(line)
        source_marks = [mark for mark in marks if mark.start < end and mark.end > start]
        if number > MOST_LINES and not source_marks:
            continue
        begun = [mark.role for mark in source_marks if mark.start >= start]
        notes = "".join(f'<span class="note {role}">{WORDS[role]}</span>' for role in begun)
        code = "".join(_segments(text, start, end, tokens[number - 1], source_marks))
        lines.append(f'<span class="line" data-line="{number}">{code}{notes}</span>')
    if len(lines) < len(spelled):
        lines.append(f'<span class="line">… {len(spelled) - len(lines):,} more lines</span>')
    return f'<pre class="code" tabindex="0" aria-label="Source">{"".join(lines)}</pre>'


def _segments(text: str, start: int, end: int, tokens: Sequence[Piece], marks: Sequence[SourceMark]) -> Iterator[str]:
    """One line, cut where a token or a mark begins or ends."""
    cuts = {start, end, *(min(max(at, start), end) for token in tokens for at in token[:2])}
    cuts |= {min(max(at, start), end) for mark in marks for at in (mark.start, mark.end)}
    places = sorted(cuts)
    open_mark: SourceMark | None = None
    for low, high in pairwise(places):
        mark = next((candidate for candidate in marks if candidate.start <= low and high <= candidate.end), None)
        if mark is not open_mark:
            yield ("</mark>" if open_mark else "") + (_open(mark) if mark else "")
            open_mark = mark
        kind = next((kind for first, last, kind in tokens if first <= low and high <= last), "")
        piece = shown(text[low:high])
        yield f'<span class="{kind}">{piece}</span>' if kind else piece
    if open_mark:
        yield "</mark>"


def _open(mark: SourceMark) -> str:
    return f'<mark class="{mark.role}" title="{shown(f"{WORDS[mark.role]}: {mark.title}")}">'


def diff_html(text: str) -> str:
    """A unified diff, with added and removed lines marked."""
    kinds = {"+": "added", "-": "removed", "@": "place"}
    lines = []
    for number, line in enumerate(text.rstrip("\n").split("\n")):
        kind = "head" if number < 2 else kinds.get(line[:1], "same")
        lines.append(f'<span class="line {kind}">{shown(line)}</span>')
    return f'<pre class="diff" tabindex="0" aria-label="Diff">{"".join(lines)}</pre>'


def told_html(lines: Iterable[str]) -> str:
    """An explanation; styled words keep their roles."""
    text = "\n".join(lines)
    parts = text.split(STYLE_MARK)
    pieces, at = [], 0
    while at < len(parts):
        pieces.append(shown(parts[at]))
        if at + 2 < len(parts) and parts[at + 1] in _ROLES:
            pieces.append(f'<span class="{parts[at + 1]}">{shown(parts[at + 2])}</span>')
            at += 3
        else:
            at += 1
    return f'<pre class="told" tabindex="0" aria-label="Explanation">{"".join(pieces)}</pre>'
