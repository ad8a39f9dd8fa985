"""Changes of a test's text: each replaces some characters, so that the rest of the file stays as its writer has it.

In: the text of a test, edits. Out: the changed text, a unified diff. Settled here: of several edits of one place, the
strongest counts.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from memmodel.litmus.syntax import Instruction, Thread


@dataclass(frozen=True, slots=True)
class Edit:
    """Characters start..end become `text`. `what`: the change in words. `cost`: what it adds, or saves if negative.

    `group`: edits of one group change the same thing, and one with a higher `level` does more of it. `implies`: groups
    whose edits add nothing where this one is made. `adds`: how many instructions are put before that of `group`; -1:
    that one goes. `rank`: its turn among what is put at one place. `more`: what is changed with it.
    """

    start: int
    end: int
    text: str
    what: str
    cost: float
    group: tuple[object, ...]
    level: int = 0
    implies: frozenset[tuple[object, ...]] = frozenset()
    adds: int = 0
    rank: int = 0
    more: tuple[Edit, ...] = ()

    def __hash__(self) -> int:
        return hash((self.start, self.end, self.what))


def about_numbers(edit: Edit) -> bool:
    """True if a change replaces a number or moves a fence."""
    return edit.group[2] in ("number", "expected", "move")


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text with the edits made; of one group the one with the highest level counts."""
    chosen: dict[tuple[object, ...], Edit] = {}
    for edit in edits:
        for part in (edit, *edit.more):
            known = chosen.get(part.group)
            if known is None or known.level < part.level:
                chosen[part.group] = part
    pieces: list[str] = []
    done = 0
    for edit in sorted(chosen.values(), key=lambda edit: (edit.start, edit.end, edit.rank)):
        if edit.start < done:  # inside a piece that is gone
            pieces += [edit.text] if edit.start == edit.end else []
            continue
        pieces += (text[done : edit.start], edit.text)
        done = edit.end
    return "".join(pieces) + text[done:]


def place(thread: Thread, item: Instruction) -> str:
    """An instruction of a thread, in words."""
    return f"{thread.name}, line {item.span.line}"


def respelled(
    thread: Thread,
    item: Instruction,
    mnemonic: str,
    cost: float,
    group: tuple[object, ...],
    *,
    what: str = "",
    level: int = 0,
) -> Edit:
    """The change that gives an instruction another mnemonic. `what`: what else is said of it."""
    span = item.mnemonic_span
    what = f"{place(thread, item)}: {item.mnemonic} -> {mnemonic}{what}"
    return Edit(span.start, span.end, mnemonic, what, cost, group, level)


def whole(item: Instruction) -> tuple[int, int]:
    """The characters of an instruction with its `;`, and its line if nothing else stands there."""
    text = item.span.source.text
    start, end = item.span.start, text.index(";", item.span.end) + 1
    line = text.rfind("\n", 0, start) + 1
    after = text.find("\n", end)
    after = len(text) if after < 0 else after
    if not text[line:start].strip() and (not text[end:after].strip() or text[end:after].lstrip().startswith("//")):
        return line, min(after + 1, len(text))
    return start, end


def diff(name: str, old: str, new: str) -> str:
    """A unified diff, as `patch` takes it: nothing but a line feed ends a line."""
    before, after = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (old, new))
    lines = difflib.unified_diff(before, after, f"a/{name.lstrip('/')}", f"b/{name.lstrip('/')}")
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)
