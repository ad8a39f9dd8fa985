"""Strong reads as decisions: the write that each of them returns.

In: LaunchTrace, whose reads know which write they return. Out: `ChosenRead`s, and keys of reads and writes, which name
them in other runs too. Rounds of polling loops that change nothing are no decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from memmodel.base.labels import Access, Fence, ProxyFence, Side, is_replicated, side_of
from memmodel.kernel.machine.choices.schedule import AccessKey, ChosenRead
from memmodel.kernel.machine.choices.scripted_reads import NOT_COUNTED, counted_write
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace, TermsOf
from memmodel.kernel.trace.left_out import leave_out
from memmodel.program.fields import NOTHING, Bits
from memmodel.ptx.vocabulary import Proxy, Scope

SCOPES = (Scope.CTA, Scope.CLUSTER, Scope.GPU, Scope.SYS)
"""From the smallest to the largest."""

Place = tuple[object, int]
"""A block, and the first byte of a word in it."""


def place_of(access: TraceEvent) -> Place:
    return access.block, access.first


def source_of(read: TraceEvent) -> AccessKey | None:
    """The write that a read returns; None for what was there before all strong writes."""
    write = counted_write(read.source)
    return None if write is None else write.key


def chosen_read(
    read: TraceEvent, write: AccessKey | None, bits: Bits | None, *, may_write: bool = False
) -> ChosenRead:  # fmt: skip
    """The decision that a read returns a write, which leaves `bits`. An atomic operation that wrote in the run that the
    read is of may write, and so may one that is said to (`may_write`).
    """
    assert read.block is not None
    may_write |= read.partner is not None
    place = (read.block.instance.name, read.first) if may_write else None
    return ChosenRead(read.key, write, NOTHING if bits is None else bits, place)


def strong_accesses(run: LaunchTrace) -> dict[Place, list[TraceEvent]]:
    """The strong accesses of a run, by their places."""
    places: dict[Place, list[TraceEvent]] = {}
    for event in (event for thread in run.threads for event in thread.strong()):
        places.setdefault(place_of(event), []).append(event)
    return places


def without_rounds(run: LaunchTrace) -> None:
    """Remove what reads that loops make once more have read, and the fences of these rounds: an execution without the
    rounds has less order. Let others read from what the rounds left unchanged.
    """
    events = [event for thread in run.threads for event in thread.events]
    sources = {id(event): counted_write(event.source) for event in events if event.source is not None}
    for event in events:
        if id(event) in sources:
            event.source = sources[id(event)]
    for event in events:
        if event.turn == NOT_COUNTED and side_of(event.label) is Side.READ and event.label is not None:
            event.source = None
    _without_fences(run)
    if run.with_symbols is not None:
        run.with_symbols = partial(_with_symbols, run.with_symbols)


def _with_symbols(
    carried_out: Callable[[frozenset[int], TermsOf], LaunchTrace], stores: frozenset[int], terms: TermsOf
) -> LaunchTrace:  # fmt: skip
    run = carried_out(stores, terms)
    _without_fences(run)
    return run


def _without_fences(run: LaunchTrace) -> None:
    """Remove the fences of rounds that are not counted."""
    stays: dict[int, list[bool]] = {}
    for thread in run.threads:
        counted, keeps = True, list[bool]()
        for event in thread.events:
            fence = isinstance(event.label, Fence | ProxyFence)
            counted = counted if fence else event.turn != NOT_COUNTED
            keeps.append(counted or not fence)
        if not all(keeps):
            stays[thread.number] = keeps
    leave_out(run, stays)


def leaves_out(run: LaunchTrace, reads: Sequence[TraceEvent]) -> bool:
    """True if the run left out rounds of a loop with one of the instructions that decide, as those of a state that is
    not known: what was decided there cannot be kept.
    """
    numbers, turns = {read.at for read in reads}, dict[tuple[int, int], set[int]]()
    for event in (event for thread in run.threads for event in thread.events):
        if event.at in numbers and event.turn >= 0 and side_of(event.label) is Side.READ:
            turns.setdefault((event.thread, event.at), set()).add(event.turn)
    return any(len(counted) <= max(counted) for counted in turns.values())


def returns_older(run: LaunchTrace) -> list[tuple[TraceEvent, TraceEvent | None]]:
    """The reads that return another write than the last one in time, with what they return."""
    last: dict[Place, TraceEvent | None] = {}
    older = []
    chosen = {id(read) for read, _ in run.chosen}
    events = (event for thread in run.threads for event in thread.strong() if event.turn != NOT_COUNTED)
    for event in sorted(events, key=lambda event: event.time):
        if side_of(event.label) is Side.WRITE:
            last[place_of(event)] = event
        elif id(event) in chosen and event.source is not last.get(place_of(event)):
            older.append((event, event.source))
    return older


def strong_together(accesses: Sequence[TraceEvent], run: LaunchTrace) -> bool:
    """True if these accesses to one word are morally strong with each other, in whatever order."""
    wide = scopes_of_all(accesses, run)
    return all(
        isinstance(access.label, Access)
        and access.label.scope in wide
        and access.label.proxy is Proxy.GENERIC
        and access.issue is None
        and not is_replicated(access.label)
        for access in accesses
    )


def scopes_of_all(accesses: Sequence[TraceEvent], run: LaunchTrace) -> tuple[Scope, ...]:
    """The scopes that include the threads of all these accesses."""
    places = [run.threads[access.thread].place for access in accesses]
    least = Scope.CTA
    if len({place.cta_id for place in places}) > 1:
        least = Scope.CLUSTER
    if len({place.cluster_id for place in places}) > 1:
        least = Scope.GPU
    if len({place.gpu for place in places}) > 1:
        least = Scope.SYS
    return SCOPES[SCOPES.index(least) :]
