"""All executions of a launch: each strong read that decides something reads from each write that it may.

In: runs of scripts. Out: scripts that are still to be run. An execution is known by its decisions: the write that
each deciding read returns. From a run, one decision is changed at a time: what depends on that read is decided anew,
and so is an atomic operation that read from the same write. Source: docs/kernels-theorem.md, "All executions".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memmodel.base.labels import Barrier, Half, Side, is_atomic, side_of
from memmodel.isa.lowered import LoweredInstruction, body_of
from memmodel.kernel.executions.consistent import one_place
from memmodel.kernel.machine.choices.schedule import AccessKey, ChosenRead
from memmodel.kernel.machine.choices.scripted_reads import NOT_COUNTED, counted_write
from memmodel.kernel.order.last_writes import CausalOrder
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.program.fields import NOTHING, Bits
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction

Again = Callable[[TraceEvent, int | None], bool]
Script = frozenset[ChosenRead]

MOST_STATES = 20_000
"""Instructions with registers that are looked at for dependencies."""


@dataclass(slots=True)
class ReadsFrom:
    """The scripts that are still to be run. `deciding`: the instructions whose results decide something; `waits`: loads
    that are waits in every execution.
    """

    entry: PtxFunction
    again: Again
    deciding: frozenset[int]
    waits: frozenset[int]
    why_not: str = ""
    """Why these are not all executions."""
    _waiting: list[Script] = field(default_factory=list)
    _seen: set[Script] = field(default_factory=set)
    _known: set[object] = field(default_factory=set)
    _dependent: dict[tuple[int, frozenset[int]], bool] = field(default_factory=dict)

    def start(self) -> None:
        self._queue(frozenset())

    def next(self) -> Iterator[Script]:
        while self._waiting:
            yield self._waiting.pop()

    @property
    def left(self) -> int:
        return len(self._waiting)

    def is_new(self, run: LaunchTrace) -> bool:
        """True for a run with decisions that no other run had."""
        decisions = frozenset((key_of(read), _source(read)) for read in self.reads(run))
        new = decisions not in self._known
        self._known.add(decisions)
        return new

    def reads(self, run: LaunchTrace) -> list[TraceEvent]:
        """The deciding reads of a run, in their order in time: those of the instructions that decide, and of all atomic
        operations at their words. The order of these decides what the others read.
        """
        counted = [
            event
            for thread in run.threads
            for event in thread.events
            if event.turn != NOT_COUNTED and side_of(event.label) is Side.READ and event.block is not None
        ]
        places = {(event.block, event.first) for event in counted if event.at in self.deciding}
        reads = (
            event
            for event in counted
            if event.at in self.deciding or (event.partner is not None and (event.block, event.first) in places)
        )
        return sorted(reads, key=lambda read: read.time)

    def note(self, run: LaunchTrace, order: CausalOrder) -> None:
        """Queue the scripts in which one decision of a run is another one. `order`: what precedes what in every
        execution with these decisions.
        """
        reads = self.reads(run)
        places: dict[tuple[object, int], list[TraceEvent]] = {}
        for event in (event for thread in run.threads for event in thread.strong()):
            places.setdefault((event.block, event.first), []).append(event)
        decided = {(read.block, read.first) for read in reads}
        strong = [event for place in decided for event in places[place] if side_of(event.label) is Side.WRITE]
        self.why_not = self.why_not or self._unfit(run, reads, strong)
        if self.why_not:
            return
        decided_reads = {id(read) for read in reads}
        after, earlier = _Dependents(run), dict[tuple[object, int], dict[int, list[TraceEvent]]]()
        for read in reads:
            later = after.of([read])
            writes = [
                event
                for event in places[read.block, read.first]
                if side_of(event.label) is Side.WRITE and event.turn != NOT_COUNTED
            ]
            now, own = _source(read), id(read.partner)
            place = read.block, read.first
            if place not in earlier:
                earlier[place] = _earlier(places[place], order)
            overwritten = _overwritten(read, places[place], decided_reads, later, earlier[place], order)
            for write in (None, *writes):
                known = None if write is None else id(write)
                if known in later or known in overwritten or known == own:
                    continue
                if (None if write is None else key_of(write)) == now:
                    continue
                value = self._first(run, read) if write is None else _value(write)
                if value is not None and self.again(read, value):
                    continue
                for script in self._scripts(reads, later, after, read, write):
                    self._queue(script)

    def _first(self, run: LaunchTrace, read: TraceEvent) -> int | None:
        """What a read of the value before all strong writes returned in this run, if one did."""
        for other in self.reads(run):
            if (other.block, other.first) == (read.block, read.first) and _source(other) is None:
                return _value(other)
        return None

    def _scripts(
        self, reads: Collection[TraceEvent], later: Collection[int], after: _Dependents, read: TraceEvent,
        write: TraceEvent | None,
    ) -> Iterator[Script]:  # fmt: skip
        """The decisions that stay, and the one that is another one. Of two atomic operations that read from one write
        one writes nothing: either the other one is decided anew, or this one writes nothing.
        """
        atomic = read.partner is not None or is_atomic(read.label)
        key = None if write is None else key_of(write)
        rivals = [
            other
            for other in reads
            if atomic and other is not read and other.partner is not None and id(other) not in later
            and (other.block, other.first) == (read.block, read.first) and _source(other) == key
        ]  # fmt: skip
        bits = NOTHING if write is None or write.bits is None else write.bits
        if rivals:
            kept = [_chosen(other, _source(other), other.bits) for other in reads if id(other) not in later]
            yield frozenset((*kept, replace(_chosen(read, key, bits, writes=True), fails=True)))
        dropped = {*later, *(after.of(rivals) if rivals else ())}
        kept = [_chosen(other, _source(other), other.bits) for other in reads if id(other) not in dropped]
        yield frozenset((*kept, _chosen(read, key, bits, writes=atomic)))

    def _queue(self, script: Script) -> None:
        if script not in self._seen:
            self._seen.add(script)
            self._waiting.append(script)

    # ---- whether decisions are all there is ------------------------------------------------------------------

    def _unfit(self, run: LaunchTrace, reads: Sequence[TraceEvent], writes: Sequence[TraceEvent]) -> str:
        """Why the decisions of a run do not say which execution it is, or may depend on each other in a circle.

        `writes`: to the places of the reads.
        """
        body = self.entry.body or ()
        loaded = _loaded_after_several(run)
        if loaded is not None:
            return f"which write {_at(body[loaded])} reads depends on the order of writes"
        places = {(read.block, read.first): read for read in reads}
        for read in places.values():
            if not one_place(run, read):
                return f"what {_at(body[read.at])} reads is not all written by strong accesses of its size"
        if len(places) > 1:
            strong = frozenset(write.at for write in writes)
            met = {event.at for thread in run.threads for event in thread.strong() if side_of(event.label) is Side.READ}
            for at in sorted((self.deciding | self.waits) & met):
                if not self._all_dependent(at, strong):
                    return f"a later write may be performed before {_at(body[at])}"
            if _by_others(run, reads, writes):
                return "a thread writes such a word after another thread of its cluster has decided"
        return ""

    def _all_dependent(self, at: int, writes: frozenset[int]) -> bool:
        key = at, writes
        if key not in self._dependent:
            self._dependent[key] = _all_dependent(body_of(self.entry), at, writes)
        return self._dependent[key]


def _earlier(accesses: Sequence[TraceEvent], order: CausalOrder) -> dict[int, list[TraceEvent]]:
    """For each write to a place, by its identity, writes before it in every execution with these decisions."""
    writes = [access for access in accesses if side_of(access.label) is Side.WRITE]
    earlier = {}
    for write in writes:
        source = None if write.partner is None else counted_write(write.partner.source)
        earlier[id(write)] = [
            other
            for other in writes
            if other is not write
            and (
                other is source
                or (other.thread == write.thread and other.time < write.time)
                or order.before(other, write)
            )
        ]
    return earlier


def _overwritten(
    read: TraceEvent, accesses: Sequence[TraceEvent], decided: Collection[int], later: Collection[int],
    earlier: Mapping[int, list[TraceEvent]], order: CausalOrder,
) -> set[int | None]:  # fmt: skip
    """The writes to a place, by their identity (None: what was there first), that a read cannot return: it, or a read
    before it in its thread, returns a later one. `decided`: the reads whose sources are decided. What is left undecided
    when the read is (`later`) does not count.
    """
    own = [access for access in accesses if access.thread == read.thread and (access.order or 0) < (read.order or 0)]
    waiting = [access for access in own if side_of(access.label) is Side.WRITE]
    sources = (counted_write(access.source) for access in own if id(access) in decided)
    waiting += [write for write in sources if write is not None]
    waiting += [write for write in accesses if id(write) in earlier and order.ahead(write, read)]
    over = set[int | None]()
    while waiting:
        write = waiting.pop()
        if id(write) in later:
            continue
        new = [other for other in earlier.get(id(write), ()) if id(other) not in over and id(other) not in later]
        over |= {None, *map(id, new)}
        waiting += new
    return over


def _loaded_after_several(run: LaunchTrace) -> int | None:
    """The number of an instruction with a weak read of bytes that several threads, or a thread and
    asynchronous instructions, write strongly: which write is the last one is no decision of a strong read.
    """
    writers: dict[Block, dict[int, set[object]]] = {}
    for event in (event for thread in run.threads for event in thread.strong()):
        if side_of(event.label) is Side.WRITE and event.block is not None:
            who = event.thread if event.issue is None else id(event)
            for at in range(event.first, event.first + event.size):
                writers.setdefault(event.block, {}).setdefault(at, set()).add(who)
    for access in run.weak(writers.keys()):
        if side_of(access.label) is Side.READ:
            known = writers[access.block]
            if any(len(known.get(at, ())) > 1 for at in range(access.first, access.first + access.size)):
                return access.at
    return None


def _by_others(run: LaunchTrace, reads: Sequence[TraceEvent], writes: Sequence[TraceEvent]) -> bool:
    """True if a thread writes after another thread of its cluster has read: barriers and shuffles may lead there."""
    together: dict[object, list[TraceEvent]] = {}
    for read in reads:
        place = run.threads[read.thread].place
        together.setdefault(place.cta_id if place.cluster is None else place.cluster, []).append(read)
    for write in writes:
        place = run.threads[write.thread].place
        for read in together.get(place.cta_id if place.cluster is None else place.cluster, ()):
            if read.thread != write.thread and read.time < write.time:
                return True
    return False


def _at(instruction: PtxInstruction) -> str:
    return f"{instruction.opcode} at line {instruction.line}"


class _Dependents:
    """What follows events of a run: in their threads, from writes to reads, and through barriers and objects."""

    def __init__(self, run: LaunchTrace, *, sources: bool = True) -> None:
        self._run = run
        self._next: dict[int, list[TraceEvent]] = {}
        waits: dict[object, list[TraceEvent]] = {}
        for thread in run.threads:
            for event in thread.events:
                if sources and event.source is not None:
                    self._next.setdefault(id(event.source), []).append(event)
                if (
                    event.barrier is not None
                    and isinstance(event.label, Barrier)
                    and event.label.half is not Half.ARRIVE
                ):
                    waits.setdefault((event.barrier, event.generation), []).append(event)
        for thread in run.threads:
            for event in thread.events:
                if event.barrier is not None and isinstance(event.label, Barrier):
                    self._next.setdefault(id(event), []).extend(waits.get((event.barrier, event.generation), ()))
        for steps in run.objects.values():
            tests = [step for step in steps if not step.update]
            for step in steps:
                if step.update:
                    event = step.event.issue or step.event
                    seen = [test.event for test in tests if test.seen > step.before]
                    self._next.setdefault(id(event), []).extend(seen)

    def of(self, events: Collection[TraceEvent]) -> set[int]:
        """The identities of some events, and of all that follow them."""
        found, waiting = set[int](), list(events)
        while waiting:
            event = waiting.pop()
            if id(event) in found:
                continue
            found.add(id(event))
            waiting += self._next.get(id(event), ())
            if event.order is not None:
                own = self._run.threads[event.thread].events
                at = next((n for n in range(min(event.order, len(own) - 1), -1, -1) if own[n] is event), None)
                if at is not None and at + 1 < len(own):
                    waiting.append(own[at + 1])
        return found


def _all_dependent(body: tuple[LoweredInstruction, ...], load: int, writes: frozenset[int]) -> bool:
    """True if every write on the paths after a load depends on it by the text: through its operands, its guard, or a
    branch before it.
    """
    first = frozenset(body[load].writes)
    waiting = [(at, first) for at in body[load].follows]
    seen: set[tuple[int, frozenset[int]]] = set()
    while waiting:
        at, tainted = state = waiting.pop()
        if state in seen or at >= len(body) or at == load:
            continue
        seen.add(state)
        if len(seen) > MOST_STATES:
            return False
        does = body[at]
        guard = does.instruction.guard
        guarded = guard is not None and guard.slot in tainted
        if does.jumps and guarded:
            continue  # all that follows depends on the branch
        uses = guarded or not tainted.isdisjoint(does.reads)
        if (at in writes and not uses) or does.calls or does.jumps_by_table:
            return False
        if uses:
            tainted |= frozenset(does.writes)
        elif guard is None:
            tainted -= frozenset(does.writes)
        waiting += [(following, tainted) for following in does.follows]
    return True


def key_of(event: TraceEvent) -> AccessKey:
    return event.thread, event.at, event.turn


def without_rounds(run: LaunchTrace) -> None:
    """Remove what reads that loops make once more have read, and let others read from what these left unchanged."""
    events = [event for thread in run.threads for event in thread.events]
    sources = {id(event): counted_write(event.source) for event in events if event.source is not None}
    for event in events:
        if id(event) in sources:
            event.source = sources[id(event)]
    for event in events:
        if event.turn == NOT_COUNTED and side_of(event.label) is Side.READ and event.label is not None:
            event.source = None


def returns_older(run: LaunchTrace) -> list[tuple[TraceEvent, TraceEvent | None]]:
    """The reads that return another write than the last one in time, with what they return."""
    last: dict[tuple[object, int], TraceEvent | None] = {}
    older = []
    chosen = {id(read) for read, _ in run.chosen}
    events = (event for thread in run.threads for event in thread.strong() if event.turn != NOT_COUNTED)
    for event in sorted(events, key=lambda event: event.time):
        place = event.block, event.first
        if side_of(event.label) is Side.WRITE:
            last[place] = event
        elif id(event) in chosen and event.source is not last.get(place):
            older.append((event, event.source))
    return older


def _source(read: TraceEvent) -> AccessKey | None:
    write = counted_write(read.source)
    return None if write is None else key_of(write)


def _value(event: TraceEvent) -> int | None:
    return None if event.bits is None else event.bits.whole(8 * event.size)


def _chosen(read: TraceEvent, write: AccessKey | None, bits: Bits | None, *, writes: bool = False) -> ChosenRead:
    """A decision. `writes`: an atomic operation that may write, else it does if it wrote."""
    assert read.block is not None
    writes |= read.partner is not None
    place = (read.block.instance.name, read.first) if writes else None
    return ChosenRead(key_of(read), write, NOTHING if bits is None else bits, place)
