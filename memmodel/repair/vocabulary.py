"""What a repair may change: stronger spellings, lines in between, other numbers and names, fences elsewhere.

In: a lowered test. Out: edits with their costs. Settled here: which of them only add order, so that more of them never
allow more: `strengthenings`. `replacements` may take something away as well, and are tried with care.
"""

from __future__ import annotations

from collections.abc import Iterator

from memmodel.base.labels import Action, Allocates, Allocation, Domain, Half
from memmodel.isa.lower import read_instruction
from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction, LitmusTest, Thread
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import (
    Assign,
    AtBarrier,
    CommitGroup,
    Emit,
    IssueAsync,
    OnObject,
    Op,
    SignalPart,
    Track,
    WaitForGroups,
)
from memmodel.ptx.operands import Mem
from memmodel.repair.costs import OTHER, STRONG_DATA, WAIT, cost
from memmodel.repair.edits import Edit, place, respelled
from memmodel.repair.exchanging.awaited_values import awaited_values
from memmodel.repair.exchanging.exchanges import alike, alike_waits, barrier_of, exchanges, invalidated, waits_of_rounds
from memmodel.repair.exchanging.lock_order import lock_order, one_lock
from memmodel.repair.exchanging.one_access import one_access
from memmodel.repair.exchanging.one_atomic import one_atomic
from memmodel.repair.exchanging.one_name import one_name
from memmodel.repair.exchanging.one_size import in_halves, one_size
from memmodel.repair.exchanging.other_numbers import NUMBER, at_another_barrier, other_numbers
from memmodel.repair.exchanging.retries import retries
from memmodel.repair.insertion.flips import flips
from memmodel.repair.insertion.gaps import behind_the_label, gaps, moved
from memmodel.repair.insertion.lines import Lines, tracked, widths
from memmodel.repair.spellings import is_fence, other_spaces, semantics, wider

MOVE = 1.0
EVERY_WAY = 0.9
LINE = 1.0
"""What a moved fence and one more line cost beside what the instruction costs; a barrier that moves to where every way
of a thread ends comes before one that moves elsewhere."""

_TELLS = 8
"""The turn of what tells other threads something among what is put at one place: after fences and waits."""

NEAR = 4
"""The most places over which an instruction is moved, either way."""


def strengthenings(lowered: LoweredTest) -> list[Edit]:
    """Changes that only add order: of these, more never allow more."""
    edits = single_strengthenings(lowered)
    return [*edits, *alike_waits(lowered, edits), *waits_of_rounds(lowered, edits)]


def single_strengthenings(lowered: LoweredTest, *, exact: bool = False) -> list[Edit]:
    """Changes that strengthen one place each: another spelling of an instruction, or a line put into a gap. `exact`: as
    in `Lines`.
    """
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
    numbers = list(other_numbers(lowered))
    edits: list[Edit] = [*numbers, *at_another_barrier(lowered), *invalidated(lowered)]
    for number, thread in enumerate(test.threads):
        for index, item in enumerate(instructions(thread)):
            at = (number, index)
            edits += _names(test, thread, item, at)
            if _movable(lowered, number, index):
                edits += _moves(lowered, number, item, index)
    awaited = awaited_values(lowered)
    single = [edit for edit in (*numbers, *awaited) if not edit.more]
    edits += [*alike(lowered, single), *exchanges(lowered), *flips(lowered)]
    edits += [*awaited, *one_size(lowered), *in_halves(lowered)]
    edits += [*lock_order(lowered), *one_lock(lowered)]
    return [*edits, *one_atomic(lowered), *retries(lowered), *one_access(lowered), *one_name(lowered)]


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
    for word in {"noComplete", "nc"} & set(item.parts):
        mnemonic = ".".join(part for part in item.parts if part != word)
        yield respelled(thread, item, mnemonic, NUMBER, (*at, "name"))
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
    kept = [op for op in ops if not (isinstance(op, MOVABLE) or _counts(op) or _signals_only(op) or _gives_back(op))]
    arrives = all(
        isinstance(op, OnObject) and op.label.action in (Action.ARRIVE, Action.EXPECT_TX) and op.register is None
        for op in kept
    )
    return is_fence(lowered, number, index) or (not all(map(_counts, ops)) and arrives)


