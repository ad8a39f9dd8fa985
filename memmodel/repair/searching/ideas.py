"""Which repairs are one idea: the same kinds of changes in the same threads, in other places, scopes or spellings.

In: changes. Out: keys that can be compared; repairs, each with others of its idea. A reader who has seen one repair
learns little from the next place for the same fence. Where a thread has three waits, each of which may be an acquire or
be followed by one, eight repairs say nothing more than the first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache

from memmodel.repair.edits import Edit, apply
from memmodel.repair.hints import meets
from memmodel.repair.searching.turns import Changes, cost

FORMS = 3
"""At most this many repairs of one idea are judged and shown; the first of them as the repair."""

Idea = Mapping[Hashable, int]
"""Kinds of changes, and how many of each."""

_SEM = re.compile(r"\.(acquire|release|acq_rel|sc|relaxed)(?=\.|$)")

_MORE = {"acquire": ("acq_rel", "sc"), "release": ("acq_rel", "sc"), "acq_rel": ("sc",)}
"""The semantics that do what others do, and more."""


def idea(changes: Iterable[Edit]) -> Idea:
    """The idea of changes: their kinds, without their places in their threads."""
    return Counter(map(_kind, changes))


def does_more(first: Idea, other: Idea) -> bool:
    """True if the first idea includes the other and is not equal to it."""
    return first != other and has_all(first, other)


def has_all(first: Idea, other: Idea) -> bool:
    """True if the first idea has, for each change of the other, the same change or one that orders more."""
    left = {kind: number - other.get(kind, 0) for kind, number in first.items()}
    for kind, number in other.items():
        missing = number - first.get(kind, 0)
        for more in stronger(kind) if missing > 0 else ():
            taken = min(missing, max(0, left.get(more, 0)))
            missing -= taken
            left[more] = left.get(more, 0) - taken
        if missing > 0:
            return False
    return True


def stronger(kind: Hashable) -> list[Hashable]:
    """The kinds of changes that do what one of this kind does, and more."""
    match kind:
        case (thread, str(sem)) if sem in _MORE:
            return [(thread, more) for more in _MORE[sem]]
    return []


@lru_cache(maxsize=4096)
def _kind(edit: Edit) -> Hashable:
    thread, place, what = edit.group[:3]
    if meets(edit):
        return "meeting", edit.text.split()[0]
    if what == "move":
        return "move", thread, place
    if "wait_group" in edit.what and "commit_group" not in edit.what:
        return thread, "wait_group"
    if edit.adds > 0 and not edit.more:
        return thread, _line(" ".join(edit.text.split()))
    if what in ("spelling", "space") and edit.text.startswith("fence.proxy"):
        return thread, _line(f"{edit.text};")
    if what == "spelling":
        old, _, new = edit.what.partition(" -> ")
        sems = [match[1] if (match := _SEM.search(text)) else "" for text in (old, new)]
        if sems[0] != sems[1] and sems[1] != "relaxed":
            return thread, sems[1]
    return edit


def makes_strong(edit: Edit) -> bool:
    """True if the change makes a weak access relaxed, alone or as a part of an atomic, and orders nothing else."""
    old, _, new = edit.what.partition(" -> ")
    match = _SEM.search(new)
    if new.startswith("atom.relaxed") and not _SEM.search(old) and "volatile" not in old:
        return True
    return edit.group[2] == "spelling" and match is not None and match[1] == "relaxed" and not _SEM.search(old)


def _line(text: str) -> Hashable:
    """A line that is put in, without scope and state space; of a memory fence, the semantics."""
    if re.match(r"fence\.(acquire|release|acq_rel|sc)\b", text):
        return text.split(".")[1].rstrip(";")
    if text.startswith("fence.proxy"):
        return re.sub(r"\.(cta|cluster|gpu|sys|global|shared::\w+|sync_restrict::shared::\w+)(?=[.; ])", "", text)
    if "wait.parity" in text:
        return "wait", *re.findall(r"\[[^\]]*\], \S+;", text), text.count("tcgen05.fence")
    return text


def _turn(edits: Changes) -> tuple[float, bool, int]:
    """The cheapest first; a moved barrier after other moves; of two waits for groups that wait for more the later."""
    later = (edit.start for edit in edits if edit.group[2] == "number" and "wait_group" in edit.what)
    return (
        cost(edits),
        any(edit.group[2] == "move" and ": move bar" in edit.what for edit in edits),
        -max(later, default=0),
    )


def by_idea(repairs: Sequence[Changes], most: int, text: str = "") -> list[tuple[Changes, list[Changes]]]:
    """At most `most` repairs, the cheapest of each idea first; each with others of its idea.

    A repair that does more than a cheaper one is left out. So is one that gives the same text as another: where a fence
    and a barrier change places, the repair that moves the fence is kept.
    """
    groups: list[tuple[Idea, list[Changes]]] = []
    seen: set[str] = set()
    for edits in sorted(repairs, key=_turn):
        new = " ".join(apply(text, edits).split())
        if text and new in seen:
            continue
        seen.add(new)
        mine = idea(edits)
        if not any(does_more(mine, known) for known, _ in groups):
            same = next((its for known, its in groups if known == mine), None)
            if same is None:
                groups.append((mine, [edits]))
            else:
                same.append(edits)
    return [(first, others[: FORMS - 1]) for _, (first, *others) in groups[:most]]
