"""Writes that may be performed before a read that precedes them: nothing in the text makes them depend on it, and no
fence is between.

In: the instructions of a function, reads and writes of a run. Out: `all_dependent`, `all_synchronized`, `by_others`. A
write depends on a read through its operands and its guard, and where a branch on what was read may skip it, or leads
back to the read: these are the dependencies of No-Thin-Air. Source of `all_synchronized`: docs/kernels-theorem.md,
"Circles that fences exclude".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Sequence

from memmodel.base import graphs
from memmodel.base.labels import Access, Family, Fence
from memmodel.isa.lowered import Body, LoweredInstruction
from memmodel.kernel.executions.decisions import Place, place_of
from memmodel.kernel.flow.paths import reached
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.program.expressions import registers_of
from memmodel.program.ops import Emit, Write
from memmodel.program.regions import Elements
from memmodel.ptx.vocabulary import Scope, Sem

MOST_STATES = 20_000
"""Instructions with registers that are looked at for dependencies."""


def all_dependent(body: Body, read: int, writes: Collection[int]) -> bool:
    """True if every write on the paths after a read depends on it by the text."""
    start = frozenset(body[read].writes), frozenset[int]()
    waiting = [(at, *start) for at in body[read].follows]
    seen: set[tuple[int, frozenset[int], frozenset[int]]] = set()
    skipped: dict[tuple[int, int], bool] = {}
    while waiting:
        at, tainted, branches = state = waiting.pop()
        if state in seen or at >= len(body):
            continue
        seen.add(state)
        if len(seen) > MOST_STATES or body[at].calls or body[at].jumps_by_table:
            return False
        does = body[at]
        guard = does.instruction.guard
        guarded = guard is not None and guard.slot in tainted
        uses = guarded or not tainted.isdisjoint(does.reads)
        if at in writes and not uses:
            for branch in branches:
                if (branch, at) not in skipped:
                    skipped[branch, at] = _may_be_skipped(body, branch, at, read)
            if not any(skipped[branch, at] for branch in branches):
                return False
        if guarded and does.changes_control:
            branches |= {at}
        if uses:
            tainted |= frozenset(does.writes)
        elif guard is None:
            tainted -= frozenset(does.writes)
        waiting += [(following, tainted, branches) for following in does.follows]
    return True


def _may_be_skipped(body: Body, branch: int, write: int, read: int) -> bool:
    """True if one way from a branch ends, or leads back to the read, without the write."""

    def ends(at: int) -> bool:
        return at >= len(body) or body[at].ends or body[at].traps or not body[at].follows

    def follows(at: int) -> tuple[int, ...]:
        return () if at >= len(body) or at in (write, read) else body[at].follows

    if ends(branch):
        return True
    for way in body[branch].follows:
        reached = graphs.reached([way], follows)
        if read in reached or any(ends(at) for at in reached if at != write):
            return True
    return False


def all_synchronized(
    body: Body, reads: Sequence[TraceEvent], writes: Sequence[TraceEvent], wide: Container[Scope]
) -> bool:
    """True if reads do not depend in a circle on writes behind them, since fences keep these behind. `wide`: the scopes
    that include all threads that execute these accesses.

    On each path from a read to a write there is a fence, or the read acquires and the write releases. A write that
    follows a release of its own word behind the read is in the pattern of that. One word is an exception: no fence has
    to be between an access to it and the next one, and a release is enough before writes to other words.
    """
    if any(does.calls or does.jumps_by_table for does in body):
        return False
    read_at, written_at = defaultdict[int, list[TraceEvent]](list), defaultdict[int, list[TraceEvent]](list)
    for event, by_instruction in [*((read, read_at) for read in reads), *((write, written_at) for write in writes)]:
        by_instruction[event.at].append(event)
    unfenced = [
        (at, later)
        for at in read_at
        for later in reached(body, body[at].follows, lambda does: not _is_fence(does, wide)) & written_at.keys()
    ]

    released = {
        (at, later): all(_has(write, Sem.RELEASE) for write in written_at[later]) or _released(body, at, later, wide)
        for at, later in unfenced
    }
    synchronized = {
        (at, later)
        for at, later in unfenced
        if released[at, later] and all(_has(read, Sem.ACQUIRE) for read in read_at[at])
    }

    def kept_behind(at: int, later: int, word: Place) -> bool:
        of_word = all(place_of(read) == word for read in read_at[at])
        return of_word and (released[at, later] or all(place_of(write) == word for write in written_at[later]))

    leads_on = {at for at in read_at if reached(body, body[at].follows, lambda does: True) & written_at.keys()}
    no_red = {place_of(read) for at in leads_on for read in read_at[at] if _is_red(read)}
    words = {place_of(event) for event in (*reads, *writes)}
    open_pairs = [pair for pair in unfenced if pair not in synchronized]
    return any(no_red <= {word} and all(kept_behind(*pair, word) for pair in open_pairs) for word in words)


def _released(body: Body, read: int, write: int, wide: Container[Scope]) -> bool:
    """True if each path without a fence from a read to a write comes, behind the read, to a write of the same word that
    releases. The same word: of the same address by the text, in registers that do not change in between.
    """
    region = _written(body[write])
    if region is None:
        return False
    registers = {int(name) for name in registers_of(region.address) if name.isdigit()}

    def after(state: tuple[int, bool]) -> Iterable[tuple[int, bool]]:
        at, released = state
        does = body[at]
        released |= _releases(does, region, wide) and (at == read or does.instruction.guard is None)
        released &= registers.isdisjoint(does.writes)
        return ((following, released) for following in does.follows)

    def goes_on(state: tuple[int, bool]) -> Iterable[tuple[int, bool]]:
        return () if state[0] >= len(body) or _is_fence(body[state[0]], wide) else after(state)

    return (write, False) not in graphs.reached(after((read, False)), goes_on)


def _written(does: LoweredInstruction) -> Elements | None:
    """What an instruction writes at once, if that is one scalar."""
    writes = [op.region for op in does.ops if isinstance(op, Write)]
    one = writes[0] if len(writes) == 1 else None
    return one if isinstance(one, Elements) and one.count == 1 else None


def _releases(does: LoweredInstruction, region: Elements, wide: Container[Scope]) -> bool:
    """True for an instruction that writes this in any case, and releases."""
    labels = [op.label for op in does.ops if isinstance(op, Write)]
    releases = all(label.sem is Sem.RELEASE and label.scope in wide for label in labels)
    return releases and _written(does) == region and not does.may_fail


def _is_fence(does: LoweredInstruction, wide: Container[Scope]) -> bool:
    """True for an instruction that a thread cannot skip, and that releases and acquires all memory."""
    labels = [op.label for op in does.ops if isinstance(op, Emit) and isinstance(op.label, Fence)]
    return does.instruction.guard is None and any(
        label.sem in (Sem.ACQ_REL, Sem.SC) and label.covers is None and label.scope in wide for label in labels
    )


def _has(access: TraceEvent, sem: Sem) -> bool:
    return isinstance(access.label, Access) and access.label.sem is sem


def _is_red(read: TraceEvent) -> bool:
    """True for the read of a `red`: it is no part of an acquire pattern."""
    return isinstance(read.label, Access) and read.label.family is Family.RED


def by_others(run: LaunchTrace, reads: Sequence[TraceEvent], writes: Sequence[TraceEvent]) -> bool:
    """True if a thread writes after another thread of its cluster has read: barriers and shuffles may lead there."""
    together: dict[object, dict[int, int]] = {}
    for read in reads:
        first = together.setdefault(_cluster(run, read), {})
        first[read.thread] = min(read.time, first.get(read.thread, read.time))
    return any(
        thread != write.thread and time < write.time
        for write in writes
        for thread, time in together.get(_cluster(run, write), {}).items()
    )


def _cluster(run: LaunchTrace, event: TraceEvent) -> object:
    place = run.threads[event.thread].place
    return place.cta_id if place.cluster is None else place.cluster_id
