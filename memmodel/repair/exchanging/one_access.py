"""Neighbouring elements of memory by one access: where an update must not be seen in halves.

In: a lowered test. Out: changes, each of all accesses of one variable. Settled here: what becomes one scalar access. A
vector of two or four, and two scalar accesses of one kind, side by side in memory and in their thread, are read and
written as one number of all widths, which a `mov` or several pack and unpack.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memmodel.isa.lower import read_instruction
from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction
from memmodel.program.lowered import LoweredTest
from memmodel.program.named_places import named_place
from memmodel.ptx.operands import Mem, Operand, Sym, Vector, registers_in
from memmodel.repair.costs import OTHER, STRONG_DATA, cost
from memmodel.repair.edits import Edit, place
from memmodel.repair.edits import whole as line_of
from memmodel.repair.exchanging.one_atomic import together
from memmodel.repair.insertion.accesses import labels_of
from memmodel.repair.insertion.lines import fresh, widths

FOUR = 4
WIDEST = 128
"""The bits of the widest scalar access."""

LATER = 8
"""Two scalar loads at most this number of instructions from each other are read as one."""


@dataclass(frozen=True, slots=True)
class Both:
    """Elements that one access may reach: `items` with their numbers in the thread, the first of which becomes that
    access; `values` in the order of memory; `width` of one, in bits.
    """

    thread: int
    items: tuple[tuple[int, Instruction], ...]
    values: tuple[Operand, ...]
    mnemonic: str
    address: str
    width: int


def one_access(lowered: LoweredTest) -> Iterator[Edit]:
    """For each variable the change of all its accesses to two elements."""
    places: dict[tuple[str, int | None], list[Both]] = {}
    for number, thread in enumerate(lowered.test.threads):
        items = list(instructions(thread))
        taken: set[int] = set()
        for index, item in enumerate(items):
            both = None if index in taken else _vector(number, index, item) or _scalars(lowered, number, items, index)
            if both is not None:
                taken |= {at for at, _ in both.items}
                places.setdefault(named_place(item).instance, []).append(both)
    for accesses in places.values():
        for level, forms in enumerate(dict.fromkeys((tuple(accesses), tuple(_strong(lowered, accesses))))):
            whole = together([_edit(lowered, both) for both in forms])
            yield replace(whole, cost=whole.cost + level * STRONG_DATA, level=level)


def _strong(lowered: LoweredTest, accesses: Sequence[Both]) -> Iterator[Both]:
    """The same with relaxed accesses in place of weak ones."""
    scope = widths([thread.place for thread in lowered.test.threads])[-1]
    for both in accesses:
        words = tuple(both.mnemonic.split("."))
        if not {"relaxed", "acquire", "release", "volatile"} & set(words):
            words = (words[0], "relaxed", scope, *(word for word in words[1:] if word != "weak"))
        yield replace(both, mnemonic=".".join(words))


def _edit(lowered: LoweredTest, both: Both) -> Edit:
    """One access in place of two elements, and the mov beside it."""
    thread, (index, item) = lowered.test.threads[both.thread], both.items[0]
    text = lowered.test.source.text
    pair = fresh(text, f"%pair{index}")
    loads = item.parts[0] == "ld"
    movs = _movs(text, pair, both, loads=loads)
    operands = f"{pair}, {both.address}" if loads else f"{both.address}, {pair}"
    begin = text.rfind("\n", 0, item.span.start) + 1
    indent = text[begin : item.span.start]
    between = " " if indent.strip() else f"\n{indent}"
    at = text.index(";", item.span.end) + 1 if loads else item.span.start
    beside = "".join(f"{between}{mov}" if loads else f"{mov}{between}" for mov in movs)
    packs = Edit(at, at, beside, "", 0.0, (both.thread, index + loads, "mov"), adds=len(movs))
    gone = [
        Edit(*line_of(other), "", "", 0.0, (both.thread, number, "name"), adds=-1) for number, other in both.items[1:]
    ]
    was = " and ".join(other.mnemonic for _, other in both.items)
    what = f"{place(thread, item)}: {was} -> {both.mnemonic}"
    group = (both.thread, index, "name")
    line = f"{both.mnemonic} {operands}"
    return Edit(item.span.start, item.span.end, line, what, 2 * OTHER, group, more=(packs, *gone))


def _movs(text: str, pair: str, both: Both, *, loads: bool) -> list[str]:
    """The instructions that unpack what was loaded, or pack what is stored; of four elements in two steps."""
    halves = [(pair, [value.span.text for value in both.values], 2 * both.width)]
    if len(both.values) == FOUR:
        low, high = fresh(text, f"{pair}low"), fresh(text, f"{pair}high")
        values = halves[0][1]
        halves = [(pair, [low, high], 4 * both.width), (low, values[:2], 2 * both.width)]
        halves += [(high, values[2:], 2 * both.width)]
    lines = []
    for packed, parts, width in halves if loads else reversed(halves):
        unpacked = f"{{{', '.join(parts)}}}"
        lines.append(f"mov.b{width} {unpacked}, {packed};" if loads else f"mov.b{width} {packed}, {unpacked};")
    return lines


def _vector(number: int, index: int, item: Instruction) -> Both | None:
    """An access to a vector of two, or of four whose elements make 128 bits."""
    if not _accesses(item) or not {"v2", "v4"} & set(item.parts):
        return None
    values = next((operand.items for operand in item.operands if isinstance(operand, Vector)), ())
    width = int(item.parts[-1][1:])
    whole = len(values) * width
    words = [word for word in item.parts[:-1] if word not in ("v2", "v4")]
    if len(values) not in (2, FOUR) or whole > WIDEST or named_place(item).offset % (whole // 8):
        return None
    return Both(number, ((index, item),), values, ".".join((*words, f"b{whole}")), _address(item), width)


def _scalars(lowered: LoweredTest, number: int, items: Sequence[Instruction], index: int) -> Both | None:
    """Two scalar accesses to neighbours, the second of which may stand where the first does."""
    item = items[index]
    if not _accesses(item) or "v2" in item.parts or "v4" in item.parts:
        return None
    width = int(item.parts[-1][1:])
    labels = labels_of(lowered.test.threads[number]).values()
    for at in range(index + 1, min(index + 1 + LATER, len(items))):
        other = items[at]
        if not _accesses(other) or other.parts[0] != item.parts[0] or other.parts[-1][1:] != item.parts[-1][1:]:
            if any(isinstance(operand, Mem) for operand in other.operands):
                return None
            continue
        low, high = sorted((item, other), key=lambda access: named_place(access).offset)
        start, end = named_place(low), named_place(high)
        side_by_side = end.offset - start.offset == width // 8 and start.offset % (width // 4) == 0
        if start.instance != end.instance or not side_by_side:
            return None
        moved = {register.name for register in registers_in(other.operands)}
        used = {register.name for between in items[index:at] for register in registers_in(between.operands)}
        if any(index < label <= at for label in labels) or moved & used:
            return None
        stronger = max((item, other), key=lambda access: cost(read_instruction(access, lowered.test)))
        mnemonic = ".".join((*stronger.parts[:-1], f"b{2 * width}"))
        value = 0 if item.parts[0] == "ld" else 1
        values = (low.operands[value], high.operands[value])
        return Both(number, ((index, item), (at, other)), values, mnemonic, _address(low), width)
    return None


def _accesses(item: Instruction) -> bool:
    """True of a load or a store of 32 or 64 bits of a named variable that nothing guards."""
    places = [operand for operand in item.operands if isinstance(operand, Mem)]
    known = item.parts[0] in ("ld", "st") and item.parts[-1][1:] in ("32", "64") and "async" not in item.parts
    plain = known and len(item.operands) == 2 and item.guard is None
    return plain and len(places) == 1 and isinstance(places[0].base, Sym)


def _address(item: Instruction) -> str:
    return next(operand for operand in item.operands if isinstance(operand, Mem)).span.text
