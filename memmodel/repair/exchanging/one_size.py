"""One size for all accesses to a place that threads access in different sizes, as to a flag that is a byte for one of
them and a word for the other.

In: a lowered test. Out: edits, each of all accesses of other sizes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction
from memmodel.program.lowered import LoweredTest
from memmodel.program.named_places import named_place
from memmodel.repair.costs import OTHER
from memmodel.repair.edits import Edit, respelled
from memmodel.repair.exchanging.exchanges import ALIKE
from memmodel.why.polls import names_a_place

BYTE = 8
SIZED = re.compile(r"[bus](8|16|32|64)")


def one_size(lowered: LoweredTest) -> Iterator[Edit]:
    """For each place that is accessed in several sizes, each of them in place of all others."""
    places: dict[object, list[tuple[int, int, Instruction, int]]] = {}
    for number, thread in enumerate(lowered.test.threads):
        for index, item in enumerate(instructions(thread)):
            width = _width(item)
            if width is not None:
                places.setdefault(named_place(item), []).append((number, index, item, width))
    for accesses in places.values():
        widths = sorted({width for *_, width in accesses})
        for wanted in widths if len(widths) > 1 else ():
            edits = [_resized(lowered, *access[:3], wanted) for access in accesses if access[3] != wanted]
            first, *more = edits
            what = "; ".join(edit.what for edit in edits)
            group = (*first.group[:3], *ALIKE) if more else first.group
            yield replace(first, what=what, cost=OTHER * len(edits), group=group, more=tuple(more))


def _width(item: Instruction) -> int | None:
    """The bits of a scalar access to a place that is named."""
    sized = SIZED.fullmatch(item.parts[-1])
    plain = item.parts[0] in ("ld", "st", "atom", "red") and not {"async", "v2", "v4"} & set(item.parts)
    return int(sized[1]) if plain and sized is not None and names_a_place(item) else None


def _resized(lowered: LoweredTest, number: int, index: int, item: Instruction, width: int) -> Edit:
    mnemonic = ".".join((*item.parts[:-1], f"{item.parts[-1][0]}{width}"))
    return respelled(lowered.test.threads[number], item, mnemonic, OTHER, (number, index, "name"))
