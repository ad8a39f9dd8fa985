"""All executions of a launch: each strong read that decides something reads from each write that it may.

In: runs of scripts. Out: scripts that are still to be run. An execution is known by its decisions: the write that
each deciding read returns. From a run, one decision is changed at a time: what depends on that read is decided anew,
and so is an atomic operation that read from the same write. Source: docs/kernels-theorem.md, "All executions".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memmodel.base.labels import Access, Side, is_atomic, side_of
from memmodel.isa.lowered import body_of
from memmodel.kernel.executions.consistent import one_place, weak_writes
from memmodel.kernel.executions.dependence import flows, only_values
from memmodel.kernel.executions.early_writes import all_dependent, by_others
from memmodel.kernel.executions.followers import Followers
from memmodel.kernel.machine.choices.schedule import AccessKey, ChosenRead
from memmodel.kernel.machine.choices.scripted_reads import NOT_COUNTED, LeadsBack, counted_write
from memmodel.kernel.order.last_writes import CausalOrder
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import ChoiceKind, LaunchTrace
from memmodel.program.fields import NOTHING, Bits
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.vocabulary import Scope

Script = frozenset[ChosenRead]
Place = tuple[object, int]
"""A block, and the first byte of a word in it."""

MOST_AT_A_WORD = 4
"""Threads whose atomic operations on one word may come in any order: five have 120 orders."""

SCOPES = (Scope.CTA, Scope.CLUSTER, Scope.GPU, Scope.SYS)
"""From the smallest to the largest."""


@dataclass(slots=True)
class ReadsFrom:
    """The scripts that are still to be run. `leads_back`: whether a value leads a loop back to a read; `initial`: what
    a read returns before all writes. `deciding`: the instructions whose results decide something; `waits`: loads
    that are waits in every execution.
    """

    entry: PtxFunction
    leads_back: LeadsBack
    initial: Callable[[TraceEvent], int | None]
    deciding: frozenset[int]
    waits: frozenset[int]
    why_not: str = ""
    """Why these are not all executions."""
    _waiting: list[Script] = field(default_factory=list)
    _staying: list[Script] = field(default_factory=list)
    _polls: dict[AccessKey, tuple[TraceEvent, int | None]] = field(default_factory=dict)
    _stayed: set[object] = field(default_factory=set)
    _seen: set[Script] = field(default_factory=set)
    _known: set[object] = field(default_factory=set)
    _dependent: dict[tuple[int, frozenset[int]], bool] = field(default_factory=dict)

    def start(self) -> None:
        self._queue(frozenset())

    def next(self) -> Iterator[Script]:
        while self._waiting or self._staying:
            yield (self._waiting or self._staying).pop()

    @property
    def left(self) -> int:
        return len(self._waiting)

    def is_new(self, run: LaunchTrace) -> bool:
        """True for a run with decisions that no other run had."""
        decisions = frozenset((key_of(read), _source(read)) for read in self.reads(run))
        new = decisions not in self._known
        self._known.add(decisions)
        return new

    def follows(self, run: LaunchTrace, script: Script) -> bool:
        """True if each read of the script was made and returned what the script says, or did so in a round of a loop
        that is not counted.
        """
        made = {(key_of(read), _source(read)) for read in self.reads(run)}
        rounds = {
            (event.thread, event.at, _source(event))
            for thread in run.threads
            for event in thread.events
            if event.turn == NOT_COUNTED and side_of(event.label) is Side.READ
        }
        return all(
            choice.never or (choice.read, choice.write) in made or (*choice.read[:2], choice.write) in rounds
            for choice in script
        )

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

    def note(self, run: LaunchTrace, order: CausalOrder, *, in_time: bool = True) -> None:
        """Queue the scripts in which one decision of a run is another one. `order`: what precedes what by the decisions
        before it. An order of fence.sc that decisions demand is none of these: they may be those that are decided anew.
        `in_time`: each read returns the last write in time.
        """
        reads, places = self.reads(run), _by_place(run)
        waits = [event for events in places.values() for event in events if event.at in self.waits]
        decided_reads = {id(read) for read in reads}
        sure = {*decided_reads, *map(id, waits)}
        self.why_not = self.why_not or self._unfit(run, reads, waits, places, order, in_time)
        if self.why_not:
            return
        after, earlier = Followers(run, sure), dict[Place, dict[int, list[TraceEvent]]]()
        within = Followers(run, sure, objects=False)
        movable: dict[Place, set[int]] = {}
        for read in reads:
            later = after.of([read])
            if len({*map(_place, reads), *map(_place, waits)}) == 1 and self._joined(
                read, places, later, within, order
            ):
                return
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
                if value is not None and not is_atomic(read.label) and self.leads_back(read, value):
                    continue
                if read.partner is not None:
                    movable.setdefault(place, set()).add(read.thread)
                for script in self._scripts(reads, later, after, read, write):
                    self._queue(script)
        if any(len(threads) > MOST_AT_A_WORD for threads in movable.values()):
            self.why_not = f"more than {MOST_AT_A_WORD} threads operate on one word"
            return

        for read in reads:
            self._may_stay(run, read, reads, frozenset(), after, places)

    def note_stay(self, run: LaunchTrace, script: Script) -> None:
        """What follows from a run in which some threads stay in their loops: whether it may end so, and scripts in
        which one more thread stays.
        """
        staying, reads, places = frozenset(choice for choice in script if choice.never), self.reads(run), _by_place(run)
        decisions = frozenset((key_of(read), _source(read)) for read in reads), staying
        if decisions in self._stayed:
            return
        self._stayed.add(decisions)
        polls = [self._polls[choice.read] for choice in staying]
        if all(self._stays(poll, first, places) for poll, first in polls):
            self.why_not = f"a thread may stay in the loop around {_at((self.entry.body or ())[polls[0][0].at])}"
        sure = {id(read) for read in reads}
        waits = {id(event) for events in places.values() for event in events if event.at in self.waits}
        after = Followers(run, sure | waits)
        for read in reads:
            self._may_stay(run, read, reads, staying, after, places)

    def _stays(self, poll: TraceEvent, first: int | None, places: Mapping[Place, Sequence[TraceEvent]]) -> bool:
        """True if a write that may be the last one, or what was there `first`, leads back to a read that polls."""
        assert poll.block is not None
        word = poll.block.instance.name, poll.first
        accesses = [
            access
            for place in places.values()
            for access in place
            if access.turn != NOT_COUNTED
            and access.block is not None
            and (access.block.instance.name, access.first) == word
        ]
        writes = [access for access in accesses if side_of(access.label) is Side.WRITE]
        values = [_value(write) for write in _last(accesses, writes)] if writes else [first]
        return any(self._leads_back(poll, value) for value in values)

    def _leads_back(self, poll: TraceEvent, value: int | None) -> bool:
        return value is None or self.leads_back(poll, value)

    def _may_stay(
        self, run: LaunchTrace, read: TraceEvent, reads: Sequence[TraceEvent], staying: Script, after: Followers,
        places: Mapping[Place, Sequence[TraceEvent]],
    ) -> None:  # fmt: skip
        """Queue the script in which one more thread stays in the loop around a read, if some value leads back to it."""
        writes = [access for access in places[_place(read)] if side_of(access.label) is Side.WRITE]
        values = [_value(write) for write in writes if write is not read.partner]
        weak = weak_writes(run, read)
        first = weak[0].value if weak else self.initial(read)
        values.append(first)
        if not any(self._leads_back(read, value) for value in values):
            return
        self._polls[key_of(read)] = read, first
        later = after.of([read])
        kept = [_chosen(other, _source(other), other.bits) for other in reads if id(other) not in later]
        script = frozenset((*kept, *staying, ChosenRead(key_of(read), None, NOTHING, never=True)))
        if script not in self._seen:
            self._seen.add(script)
            self._staying.append(script)

    def _first(self, run: LaunchTrace, read: TraceEvent) -> int | None:
        """What a read of the value before all strong writes returned in this run, if one did."""
        for other in self.reads(run):
            if (other.block, other.first) == (read.block, read.first) and _source(other) is None:
                return _value(other)
        return None

    def _scripts(
        self, reads: Collection[TraceEvent], later: Collection[int], after: Followers, read: TraceEvent,
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
        if rivals and body_of(self.entry)[read.at].may_fail:
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

    def _unfit(
        self, run: LaunchTrace, reads: Sequence[TraceEvent], waits: Sequence[TraceEvent],
        accesses: Mapping[Place, Sequence[TraceEvent]], order: CausalOrder, in_time: bool,
    ) -> str:  # fmt: skip
        """Why the decisions of a run do not say which execution it is, or may depend on each other in a circle.

        `accesses`: the strong ones by their places.
        """
        body = self.entry.body or ()
        read_by_threads = {read.at for read in reads if read.issue is None}
        loaded_from = {at for kind, at in run.choices if kind is not ChoiceKind.LAST_WRITE}
        for at in sorted((self.deciding & loaded_from) - read_by_threads):
            return f"what {_at(body[at])} reads is read by no strong access of a thread"
        loaded = _loaded_after_several(run)
        if loaded is not None:
            return f"which write {_at(body[loaded])} reads depends on the order of writes"
        loaded = None if in_time else self._misread(run)
        if loaded is not None:
            return f"{_at(body[loaded])} may read an older value than in a run"
        if run.multimem:
            return "words may be written through multimem addresses"
        for place, read in {_place(read): read for read in reads}.items():
            if not one_place(run, read):
                return f"what {_at(body[read.at])} reads is not all written by strong accesses of its size"
            if not _in_scope(run, accesses[place]):
                return f"accesses to what {_at(body[read.at])} reads are of too small a scope"
            # A round of a loop that is left out, too, has to come after a weak write.
            for write in weak_writes(run, read):
                if not all(order.ahead(write, access) for access in accesses[place]):
                    return f"a weak write to what {_at(body[read.at])} reads does not come before all of its accesses"
        deciding = {*map(_place, reads), *map(_place, waits)}
        if len(deciding) > 1:
            writes = [event for place in deciding for event in accesses[place] if side_of(event.label) is Side.WRITE]
            numbers = frozenset(write.at for write in writes)
            for at in sorted({read.at for read in (*reads, *waits)}):
                if not self._all_dependent(at, numbers):
                    return f"a later write may be performed before {_at(body[at])}"
            if by_others(run, (*reads, *waits), writes):
                return "a thread writes such a word after another thread of its cluster has decided"
        return ""

    def _joined(
        self, read: TraceEvent, accesses: Mapping[Place, Sequence[TraceEvent]], later: Container[int],
        within: Followers, order: CausalOrder,
    ) -> bool:  # fmt: skip
        """True if a write to the only word follows a read through a barrier or an object that does not order them."""
        follow = within.of([read])
        writes = [write for write in accesses[_place(read)] if side_of(write.label) is Side.WRITE]
        joined = [write for write in writes if id(write) in later and id(write) not in follow]
        if all(order.before(read, write) for write in joined):
            return False
        self.why_not = "a barrier leads to a later write, and does not order it"
        return True

    def _misread(self, run: LaunchTrace) -> int | None:
        """The number of an instruction with a weak read of what other threads write, if it may decide what threads do:
        where strong reads return older values, a later write is not to be seen, but the run has made it.
        """
        loads_of = flows(run)
        for at in _loaded_of_others(run):
            if loads_of is None or not only_values(self.entry, at, loads_of):
                return at
        return None

    def _all_dependent(self, at: int, writes: frozenset[int]) -> bool:
        key = at, writes
        if key not in self._dependent:
            self._dependent[key] = all_dependent(body_of(self.entry), at, writes)
        return self._dependent[key]


def _by_place(run: LaunchTrace) -> dict[Place, list[TraceEvent]]:
    """The strong accesses of a run."""
    places: dict[Place, list[TraceEvent]] = {}
    for event in (event for thread in run.threads for event in thread.strong()):
        places.setdefault(_place(event), []).append(event)
    return places


def _last(accesses: Sequence[TraceEvent], writes: Sequence[TraceEvent]) -> list[TraceEvent]:
    """The writes to a word after which there may be no other: no thread writes it after it has written or read them."""
    over = set[int]()
    own: dict[int, list[TraceEvent]] = {}
    for access in sorted(accesses, key=lambda access: access.time):
        if side_of(access.label) is Side.WRITE:
            seen = own.setdefault(access.thread, [])
            over |= {id(write) for write in seen if write is not access}
            seen.append(access)
        elif (source := counted_write(access.source)) is not None:
            own.setdefault(access.thread, []).append(source)
    return [write for write in writes if id(write) not in over]


def _place(event: TraceEvent) -> Place:
    return event.block, event.first


def _in_scope(run: LaunchTrace, accesses: Sequence[TraceEvent]) -> bool:
    """True if the scope of each access includes the threads of all of them."""
    places = [run.threads[access.thread].place for access in accesses]
    least = Scope.CTA
    if len({place.cta_id for place in places}) > 1:
        least = Scope.CLUSTER
    if len({place.cluster_id for place in places}) > 1:
        least = Scope.GPU
    if len({place.gpu for place in places}) > 1:
        least = Scope.SYS
    wide = SCOPES[SCOPES.index(least) :]
    return all(isinstance(access.label, Access) and access.label.scope in wide for access in accesses)


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


def _loaded_of_others(run: LaunchTrace) -> list[int]:
    """The numbers of the instructions with weak reads of bytes that another thread writes."""
    writers: dict[Block, dict[int, set[int]]] = {}
    accesses: list[TraceEvent | WeakAccess] = [event for thread in run.threads for event in thread.strong()]
    for access in (*accesses, *run.weak()):
        if side_of(access.label) is Side.WRITE and access.block is not None:
            written = writers.setdefault(access.block, {})
            for byte in range(access.first, access.first + access.size):
                written.setdefault(byte, set()).add(access.thread)
    numbers = set[int]()
    for access in run.weak(writers.keys()):
        if side_of(access.label) is Side.READ and access.at not in numbers:
            written = writers[access.block]
            bytes_ = range(access.first, access.first + access.size)
            if any(not written.get(byte, set()) <= {access.thread} for byte in bytes_):
                numbers.add(access.at)
    return sorted(numbers)


def _at(instruction: PtxInstruction) -> str:
    return f"{instruction.opcode} at line {instruction.line}"


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


def leaves_out(run: LaunchTrace, reads: Sequence[TraceEvent]) -> bool:
    """True if the run left out rounds of a loop with one of the instructions that decide, as those of a state that is
    not known: what was decided there cannot be kept.
    """
    numbers, turns = {read.at for read in reads}, dict[tuple[int, int], set[int]]()
    for event in (event for thread in run.threads for event in thread.events):
        if event.at in numbers and event.turn >= 0 and side_of(event.label) is Side.READ:
            turns.setdefault((event.thread, event.at), set()).add(event.turn)
    return any(len(seen) <= max(seen) for seen in turns.values())


def returns_older(run: LaunchTrace) -> list[tuple[TraceEvent, TraceEvent | None]]:
    """The reads that return another write than the last one in time, with what they return."""
    last: dict[Place, TraceEvent | None] = {}
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
    return None if event.bits is None else event.bits.number(8 * event.size)


def _chosen(read: TraceEvent, write: AccessKey | None, bits: Bits | None, *, writes: bool = False) -> ChosenRead:
    """A decision. `writes`: an atomic operation that may write, else it does if it wrote."""
    assert read.block is not None
    writes |= read.partner is not None
    place = (read.block.instance.name, read.first) if writes else None
    return ChosenRead(key_of(read), write, NOTHING if bits is None else bits, place)
