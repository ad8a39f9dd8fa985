"""Other numbers for what threads store and look for: a value that somebody stores, and one that nobody has stored yet.

In: a lowered test. Out: edits. Settled here: a number is compared with one that a thread stores there, or that
counters add up to. Where a value is stored again, or is there from the start, it becomes a new one, with a wait for it;
earlier waits may then have to take a later number as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction
from memmodel.program.lowered import LoweredTest
from memmodel.program.named_places import NamedPlace, named_place
from memmodel.ptx.operands import Imm, Mem
from memmodel.repair.costs import OTHER
from memmodel.repair.edits import Edit, place, respelled
from memmodel.repair.exchanging.exchanges import ALIKE
from memmodel.why.polls import AwaitedNumber, comparisons, names_a_place, stored

AWAITED = "awaited value"
"""How such changes are called."""

Polls = list[tuple[int, AwaitedNumber]]
"""Comparisons, each with the number of its thread."""


@dataclass(frozen=True, slots=True)
class StoredNumber:
    """An instruction of a thread that leaves a number in a place."""

    thread: int
    index: int
    place: NamedPlace
    number: Imm
    item: Instruction


def awaited_values(lowered: LoweredTest) -> list[Edit]:
    """Numbers that are compared with others that are stored, and new numbers on both sides."""
    polls = [(number, it) for number, thread in enumerate(lowered.test.threads) for it in comparisons(thread)]
    stores = _stores(lowered)
    edits = [*_stored_ones(lowered, polls, stores), *_new_ones(lowered, polls, stores)]
    return [*edits, *_counted(lowered, polls, stores), *_other_flags(lowered, polls, stores)]


def _stores(lowered: LoweredTest) -> list[StoredNumber]:
    return [
        StoredNumber(number, index, named_place(item), value, item)
        for number, thread in enumerate(lowered.test.threads)
        for index, item in enumerate(instructions(thread))
        if (value := stored(item)) is not None
    ]


def _stored_ones(lowered: LoweredTest, polls: Polls, stores: list[StoredNumber]) -> Iterator[Edit]:
    """Where a place never has the number that is compared with it, another one that it has at the end of what threads
    do to it; of a compare-and-swap together with the comparison after it."""
    starts = {variable.name: variable.init or (0,) for variable in lowered.test.variables}
    for number, poll in polls:
        own = [it.number.value for it in stores if it.place.variable == poll.place.variable]
        first, added = starts.get(poll.place.variable, ()), _added(lowered, poll.place)
        loaded = list(instructions(lowered.test.threads[number]))[poll.load].parts[0] == "ld"
        if added is None or poll.number.value in (*own, *first):
            continue
        if _is_reached(poll.number.value, first, added) and not loaded:  # a poll may have to wait for all
            continue
        values = [*own, *((begin + sum(added)) for begin in first if added)]
        if poll.load == poll.index:  # a compare-and-swap does not wait for the first value: it replaces it
            values += first
        others = [it for at, it in polls if (at, it.load, it.number) == (number, poll.load, poll.number)]
        if others[0] is poll:
            for value in dict.fromkeys(values):
                yield _all_at_once([_compared(lowered, number, it, value) for it in others])


def _added(lowered: LoweredTest, where: NamedPlace) -> list[int] | None:
    """The numbers that are added to a counter; None where something else is computed there."""
    items = [item for thread in lowered.test.threads for item in instructions(thread)]
    updates = [
        item
        for item in items
        if item.parts[0] in ("red", "atom") and not {"exch", "cas"} & set(item.parts) and names_a_place(item)
        if named_place(item).variable == where.variable
    ]
    numbers = [item.operands[-1] for item in updates if "add" in item.parts]
    added = [number.value for number in numbers if isinstance(number, Imm)]
    return added if len(added) == len(updates) else None


def _is_reached(number: int, first: tuple[int, ...], added: list[int]) -> bool:
    """True if some of the additions make a number of one that is there first."""
    reached = set(first)
    for more in added:
        reached |= {value + more for value in reached}
    return number in reached


def _new_ones(lowered: LoweredTest, polls: Polls, stores: list[StoredNumber]) -> Iterator[Edit]:
    """A new number in the last store of a value, and in the last comparison of each other thread with it; of one
    variable, and of all that are used alike."""
    starts = {variable.name: variable.init for variable in lowered.test.variables}
    edits: list[tuple[Edit, Edit]] = []
    for first in stores:
        own = [it for it in stores if it.place == first.place and it.number == first.number]
        mine = [it for it in own if it.thread == first.thread]
        waits: dict[int, list[AwaitedNumber]] = {}
        for number, poll in polls:
            if number != first.thread and (poll.place.variable, poll.number) == (first.place.variable, first.number):
                waits.setdefault(number, []).append(poll)
        again = len(mine) > 1 or first.number.value in starts.get(first.place.variable, ())
        if first is not mine[-1] or not waits or not again or not first.number.value:
            continue
        used = [it.number.value for it in stores if it.place.variable == first.place.variable]
        used += [it.number.value for _, it in polls if it.place.variable == first.place.variable]
        new = max(used) + 1
        parts = [_put(lowered, first, new)]
        parts += [_compared(lowered, number, its[-1], new) for number, its in waits.items()]
        least = [_at_least(lowered, number, it) for number, its in waits.items() for it in its]
        edits.append((_all_at_once(parts), _all_at_once([*parts, *filter(None, least)])))
    for alike in zip(*edits, strict=True):
        yield from alike
        if len(alike) > 1:
            yield _all_at_once([part for edit in alike for part in (edit, *edit.more)])


def _counted(lowered: LoweredTest, polls: Polls, stores: list[StoredNumber]) -> Iterator[Edit]:
    """Where several threads store one number in a flag of which nobody else makes more, additions of that number, and
    waits for all of them."""
    starts = {variable.name: variable.init or (0,) for variable in lowered.test.variables}
    for place_of in dict.fromkeys(it.place for it in stores):
        own = [it for it in stores if it.place == place_of]
        numbers, threads = {it.number.value for it in own}, {it.thread for it in own}
        waits = [(n, it) for n, it in polls if it.place == place_of and n not in threads]
        plain = all(it.item.parts[0] == "st" and it.item.parts[-1] == "u32" for it in own)
        single = len(threads) == len(own) > 1 == len(numbers) and not any(starts.get(place_of.variable, ()))
        if not plain or not single or not waits or "weak" in str(own[0].item.parts[1:2]):
            continue
        parts = [_adds(lowered, it) for it in own]
        parts += [_compared(lowered, n, it, len(own) * own[0].number.value) for n, it in waits]
        yield _all_at_once(parts)


def _adds(lowered: LoweredTest, store: StoredNumber) -> Edit:
    item = store.item
    mnemonic = ".".join(("red", *item.parts[1:-1], "add", item.parts[-1]))
    return respelled(lowered.test.threads[store.thread], item, mnemonic, OTHER, (store.thread, store.index, "name"))


def _other_flags(lowered: LoweredTest, polls: Polls, stores: list[StoredNumber]) -> Iterator[Edit]:
    """Another flag of the same variable that somebody releases, in place of the one that a thread polls."""
    raised = [it for it in stores if {"release", "relaxed"} & set(it.item.parts)]
    for number, poll in polls:
        item = list(instructions(lowered.test.threads[number]))[poll.load]
        others = dict.fromkeys(
            (it.place, _memory(it.item).span.text)
            for it in raised
            if it.place.instance == poll.place.instance and it.place != poll.place and it.thread != number
        )
        for _, text in others if item.parts[0] == "ld" else ():
            span, where = _memory(item).span, place(lowered.test.threads[number], item)
            what = f"{where}: {span.text} -> {text} in {item.mnemonic}"
            yield Edit(span.start, span.end, text, what, OTHER, (number, poll.load, "name"))


def _memory(item: Instruction) -> Mem:
    return next(operand for operand in item.operands if isinstance(operand, Mem))


def _compared(lowered: LoweredTest, thread: int, poll: AwaitedNumber, value: int) -> Edit:
    return _changed(lowered, thread, poll.index, poll.item, poll.number, value)


def _put(lowered: LoweredTest, store: StoredNumber, value: int) -> Edit:
    return _changed(lowered, store.thread, store.index, store.item, store.number, value)


def _changed(lowered: LoweredTest, thread: int, index: int, item: Instruction, number: Imm, value: int) -> Edit:
    what = f"{place(lowered.test.threads[thread], item)}: {AWAITED} {number.value} -> {value} in {item.mnemonic}"
    at = item.operands.index(number)
    return Edit(number.span.start, number.span.end, str(value), what, OTHER, (thread, index, "number", at))


def _at_least(lowered: LoweredTest, thread: int, poll: AwaitedNumber) -> Edit | None:
    """A comparison that is as good with a later, larger number; None for one that cannot be so."""
    word = {"ne": "lt", "eq": "ge"}.get(poll.item.parts[1])
    if poll.item.parts[0] != "setp" or word is None:
        return None
    mnemonic = ".".join(("setp", word, *poll.item.parts[2:]))
    return respelled(lowered.test.threads[thread], poll.item, mnemonic, OTHER, (thread, poll.index, "name"))


def _all_at_once(edits: list[Edit]) -> Edit:
    first, *more = (replace(edit, more=()) for edit in edits)
    if not more:
        return first
    what = "; ".join(edit.what.split("; ")[0] for edit in (first, *more))
    cost = OTHER * len(edits)
    return replace(first, what=what, cost=cost, group=(*first.group[:3], *ALIKE), more=tuple(more))
