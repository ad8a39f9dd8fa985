"""A load and a later update of the same place that are to be one step, where no single atomic does what they do.

In: a lowered test. Out: changes. Settled here: the update becomes a compare-and-swap that succeeds only if memory still
has what was loaded; else the thread begins again with the load. Arithmetic, branches and accesses to other variables
may stand in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memmodel.isa.lower import read_instruction
from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction
from memmodel.program.lowered import LoweredTest
from memmodel.program.named_places import named_place
from memmodel.ptx.operands import Mem, Reg, registers_in
from memmodel.repair.costs import OTHER, SCOPE_COST, SEM_FACTOR, WAIT
from memmodel.repair.edits import Edit, place
from memmodel.repair.exchanging.one_atomic import (
    ARITHMETIC,
    SEMANTICS,
    common_scope,
    joined,
    kind_of_access,
    next_of_place,
    operation,
    plain,
    together,
    writes,
)
from memmodel.repair.insertion.accesses import labels_of
from memmodel.repair.insertion.lines import fresh
from memmodel.repair.spellings import semantics


@dataclass(frozen=True, slots=True)
class Retry:
    """Numbers of a load and of an update in a thread. `value`: what is to be stored; `computes`: the instruction that
    computes it, if the update did so itself; `seen`: the register that receives what memory has; `expected`: the one
    that holds what was loaded; `copied`: whether that is a copy, because the loaded register changes in between."""

    thread: int
    load: int
    update: int
    value: str
    computes: str
    seen: str
    expected: str
    copied: bool


def retries(lowered: LoweredTest) -> Iterator[Edit]:
    """Each such load and update, and all that are about one variable."""
    places: dict[str, list[Edit]] = {}
    for number, thread in enumerate(lowered.test.threads):
        items = list(instructions(thread))
        for index, item in enumerate(items):
            retry = _retry(lowered, number, items, index)
            if retry is not None:
                places.setdefault(named_place(item).variable, []).append(_edit(lowered, retry, items))
    for edits in places.values():
        yield from edits
        yield from [together(edits)] if len(edits) > 1 else []


def _retry(lowered: LoweredTest, number: int, items: Sequence[Instruction], index: int) -> Retry | None:
    load = items[index]
    register = load.operands[0] if plain(load, "ld") and load.guard is None else None
    end = next_of_place(lowered, number, items, index) if isinstance(register, Reg) else None
    if not isinstance(register, Reg) or end is None:
        return None
    update, between = items[end], items[index + 1 : end]
    labelled = any(index < at <= end for at in labels_of(lowered.test.threads[number]).values())
    if labelled or update.guard is not None or not between:
        return None
    text = lowered.test.source.text
    seen, new = fresh(text, f"%seen{index}"), fresh(text, f"%new{index}")
    copied = any(writes(item, register) for item in between)
    expected = fresh(text, f"%had{index}") if copied else register.span.text
    if plain(update, "st") and named_place(update) == named_place(load) and update.parts[-1][1:] == load.parts[-1][1:]:
        single = operation(register, kind_of_access(load), update, between) is not None
        value = update.operands[1].span.text
        return None if single else Retry(number, index, end, value, "", seen, expected, copied)
    word, kind = update.parts[-2:] if len(update.parts) > 2 else ("", "")
    memory = [operand for operand in update.operands if isinstance(operand, Mem)]
    result = update.operands[0] if update.operands else None
    read_later = [used.name for item in items[end + 1 :] for used in registers_in(item.operands)]
    blind = word == "exch" and isinstance(result, Reg) and result.name not in read_later
    if update.parts[0] not in ("atom", "red") or not (word in ARITHMETIC or blind) or len(memory) != 1:
        return None
    if named_place(update) != named_place(load) or kind[1:] != load.parts[-1][1:]:
        return None
    seen = result.span.text if isinstance(result, Reg) else seen
    value = update.operands[-1].span.text
    if blind:
        return Retry(number, index, end, value, "", seen, expected, copied)
    computes = f"{word}.{kind} {new}, {expected}, {value};"
    return Retry(number, index, end, new, computes, seen, expected, copied)


def _edit(lowered: LoweredTest, retry: Retry, items: Sequence[Instruction]) -> Edit:
    """The compare-and-swap in place of the update, with the branch back to the load."""
    test, thread = lowered.test, lowered.test.threads[retry.thread]
    text, load, update = test.source.text, items[retry.load], items[retry.update]
    spellings = read_instruction(load, test), read_instruction(update, test)
    sem, scope = SEMANTICS[joined(spellings)], common_scope(lowered, spellings)
    space = spellings[0].words.get("space")
    label, missed = fresh(text, f"AGAIN{retry.load}"), fresh(text, f"%missed{retry.load}")
    width, register = load.parts[-1][1:], retry.expected
    words = ".".join(("atom", sem, scope, *((space,) if space else ()), "cas", f"b{width}"))
    swap = f"{words} {retry.seen}, {load.operands[1].span.text}, {register}, {retry.value}"
    begin = text.rfind("\n", 0, update.span.start) + 1
    indent = text[begin : update.span.start]
    between = " " if indent.strip() else f"\n{indent}"
    end = text.index(";", update.span.end) + 1
    back = f"{between}setp.ne.b{width} {missed}, {retry.seen}, {register};{between}@{missed} bra {label};"
    more = [
        Edit(*_label(text, load, label), "", 0.0, (retry.thread, retry.load, "label")),
        Edit(end, end, back, "", 0.0, (retry.thread, retry.update + 1, "retry"), adds=2),
    ]
    start = update.mnemonic_span.start
    if retry.computes:
        group = (retry.thread, retry.update, "computes")
        more.append(Edit(start, start, f"{retry.computes}{between}", "", 0.0, group, adds=1))
    if retry.copied:
        stop = text.index(";", load.span.end) + 1
        copy = f"{between}mov.b{width} {register}, {load.operands[0].span.text};"
        more.append(Edit(stop, stop, copy, "", 0.0, (retry.thread, retry.load + 1, "copy"), adds=1))
    if semantics(spellings[0]) == "weak":
        span = load.mnemonic_span
        strong = ".".join(("ld", "relaxed", scope, *(word for word in load.parts[1:] if word != "weak")))
        more.append(Edit(span.start, span.end, strong, "", 0.0, (retry.thread, retry.load, "spelling")))
    what = f"{place(thread, update)}: {update.mnemonic} -> {words}, and again from line {load.span.line} if it fails"
    price = 2 * OTHER + WAIT + SCOPE_COST[scope] * SEM_FACTOR[sem]
    return Edit(start, update.span.end, swap, what, price, (retry.thread, retry.update, "name"), more=tuple(more))


def _label(text: str, load: Instruction, label: str) -> tuple[int, int, str]:
    """The label in front of the load, on a line of its own if the load has one."""
    begin = text.rfind("\n", 0, load.span.start) + 1
    alone = not text[begin : load.span.start].strip()
    start = begin if alone else load.span.start
    return start, start, f"{label}:\n" if alone else f"{label}: "
