"""Changes of PTX text, and the text with them: to be judged, and to be read.

In: the text, `PtxEdit`s. Out: texts. In the text to be judged an insertion stands on the line of the instruction beside
it, so that all other lines keep their numbers; in the text to be read it has a line of its own.
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
    return _with(text, ((edit.start, edit.end, _on_one_line(edit)) for edit in edits))


def inserted(edits: PtxEdits) -> list[range]:
    """The ranges of insertions in `inline`."""
    places, moved = [], 0
    for edit in sorted(edits):
        new = len(_on_one_line(edit))
        if edit.start == edit.end:
            places.append(range(edit.start + moved, edit.start + moved + new))
        moved += new - (edit.end - edit.start)
    return places


def original(edits: PtxEdits, offset: int) -> int:
    """The place of a character of `inline` in the text without the edits; of an insertion, its place there."""
    moved = 0
    for edit in sorted(edits):
        at = edit.start + moved
        new = len(_on_one_line(edit))
        if offset < at:
            break
        if offset < at + new:
            return edit.start
        moved += new - (edit.end - edit.start)
    return offset - moved


def laid(text: str, edits: PtxEdits) -> str:
    """The text to be read: new instructions have lines of their own."""
    return _with(text, (_gone(text, edit) if not edit.text else _laid(text, edit) for edit in edits))


def cost(edits: PtxEdits) -> float:
    """What changes cost together."""
    return sum(edit.cost for edit in edits)


def disjoint(edits: PtxEdits) -> bool:
    """True if no edit touches what another replaces, and none is repeated."""
    ordered = sorted(edits)
    return all(
        edit.end <= later.start and (edit.start, edit.text) != (later.start, later.text)
        for edit, later in pairwise(ordered)
    )


def _on_one_line(edit: PtxEdit) -> str:
    return f" {edit.text} " if edit.end == edit.start else edit.text


def _gone(text: str, edit: PtxEdit) -> tuple[int, int, str]:
    """The characters that go with an instruction: its line, if nothing else stands there."""
    first, last = text.rfind("\n", 0, edit.start) + 1, text.find("\n", edit.end)
    last = len(text) if last < 0 else last
    rest = text[edit.end : last].strip()
    alone = not text[first : edit.start].strip() and (not rest or rest.startswith("//"))
    return (first, min(last + 1, len(text)), "") if alone else (edit.start, edit.end, "")


def _laid(text: str, edit: PtxEdit) -> tuple[int, int, str]:
    """The place and the text of an edit: a line of its own if the instruction beside it has one."""
    if edit.end > edit.start:
        return edit.start, edit.end, edit.text
    first = text.rfind("\n", 0, edit.start) + 1
    last = text.find("\n", edit.start)
    last = len(text) if last < 0 else last
    before, rest = text[first : edit.start], text[edit.start : last]
    indent = before[: len(before) - len(before.lstrip())]
    new = (line.strip() for line in edit.text.split(";"))
    lines = "".join(f"{indent}{line}{'' if line.endswith(':') else ';'}\n" for line in new if line)
    if not before.strip():
        return first, first, lines
    if not rest.strip() or rest.lstrip().startswith("//"):
        end = min(last + 1, len(text))
        return end, end, lines
    behind = before.rstrip().endswith(";")
    return edit.start, edit.start, f" {edit.text}" if behind else f"{edit.text} "


def _with(text: str, changes: Iterable[tuple[int, int, str]]) -> str:
    parts, at = [], 0
    for start, end, new in sorted(changes):
        parts += [text[at:start], new]
        at = end
    return "".join([*parts, text[at:]])
