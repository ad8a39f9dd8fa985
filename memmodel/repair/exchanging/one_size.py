"""One size for all accesses to a place that threads access in different sizes, as to a flag that is a byte for one of
them and a word for the other; or two accesses in place of one that is twice as wide.

In: a lowered test. Out: edits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction, Thread
from memmodel.program.lowered import LoweredTest
from memmodel.program.named_places import named_place
from memmodel.ptx.operands import Imm, Mem
from memmodel.repair.costs import OTHER
from memmodel.repair.edits import Edit, place, respelled
from memmodel.repair.exchanging.exchanges import ALIKE
from memmodel.repair.insertion.lines import fresh
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


def in_halves(lowered: LoweredTest) -> Iterator[Edit]:
    """Two accesses in place of each scalar load or store that is twice as wide as another access to its half."""
    test = lowered.test
    found = [(n, i, it, w) for n, i, it in _items(lowered) if (w := _width(it)) is not None]
    for number, index, item, width in found:
        where = named_place(item)
        halves = [where.offset, where.offset + width // (2 * BYTE)]
        others = [
            named_place(it) for *_, it, w in found if 2 * w == width and named_place(it).instance == where.instance
        ]
        plain = item.parts[0] in ("ld", "st") and width > 2 * BYTE and item.guard is None and len(item.operands) == 2
        if plain and any(other.offset in halves for other in others):
            yield _halved(test.source.text, test.threads[number], (number, index), item, width)


def _items(lowered: LoweredTest) -> Iterator[tuple[int, int, Instruction]]:
    for number, thread in enumerate(lowered.test.threads):
        for index, item in enumerate(instructions(thread)):
            yield number, index, item


def _halved(text: str, thread: Thread, at: tuple[int, int], item: Instruction, width: int) -> Edit:
    """The access to the lower half in its place, that to the upper half behind it, and a mov in front or behind."""
    number, index = at
    memory = next(operand for operand in item.operands if isinstance(operand, Mem)).span.text
    value = next(operand for operand in item.operands if not isinstance(operand, Mem))
    mnemonic = ".".join((*item.parts[:-1], f"b{width // 2}"))
    loads, begin = item.parts[0] == "ld", text.rfind("\n", 0, item.span.start) + 1
    between = " " if (indent := text[begin : item.span.start]).strip() else f"\n{indent}"
    low, high = fresh(text, f"%low{index}"), fresh(text, f"%high{index}")
    move = f"mov.b{width} {{{low}, {high}}}, {value.span.text};"
    if isinstance(value, Imm):
        mask = (1 << width // 2) - 1
        low, high, move = str(value.value & mask), str(value.value >> width // 2 & mask), ""
    offset = re.search(r"\+\s*(\d+)\s*\]$", memory)
    first_byte = 0 if offset is None else int(offset[1])
    above = f"{memory[: offset.start() if offset else -1]}+{first_byte + width // (2 * BYTE)}]"
    pairs = [(low, memory), (high, above)]
    first, second = (f"{mnemonic} {r}, {m}" if loads else f"{mnemonic} {m}, {r}" for r, m in pairs)
    end = text.index(";", item.span.end) + 1
    behind = f"{between}{second};" + (f"{between}mov.b{width} {value.span.text}, {{{low}, {high}}};" if loads else "")
    more = [Edit(end, end, behind, "", 0.0, (number, index + 1, "half"), adds=1 + loads)]
    if move and not loads:
        more.append(Edit(item.span.start, item.span.start, f"{move}{between}", "", 0.0, (number, index, "mov"), adds=1))
    what = f"{place(thread, item)}: {item.mnemonic} -> two of {mnemonic}"
    return Edit(item.span.start, item.span.end, first, what, 2 * OTHER, (number, index, "name"), more=tuple(more))


def _width(item: Instruction) -> int | None:
    """The bits of a scalar access to a place that is named."""
    sized = SIZED.fullmatch(item.parts[-1])
    plain = item.parts[0] in ("ld", "st", "atom", "red") and not {"async", "v2", "v4"} & set(item.parts)
    return int(sized[1]) if plain and sized is not None and names_a_place(item) else None


def _resized(lowered: LoweredTest, number: int, index: int, item: Instruction, width: int) -> Edit:
    mnemonic = ".".join((*item.parts[:-1], f"{item.parts[-1][0]}{width}"))
    return respelled(lowered.test.threads[number], item, mnemonic, OTHER, (number, index, "name"))