def _counts(op: Op) -> bool:
    """True if the operation counts the groups or fences of wgmma so far, for what its page calls undefined."""
    return isinstance(op, Assign) and op.register.startswith("#")


def _signals_only(op: Op) -> bool:
    """True if the operation only signals completion: tcgen05.commit or cp.async.mbarrier.arrive."""
    return isinstance(op, IssueAsync) and all(isinstance(part, SignalPart) for part in op.parts)


def _gives_back(op: Op) -> bool:
    """True of tcgen05.dealloc and tcgen05.relinquish_alloc_permit."""
    return isinstance(op, Emit) and isinstance(op.label, Allocates) and op.label.what is not Allocation.ALLOC


def _moves(lowered: LoweredTest, number: int, item: Instruction, index: int) -> Iterator[Edit]:
    thread, told = lowered.test.threads[number], _tells(lowered, number, index)
    openings = [gap for gap in gaps(lowered, number) if gap.index not in (index, index + 1)]
    waits = _waits_of(lowered, number, index)
    openings = [gap for gap in openings if not any((gap.index <= wait) is not (index < wait) for wait in waits)]
    earlier, later = ([gap for gap in openings if (gap.index < index) is side] for side in (True, False))
    before = list(instructions(thread))[index - 1] if index and told and is_fence(lowered, number, index - 1) else None
    for gap in (*earlier[-NEAR:], *later[:NEAR]):
        if _leaves_empty_group(lowered, number, index, gap.index):
            continue
        if not (gap.last and is_fence(lowered, number, index)):
            yield moved(thread, (item,), index, gap, MOVE, _TELLS if told else 0)
        if before is not None and gap.index > index:
            yield moved(thread, (before, item), index, gap, MOVE, _TELLS)
    end = behind_the_label(lowered, number)
    if end is not None and any(isinstance(op, AtBarrier) for op in lowered.programs[number].ops(index)):
        yield moved(thread, (item,), index, end, EVERY_WAY)


def _leaves_empty_group(lowered: LoweredTest, number: int, index: int, to: int) -> bool:
    """True if more groups are empty with a commit in another place."""
    count = len(list(instructions(lowered.test.threads[number])))
    ops = [tuple(lowered.programs[number].ops(at)) for at in range(count)]
    if not any(isinstance(op, CommitGroup) for op in ops[index]):
        return False
    moved_ops = [*ops[:to], ops[index], *ops[to:]]
    del moved_ops[index if to > index else index + 1]
    return _empty_groups(moved_ops) > _empty_groups(ops)


def _empty_groups(ops: list[tuple[Op, ...]]) -> int:
    """How many commits follow another one of their kind with nothing in between that their group tracks."""
    empty = 0
    pending: dict[Track, bool] = {}
    for op in (op for instruction in ops for op in instruction):
        if isinstance(op, CommitGroup):
            empty += not pending.get(op.track)
            pending[op.track] = False
        elif isinstance(op, IssueAsync):
            pending |= {track: True for track in Track if tracked(op, track)}
    return empty


def _tells(lowered: LoweredTest, number: int, index: int) -> bool:
    """True if an instruction tells other threads what came before it: what is put beside it goes in front."""
    ops = lowered.programs[number].ops(index)
    return any(isinstance(op, OnObject | AtBarrier) or _signals_only(op) for op in ops)


def _waits_of(lowered: LoweredTest, number: int, index: int) -> list[int]:
    """The instructions that only wait at the barrier of the cluster, of one that only arrives there: it stays on its
    side of them."""
    halves: dict[int, set[Half]] = {}
    for step in lowered.programs[number].steps:
        if isinstance(step.op, AtBarrier) and step.op.label.domain is Domain.CLUSTER:
            halves.setdefault(step.index, set()).add(step.op.label.half)
    return [at for at, half in halves.items() if half == {Half.WAIT} and halves.get(index) == {Half.ARRIVE}]
