"""What a repair may change: stronger spellings, lines in between, other numbers and names, fences elsewhere.

In: a lowered test. Out: edits with their costs. Settled here: which of them only add order, so that more of them never
allow more: `strengthenings`. `replacements` may take something away as well, and are tried with care.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memmodel.base.labels import Action, Allocates, Allocation
from memmodel.isa.lower import read_instruction
from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction, LitmusTest, Thread
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import AtBarrier, CommitGroup, Emit, IssueAsync, OnObject, Op, SignalPart, WaitForGroups
from memmodel.ptx.operands import Imm, Mem
from memmodel.repair.costs import OTHER, STRONG_DATA, WAIT, cost
from memmodel.repair.edits import Edit, place, respelled
from memmodel.repair.exchanging.exchanges import alike, alike_waits, barrier_of, exchanges, waits_of_rounds
from memmodel.repair.insertion.arrivals import count_of
from memmodel.repair.insertion.flips import flips
from memmodel.repair.insertion.gaps import gaps, moved
from memmodel.repair.insertion.lines import Lines, widths
from memmodel.repair.spellings import is_fence, other_spaces, semantics, wider

NUMBER = 1.0
MOVE = 1.0
LINE = 1.0
"""What a changed number, a moved fence, and one more line cost beside what the instruction costs."""

MOST_SIZES = 12
NEAR = 4
"""The most places over which an instruction is moved, either way."""


def strengthenings(lowered: LoweredTest) -> list[Edit]:
    """Changes that only add order: of these, more never allow more."""
    edits = single_strengthenings(lowered)
    return [*edits, *alike_waits(lowered, edits), *waits_of_rounds(lowered, edits)]


def single_strengthenings(lowered: LoweredTest, *, exact: bool = False) -> list[Edit]:
    """Those of one place each. `exact`: as in `Lines`."""
    test = lowered.test
    scopes = frozenset(widths([thread.place for thread in test.threads]))
    lines = Lines(lowered, exact=exact)
    edits: list[Edit] = []
    for number, thread in enumerate(test.threads):
        for index, item in enumerate(instructions(thread)):
            edits += _spellings(test, thread, item, (number, index), scopes)
        for gap in gaps(lowered, number):
            for line in lines.at(gap):
                edits.append(gap.insertion(line.text, line.name, line.price + LINE, line.rank, implied=line.implied))
    return edits


def _spellings(
    test: LitmusTest, thread: Thread, item: Instruction, at: tuple[int, int], scopes: frozenset[str]
) -> Iterator[Edit]:
    spelling = read_instruction(item, test)
    now, weak = cost(spelling), spelling.head in ("ld", "st") and semantics(spelling) == "weak"
    options = sorted(((cost(spelling), mnemonic) for mnemonic, spelling in wider(item, test, scopes)))
    for level, (price, mnemonic) in enumerate(options):
        added = max(price - now, 0.0) + NUMBER + (STRONG_DATA if weak else 0.0)
        yield respelled(thread, item, mnemonic, added, (*at, "spelling"), level=level)


# ---- changes that may also allow more --------------------------------------------------------------------------------


def replacements(lowered: LoweredTest) -> list[Edit]:
    """Other parities, counts, byte counts, state spaces and tensor maps; fences in another place of their thread."""
    test = lowered.test
    sizes = _sizes(lowered)
    names = _barriers_and_ranks(test)
    edits: list[Edit] = list(_declared(lowered))
    for number, thread in enumerate(test.threads):
        body = list(instructions(thread))
        for index, item in enumerate(body):
            at = (number, index)
            edits += _numbers(thread, item, at, sizes, names)
            edits += _phases(thread, body, item, at)
            edits += _expected(thread, item, at, sizes)
            edits += _names(test, thread, item, at)
            if _movable(lowered, number, index):
                edits += _moves(lowered, number, item, index)
    return [*edits, *alike(lowered, edits), *exchanges(lowered), *flips(lowered)]


def _barriers_and_ranks(test: LitmusTest) -> dict[str, list[int]]:
    """The numbers of the barriers that the test has, and of the CTAs in its clusters: by what is numbered."""
    named = (barrier_of(item) for thread in test.threads for item in instructions(thread))
    ids = {barrier[1] for barrier in named if barrier is not None}
    return {"barrier": sorted(ids), "rank": sorted({thread.place.cta for thread in test.threads})}


def _numbers(
    thread: Thread, item: Instruction, at: tuple[int, int], sizes: list[int], names: dict[str, list[int]]
) -> Iterator[Edit]:
    head = item.mnemonic
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
            others = [rank for rank in names["rank"] if rank != value]
        elif "multicast" in head and number == len(item.operands) - 1:
            others = [mask for mask in [sum(1 << rank for rank in names["rank"])] if mask != value]
        elif "wait_group" in head and value > 0:
            others = list(range(value))
        elif head.startswith("mbarrier.") and ("expect_tx" in head or "complete_tx" in head):
            others = [size for size in sizes if size != value]
        elif head.startswith(("mbarrier.init", "mbarrier.arrive")) or barrier_of(item) is not None:
            step = 32 if head.startswith("bar") else 1
            others = [count for count in (value - step, value + step, value + 2 * step) if count > 0 and number > 0]
        for other in others:
            what = f"{place(thread, item)}: {value} -> {other} in {item.mnemonic}"
            yield Edit(operand.span.start, operand.span.end, str(other), what, NUMBER, (*at, "number", number))


def _phases(thread: Thread, body: list[Instruction], item: Instruction, at: tuple[int, int]) -> Iterator[Edit]:
    """Another first value of a register that says for which parity a thread waits."""
    if item.parts[0] != "mov" or len(item.operands) != 2:
        return
    register, value = item.operands
    waits = (instruction.operands[2:3] for instruction in body if "wait.parity" in instruction.mnemonic)
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
        for other in (now - 1, now + 1, now + 2):
            if other > 0:
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


def _names(test: LitmusTest, thread: Thread, item: Instruction, at: tuple[int, int]) -> Iterator[Edit]:
    """Another state space of a proxy fence, another tensor map to acquire, an atomic in place of a reduction."""
    span = item.mnemonic_span
    for mnemonic in other_spaces(item, test):
        yield respelled(thread, item, mnemonic, NUMBER, (*at, "space"))
    if item.mnemonic.startswith("fence.proxy.tensormap") and item.operands:
        for variable in test.variables:
            if variable.maps and isinstance(item.operands[0], Mem) and f"[{variable.name}]" not in item.span.text:
                start = test.source.text.index("[", span.end)
                end = test.source.text.index("]", start) + 1
                what = f"{place(thread, item)}: [{variable.name}] in {item.mnemonic}"
                yield Edit(start, end, f"[{variable.name}]", what, NUMBER, (*at, "name"))
    if item.mnemonic.startswith("mbarrier.arrive") and "drop" not in item.mnemonic:
        mnemonic = item.mnemonic.replace("arrive", "arrive_drop", 1)
        yield respelled(thread, item, mnemonic, NUMBER, (*at, "number"))
    if item.mnemonic.startswith("cp.async.mbarrier.arrive"):
        mnemonic = item.mnemonic.replace("arrive.noinc", "arrive", 1)
        if mnemonic == item.mnemonic:
            mnemonic = item.mnemonic.replace("arrive", "arrive.noinc", 1)
        yield respelled(thread, item, mnemonic, NUMBER, (*at, "number"))
    if barrier_of(item) is not None and "arrive" in item.parts:
        yield respelled(thread, item, item.mnemonic.replace("arrive", "sync", 1), OTHER + WAIT, (*at, "name"))
    if item.parts[0] == "red" and "async" not in item.parts:
        mnemonic = "atom" + item.mnemonic.removeprefix("red")
        start = test.source.text.index("[", span.end)
        what = f"{place(thread, item)}: {item.mnemonic} -> {mnemonic}, which heads an acquire pattern"
        yield Edit(span.start, start, f"{mnemonic} _, ", what, NUMBER, (*at, "name"))


MOVABLE = (AtBarrier, CommitGroup, WaitForGroups)


def _movable(lowered: LoweredTest, number: int, index: int) -> bool:
    """True if an instruction only synchronizes and returns no value."""
    ops = lowered.programs[number].ops(index)
    kept = [op for op in ops if not (isinstance(op, MOVABLE) or _signals_only(op) or _gives_back(op))]
    arrives = all(
        isinstance(op, OnObject) and op.label.action in (Action.ARRIVE, Action.EXPECT_TX) and op.register is None
        for op in kept
    )
    return is_fence(lowered, number, index) or (bool(ops) and arrives)


def _signals_only(op: Op) -> bool:
    """True if the operation only signals completion: tcgen05.commit or cp.async.mbarrier.arrive."""
    return isinstance(op, IssueAsync) and all(isinstance(part, SignalPart) for part in op.parts)


def _gives_back(op: Op) -> bool:
    """True of tcgen05.dealloc and tcgen05.relinquish_alloc_permit."""
    return isinstance(op, Emit) and isinstance(op.label, Allocates) and op.label.what is not Allocation.ALLOC


def _moves(lowered: LoweredTest, number: int, item: Instruction, index: int) -> Iterator[Edit]:
    openings = [gap for gap in gaps(lowered, number) if gap.index not in (index, index + 1)]
    earlier, later = ([gap for gap in openings if (gap.index < index) is side] for side in (True, False))
    for gap in (*earlier[-NEAR:], *later[:NEAR]):
        if not (gap.last and is_fence(lowered, number, index)):
            yield moved(lowered.test.threads[number], item, index, gap, MOVE)
