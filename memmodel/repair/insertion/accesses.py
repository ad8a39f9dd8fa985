"""Accesses to memory in another place of their thread: after a wait, before a release.

In: a lowered test. Out: edits. Settled here: what may be moved, and over what. A plain load, store or atomic without
semantics, of one variable; over at least one instruction that synchronizes, and over nothing that uses its registers
or may access its variable. Neither a branch nor a label lies in between, but those of loops that only wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction, Label, Mem, Sym, Thread
from memmodel.program.lowered import LoweredTest
from memmodel.repair.costs import MOVED_ACCESS
from memmodel.repair.edits import Edit, whole
from memmodel.repair.insertion.gaps import gaps, waiting

ACCESSES = ("ld", "st", "atom", "red")
ORDERED = ("release", "acquire", "acq_rel", "sc", "async", "bulk")
SYNCHRONIZES = re.compile(r"fence|membar|\bbar|barrier|wait|commit|\.(acquire|release|acq_rel)")
BRANCHES = ("bra", "brx", "exit", "ret", "trap")
BY_DESCRIPTOR = ("wgmma", "tcgen05", "clusterlaunchcontrol")
"""What these access is not said by names, unless they only synchronize."""

NEAR = 6
"""An access is moved over so many places at most."""


def moved_accesses(lowered: LoweredTest) -> list[Edit]:
    """Accesses elsewhere in their threads; none where a variable has two names."""
    test = lowered.test
    if any(variable.alias_of is not None for variable in test.variables):
        return []
    found: list[Edit] = []
    for number, thread in enumerate(test.threads):
        for index, item in enumerate(instructions(thread)):
            if _movable(item) and index not in {*waiting(lowered, number), *_labels(thread)}:
                found += _moves(lowered, number, thread, index)
    return found


def _moves(lowered: LoweredTest, number: int, thread: Thread, index: int) -> Iterator[Edit]:
    source, items = lowered.test.source, list(instructions(thread))
    moved = items[index]
    start, end = whole(source, moved)
    line = moved.span.text + ";"
    labels = _labels(thread)
    for gap in gaps(lowered, number):
        low, high = (gap.index, index) if gap.index < index else (index + 1, gap.index)
        if gap.index in (index, index + 1) or high - low > NEAR:
            continue
        spins = waiting(lowered, number)
        over = range(low, high)
        if any(at in labels and at not in spins for at in range(low, high + 1)):
            continue
        if not all(_passes(moved, items[at], spins=at in spins) for at in over):
            continue
        if not any(SYNCHRONIZES.search(items[at].mnemonic) for at in over):
            continue
        where = f"{gap.where} (line {gap.item.span.line})"
        what = f"{thread.name}, line {moved.span.line}: move {moved.mnemonic} {where}"
        at, text = gap.put(source, line)
        put = Edit(at, at, text, what, 0.0, (number, gap.index, f"moved {line}"), adds=1)
        yield Edit(start, end, "", what, MOVED_ACCESS, (number, index, "move"), adds=-1, more=(put,))


def _labels(thread: Thread) -> set[int]:
    """The instructions that have a label."""
    found: set[int] = set()
    index = 0
    for item in thread.body:
        if isinstance(item, Label):
            found.add(index)
        else:
            index += 1
    return found


def _movable(item: Instruction) -> bool:
    places = [one for one in item.operands if isinstance(one, Mem)]
    plain = item.parts[0] in ACCESSES and not set(item.parts) & set(ORDERED) and item.guard is None
    return plain and len(places) == 1 and isinstance(places[0].base, Sym)


def _passes(moved: Instruction, other: Instruction, *, spins: bool) -> bool:
    """May an access change places with another instruction of its thread, as far as the thread alone is concerned?"""
    if other.parts[0] in (*BRANCHES, *BY_DESCRIPTOR) and not (spins or SYNCHRONIZES.search(other.mnemonic)):
        return False
    if _registers(moved) & _registers(other):
        return False
    place = next(one for one in moved.operands if isinstance(one, Mem))
    assert isinstance(place.base, Sym)
    if re.search(rf"(?<![\w%]){re.escape(place.base.name)}\b", other.span.text):
        return False
    return "%" not in "".join(re.findall(r"\[[^\]]*\]", other.span.text))


def _registers(item: Instruction) -> set[str]:
    guard = "" if item.guard is None else f" %{item.guard.register}"
    return set(re.findall(r"%\w+", item.span.text + guard))
