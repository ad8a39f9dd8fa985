"""Other numbers in a test: parities, counts, bytes, groups, barriers, ranks, masks, columns.

In: a lowered test. Out: edits of one number each. Settled here: which other numbers are worth trying for one. They come
from the test itself: how many threads arrive on an object, what copies move, which barriers and ranks there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, permutations

from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction, LitmusTest, Thread
from memmodel.program.lowered import LoweredTest
from memmodel.ptx.operands import Imm, Reg
from memmodel.repair.edits import Edit, place
from memmodel.repair.exchanging.exchanges import ALIKE, WARP, barrier_of
from memmodel.repair.insertion.arrivals import count_of

NUMBER = 1.0
"""What a changed number costs."""

FURTHER = 0.1
"""What it costs to wait for one more group: the less is left in flight, the longer a thread waits."""

MOST_SIZES = 12
MOST_AT_BARRIER = 6
"""Threads at one barrier of which some may have to meet at another one."""

ARRIVES = re.compile(r"mbarrier\.arrive|cp\.async\.mbarrier\.arrive|tcgen05\.commit")


def other_numbers(lowered: LoweredTest) -> Iterator[Edit]:
    """Changes of one number each."""
    test, sizes, names = lowered.test, _sizes(lowered), _names(lowered.test)
    yield from _declared(lowered)
    for number, thread in enumerate(test.threads):
        body = list(instructions(thread))
        for index, item in enumerate(body):
            at = (number, index)
            yield from _numbers(lowered, item, at, sizes, names)
            yield from _phases(thread, body, item, at)
            yield from _expected(thread, item, at, sizes)


def at_another_barrier(lowered: LoweredTest) -> Iterator[Edit]:
    """Move a meeting to a barrier that is not in use, where more threads than meet come to its barrier, or threads ask
    for different counts.
    """
    uses: dict[tuple[int, int], dict[int, list[Edit]]] = {}
    used = {barrier[1] for thread in lowered.test.threads for it in instructions(thread) if (barrier := barrier_of(it))}
    free = next(number for number in range(1, len(used) + 2) if number not in used)
    for number, thread in enumerate(lowered.test.threads):
        for index, item in enumerate(instructions(thread)):
            barrier = barrier_of(item)
            operands = [operand for operand in item.operands if isinstance(operand, Imm)]
            if barrier is None or len(operands) < 2 or operands[0].span is None:
                continue
            what = f"{place(thread, item)}: {barrier[1]} -> {free} in {item.mnemonic}"
            span, group = operands[0].span, (number, index, "number", barrier[0])
            edit = Edit(span.start, span.end, str(free), what, NUMBER, group)
            uses.setdefault((barrier[1], operands[1].value), {}).setdefault(number, []).append(edit)
    for (barrier_number, _), threads in uses.items():
        for told, waiting in permutations(threads, 2):  # of two hand-overs at one barrier, the one of these threads
            chosen = [*_with(lowered, threads[told], "arrive"), *_with(lowered, threads[waiting], "sync")]
            moved = {edit.group[0] for edit in chosen}
            left = {edit.group[0] for edits in threads.values() for edit in edits if edit not in chosen}
            if moved == {told, waiting} == left:
                yield _at_free(lowered, barrier_number, free, chosen)
    for (barrier_number, count), threads in uses.items():
        counts = sum(other == barrier_number for other, _ in uses)
        if not count // WARP < len(threads) + (counts > 1) <= MOST_AT_BARRIER + 1:
            continue
        for some in combinations(threads, count // WARP):
            yield _at_free(lowered, barrier_number, free, [edit for number in some for edit in threads[number]])


def _with(lowered: LoweredTest, edits: list[Edit], word: str) -> list[Edit]:
    """The changes of instructions with a word."""
    text = lowered.test.source.text
    return [edit for edit in edits if f".{word}" in text[text.rfind("bar", 0, edit.start) : edit.start]]


def _at_free(lowered: LoweredTest, barrier: int, free: int, edits: list[Edit]) -> Edit:
    """These uses of a barrier, at one that is not in use."""
    first, *more = edits
    numbers = dict.fromkeys(edit.group[0] for edit in edits if isinstance(edit.group[0], int))
    names = " and ".join(lowered.test.threads[number].name for number in numbers)
    what = f"{names}: barrier {barrier} -> {free}"
    return replace(first, what=what, cost=NUMBER * len(edits), group=(*first.group[:3], *ALIKE), more=tuple(more))


def _names(test: LitmusTest) -> dict[str, list[int]]:
    """The numbers of the barriers, of the CTAs in clusters, and of columns that the test has: by what is numbered."""
    named = (barrier_of(item) for thread in test.threads for item in instructions(thread))
    ids = {barrier[1] for barrier in named if barrier is not None}
    ranks = sorted({thread.place.cta for thread in test.threads})
    return {"barrier": sorted(ids), "rank": ranks, "columns": sorted(_columns(test))}


def _columns(test: LitmusTest) -> set[int]:
    """The numbers of columns of tensor memory that are allocated or given back."""
    items = (item for thread in test.threads for item in instructions(thread))
    given = (item for item in items if item.mnemonic.startswith(("tcgen05.alloc", "tcgen05.dealloc")))
    return {operand.value for item in given for operand in item.operands if isinstance(operand, Imm)}


def _arrivals_on(lowered: LoweredTest, text: str) -> list[int]:
    """How many instructions arrive on the object that a text names, and how many threads do."""
    name = re.search(r"\[?\s*([A-Za-z_$][\w$]*)(\s*\+\s*\d+)?", text[text.find("[") + 1 :])
    if name is None:
        return []
    wanted = re.compile(rf"\[\s*{re.escape(name[1])}{re.escape((name[2] or '').replace(' ', ''))}\s*(@\s*\w+)?\s*\]")
    threads = [
        number
        for number, thread in enumerate(lowered.test.threads)
        for item in instructions(thread)
        if ARRIVES.match(item.mnemonic) and wanted.search(item.span.text)
    ]
    return [count for count in dict.fromkeys((len(threads), len(set(threads)))) if count > 0]


def _numbers(
    lowered: LoweredTest, item: Instruction, at: tuple[int, int], sizes: list[int], names: dict[str, list[int]]
) -> Iterator[Edit]:
    head, thread = item.mnemonic, lowered.test.threads[at[0]]
    for number, operand in enumerate(item.operands):
        if not isinstance(operand, Imm) or operand.span is None:
            continue
        value = operand.value
        others: list[int] = []
        if "wait" in head and "parity" in head and value in (0, 1):
            others = [1 - value]
        elif (number, value) == barrier_of(item):
            others = [other for other in names["barrier"] if other != value]
        elif head.startswith("mapa") and number == 2:
            others = [rank for rank in names["rank"] if rank not in (value, thread.place.cta)]  # its own needs no mapa
        elif "multicast" in head and number == len(item.operands) - 1:
            others = [mask for mask in [sum(1 << rank for rank in names["rank"])] if mask != value]
        elif "wait_group" in head and value > 0:
            others = list(range(value))[::-1]
        elif head.startswith("mbarrier.") and ("expect_tx" in head or "complete_tx" in head):
            others = [size for size in sizes if size != value]
        elif head.startswith(("mbarrier.init", "mbarrier.arrive")) or barrier_of(item) is not None:
            step = WARP if head.startswith("bar") else 1
            least = 2 * WARP if head.startswith("bar") else 1  # a warp alone meets nobody
            others = [
                count for count in (value - step, value + step, value + 2 * step) if count >= least and number > 0
            ]
            if head.startswith("mbarrier.init"):
                others += [count for count in _arrivals_on(lowered, item.span.text) if count not in (value, *others)]
        elif head.startswith(("tcgen05.alloc", "tcgen05.dealloc")):
            others = [columns for columns in names["columns"] if columns != value]
        for other in others:
            what = f"{place(thread, item)}: {value} -> {other} in {item.mnemonic}"
            price = NUMBER + FURTHER * max(0, value - 1 - other) if "wait_group" in head else NUMBER
            yield Edit(operand.span.start, operand.span.end, str(other), what, price, (*at, "number", number))


def _phases(thread: Thread, body: list[Instruction], item: Instruction, at: tuple[int, int]) -> Iterator[Edit]:
    """Another first value of a register that says for which parity a thread waits; one that is turned, not counted."""
    waits = [instruction.operands[2:3] for instruction in body if "wait.parity" in instruction.mnemonic]
    match item.parts[0], item.operands:
        case "add", (Reg() as turned, same, Imm(value=1)) if turned == same and (turned,) in waits:
            what = f"{place(thread, item)}: {item.mnemonic} -> xor.b32, for a parity"
            span = item.mnemonic_span
            yield Edit(span.start, span.end, "xor.b32", what, NUMBER, (*at, "number", 1))
    if item.parts[0] != "mov" or len(item.operands) != 2:
        return
    register, value = item.operands
    if isinstance(value, Imm) and value.value in (0, 1) and value.span is not None and (register,) in waits:
        other = 1 - value.value
        what = f"{place(thread, item)}: {value.value} -> {other} in {item.mnemonic}, for a parity"
        yield Edit(value.span.start, value.span.end, str(other), what, NUMBER, (*at, "number", 1))


def _declared(lowered: LoweredTest) -> Iterator[Edit]:
    """Other arrive counts of objects that are initialised where they are declared."""
    for variable in lowered.test.variables:
        count = count_of(lowered, variable.name) if variable.mbarrier is not None else None
        if count is None:
            continue
        now, start, end = count
        others = (now - 1, now + 1, now + 2, *_arrivals_on(lowered, f"[{variable.name}]"))
        for other in dict.fromkeys(others):
            if 0 < other != now:
                what = f"line {variable.span.line}: count of {variable.name}: {now} -> {other}"
                yield Edit(start, end, str(other), what, NUMBER, (-1, variable.name, "number"))


def _expected(thread: Thread, item: Instruction, at: tuple[int, int], sizes: list[int]) -> Iterator[Edit]:
    """An arrive that expects bytes as well."""
    if not item.mnemonic.startswith("mbarrier.arrive") or "expect_tx" in item.mnemonic or len(item.operands) != 2:
        return
    head, _, rest = item.mnemonic.partition(".arrive")
    drop, rest = ("_drop", rest.removeprefix("_drop")) if rest.startswith("_drop") else ("", rest)
    mnemonic = f"{head}.arrive{drop}.expect_tx{rest}"
    start, end = item.mnemonic_span.start, item.span.end
    operands = item.span.text[item.mnemonic_span.end - item.span.start :]
    for size in sizes:
        what = f"{place(thread, item)}: {item.mnemonic} -> {mnemonic} of {size} bytes"
        yield Edit(start, end, f"{mnemonic}{operands}, {size}", what, NUMBER, (*at, "expected"))


def _sizes(lowered: LoweredTest) -> list[int]:
    """Numbers of bytes that the test's copies and stores move, and what several of them make together."""
    sizes = {
        operand.value
        for thread in lowered.test.threads
        for item in instructions(thread)
        for operand in item.operands
        if isinstance(operand, Imm)
        and (operand.value % 4 == 0 if item.mnemonic.startswith("cp.") else "expect_tx" in item.mnemonic)
    }
    for thread in lowered.test.threads:
        for item in instructions(thread):
            if item.mnemonic.startswith(("st.async", "red.async")):
                vector = next((int(word[1]) for word in item.parts if word in ("v2", "v4")), 1)
                sizes |= {vector * int(word[1:]) // 8 for word in item.parts if re.fullmatch(r"[busf](32|64)", word)}
            elif "try_cancel" in item.mnemonic:
                sizes.add(16)
            elif item.mnemonic.startswith("cp.async.bulk.tensor"):
                sizes |= {
                    4 * variable.length
                    for variable in lowered.test.variables
                    if variable.length > 1 and variable.mbarrier is None
                }
    sums = {size + other for size in sizes for other in sizes} | {size // 2 for size in sizes if size % 2 == 0}
    ordered = [*sorted(sizes), *sorted(sums - sizes)]
    return [size for size in ordered if size > 0][:MOST_SIZES]
