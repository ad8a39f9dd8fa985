"""Changes of PTX text, and the text with them: to be judged, and to be read.

In: the text, `PtxEdit`s. Out: texts. To be judged, what is put in stands on the line of the instruction beside it, so
that the lines of all others stay; to be read, it has a line of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True, order=True)
class PtxEdit:
    """Characters start..end of the text become `text`; nothing is replaced if both are equal.

    `line`: of the instruction beside it; `what`: in words; `cost`: by the table of `repair.costs`.
    """

    start: int
    end: int
    text: str
    line: int
    what: str
    cost: float


PtxEdits = tuple[PtxEdit, ...]


def inline(text: str, edits: PtxEdits) -> str:
    """The text to be judged: as many lines as before."""
    return _with(text, ((one.start, one.end, _on_one_line(one)) for one in edits))


def inserted(edits: PtxEdits) -> list[range]:
    """Where in `inline` what was put in stands."""
    found, moved = [], 0
    for one in sorted(edits):
        new = len(_on_one_line(one))
        if one.start == one.end:
            found.append(range(one.start + moved, one.start + moved + new))
        moved += new - (one.end - one.start)
    return found


def original(edits: PtxEdits, offset: int) -> int:
    """Where a character of `inline` stands in the text without the edits, or where what was put in begins there."""
    moved = 0
    for one in sorted(edits):
        at = one.start + moved
        new = len(_on_one_line(one))
        if offset < at:
            break
        if offset < at + new:
            return one.start
        moved += new - (one.end - one.start)
    return offset - moved


def laid(text: str, edits: PtxEdits) -> str:
    """The text to be read: new instructions have lines of their own."""
    return _with(text, ((at, one.end - one.start + at, put) for one in edits for at, put in [_laid(text, one)]))


def cost(edits: PtxEdits) -> float:
    """What changes cost together."""
    return sum(one.cost for one in edits)


def apart(edits: PtxEdits) -> bool:
    """Does no edit touch what another one replaces, and is none there twice?"""
    ordered = sorted(edits)
    return all(
        one.end <= other.start and (one.start, one.text) != (other.start, other.text)
        for one, other in pairwise(ordered)
    )


def _on_one_line(edit: PtxEdit) -> str:
    return f" {edit.text} " if edit.end == edit.start else edit.text


def _laid(text: str, edit: PtxEdit) -> tuple[int, str]:
    """Where an edit goes, and as what: a line of its own if the instruction beside it has one."""
    if edit.end > edit.start:
        return edit.start, edit.text
    first = text.rfind("\n", 0, edit.start) + 1
    last = text.find("\n", edit.start)
    last = len(text) if last < 0 else last
    before, behind = text[first : edit.start], text[edit.start : last]
    indent = before[: len(before) - len(before.lstrip())]
    lines = "".join(f"{indent}{one.strip()};\n" for one in edit.text.split(";") if one.strip())
    if not before.strip():
        return first, lines
    if not behind.strip() or behind.lstrip().startswith("//"):
        return min(last + 1, len(text)), lines
    return edit.start, f" {edit.text}"


def _with(text: str, changes: Iterable[tuple[int, int, str]]) -> str:
    found, at = [], 0
    for start, end, new in sorted(changes):
        found += [text[at:start], new]
        at = end
    return "".join([*found, text[at:]])
