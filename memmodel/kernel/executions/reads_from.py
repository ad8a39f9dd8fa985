"""All executions of a launch: each strong read that decides something reads from each write that it may.

In: runs of scripts. Out: scripts that are still to be run. An execution is known by its decisions: the write that
each deciding read returns. From a run, one decision is changed at a time: what depends on that read is decided anew,
and so is an atomic operation that read from the same write. Source: docs/kernels-theorem.md, "All executions".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memmodel.base.labels import Fence, Side, is_atomic, side_of
from memmodel.isa.lowered import body_of
from memmodel.kernel.executions.consistent import weak_writes
from memmodel.kernel.executions.decision_conditions import (
    UNORDERED_BY_BARRIER,
    DecisionConditions,
    barriers_order_writes,
)
from memmodel.kernel.executions.decisions import (
    Place,
    chosen_read,
    place_of,
    source_of,
    strong_accesses,
)
from memmodel.kernel.executions.followers import Followers
from memmodel.kernel.executions.polls import Polls, element_register
from memmodel.kernel.flow.paths import in_loop
from memmodel.kernel.flow.rounds import MAX_LOOKED_AT, comes_back_alike, looked_at
from memmodel.kernel.machine.choices.schedule import AccessKey, ChosenRead
from memmodel.kernel.machine.choices.scripted_reads import NOT_COUNTED, counted_write
from memmodel.kernel.order.last_writes import CausalOrder
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.program.fields import NOTHING
from memmodel.ptx.module.syntax import PtxFunction
from memmodel.ptx.vocabulary import Sem

Script = frozenset[ChosenRead]

MOST_AT_A_WORD = 4
"""Threads whose atomic operations on one word may come in any order: five have 120 orders."""


@dataclass(slots=True)
class ReadsFrom:
    """The scripts that are still to be run. `deciding`: the instructions whose results decide something; `waits`: loads
    that are waits in every execution. `earliest`: where a poll may end with one of several writes that other executions
    differ in by more order alone, only that of least order is run.
    """

    entry: PtxFunction
    polls: Polls
    deciding: frozenset[int]
    waits: frozenset[int]
    earliest: bool = True
    why_not: str = ""
    """Why these are not all executions: nothing more is run."""
    passed_over: str = ""
    """Why a run was not looked at. Others are, for what may be wrong in them."""
    left_out: bool = False
    """True if an execution was left out because another run has less order."""
    no_execution: bool = False
    """True if something is wrong in a run that is no execution: it does not speak for one that was left out."""
    _scripts: list[Script] = field(default_factory=list)
    _staying_scripts: list[Script] = field(default_factory=list)
    """Those in which threads stay in their loops. They are run after all others."""
    _queued: set[Script] = field(default_factory=set)
    """All scripts that were ever put into one of the two."""
    _polls: dict[AccessKey, tuple[TraceEvent, int | None]] = field(default_factory=dict)
    """Reads around which a thread may stay, with what was there before all strong writes."""
    _known_decisions: set[object] = field(default_factory=set)
    _known_stays: set[object] = field(default_factory=set)
    _conditions: DecisionConditions = field(init=False)

    def __post_init__(self) -> None:
        self._conditions = DecisionConditions(self.entry, self.deciding)

    def start(self) -> None:
        self._queue(frozenset(), self._scripts)

    def next(self) -> Iterator[Script]:
        while self._scripts or self._staying_scripts:
            yield (self._scripts or self._staying_scripts).pop()

    @property
    def left(self) -> int:
        return len(self._scripts)

    def is_new(self, run: LaunchTrace) -> bool:
        """True for a run with decisions that no other run had."""
        decisions = frozenset((read.key, source_of(read)) for read in self.reads(run))
        new = decisions not in self._known_decisions
        self._known_decisions.add(decisions)
        return new

    def follows(self, run: LaunchTrace, script: Script) -> bool:
        """True if each read of the script was made and returned what the script says, or did so in a round of a loop
        that is not counted.
        """
        decided = {(read.key, source_of(read)) for read in self.reads(run)}
        rounds = {
            (event.thread, event.at, source_of(event))
            for thread in run.threads
            for event in thread.events
            if event.turn == NOT_COUNTED and side_of(event.label) is Side.READ
        }
        return all(
            choice.never or (choice.read, choice.write) in decided or (*choice.read[:2], choice.write) in rounds
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
        places = {place_of(event) for event in counted if event.at in self.deciding}
        reads = (
            event
            for event in counted
            if event.at in self.deciding or (event.partner is not None and place_of(event) in places)
        )
        return sorted(reads, key=lambda read: read.time)

    def note(
        self, run: LaunchTrace, order: CausalOrder, *, surely_loaded: bool = True, surely_waited: bool = True
    ) -> None:  # fmt: skip
        """Queue the scripts in which one decision of a run is another one. `order`: what precedes what by the decisions
        before it. An order of fence.sc that decisions demand is none of these: they may be those that are decided anew.
        `surely_loaded`, `surely_waited`: weak loads, and waits, return what they do in every execution with these
        decisions.
        """
        reads, accesses = self.reads(run), strong_accesses(run)
        waits = [event for events in accesses.values() for event in events if event.at in self.waits]
        decided = {id(read) for read in reads}
        same_sources = {*decided, *map(id, waits)}
        violated = self._conditions.violated(run, reads, waits, accesses, order, surely_loaded=surely_loaded)
        self.why_not = self.why_not or violated
        if self.why_not:
            return
        followers = Followers(run, same_sources)
        without_barriers = Followers(run, same_sources, objects=False)
        only_word = len({*map(place_of, reads), *map(place_of, waits)}) == 1
        earlier_writes: dict[Place, dict[int, list[TraceEvent]]] = {}
        next_writes: dict[Place, dict[int | None, TraceEvent]] = {}
        movable: dict[Place, set[int]] = {}
        leaves_out = self._leaves_out(run)
        for read in reads:
            later, place = followers.of([read]), place_of(read)
            if only_word and not barriers_order_writes(read, accesses[place], later, without_barriers, order):
                self.why_not = UNORDERED_BY_BARRIER
                return
            if place not in earlier_writes:
                earlier_writes[place] = _earlier(accesses[place], order)
                next_writes[place] = _next(accesses[place])
            earlier, following = earlier_writes[place], next_writes[place]
            known = same_sources if surely_waited else decided
            overwritten = _overwritten(read, accesses[place], known, later, earlier, following, order)
            excluded = later | overwritten
            for write in self._other_writes(run, reads, read, accesses[place]):
                identity = None if write is None else id(write)
                if identity in excluded:
                    continue
                if leaves_out and write is not None:
                    earlier_ends = self._earlier_ends(read, write, accesses[place])
                    if any(id(end) not in excluded for end in earlier_ends):
                        self.left_out = True
                        continue
                if read.partner is not None:
                    movable.setdefault(place, set()).add(read.thread)
                for script in self._with_other_write(run, reads, later, followers, read, write):
                    self._queue(script, self._scripts)
        if any(len(threads) > MOST_AT_A_WORD for threads in movable.values()):
            self.why_not = f"more than {MOST_AT_A_WORD} threads operate on one word"
            return

        for read in reads:
            self._may_stay(run, read, reads, frozenset(), followers, accesses)

    def _other_writes(
        self, run: LaunchTrace, reads: Sequence[TraceEvent], read: TraceEvent, accesses: Sequence[TraceEvent]
    ) -> Iterator[TraceEvent | None]:  # fmt: skip
        """The writes that a read did not return (None: what was there before), but those of its own operation, of
        rounds that are not counted, and those whose value leads a load back to itself.
        """
        writes = (access for access in accesses if side_of(access.label) is Side.WRITE)
        for write in (None, *writes):
            if write is not None and (write.turn == NOT_COUNTED or write is read.partner):
                continue
            if (None if write is None else write.key) == source_of(read):
                continue
            value = self._first_value(run, reads, read) if write is None else write.number
            if value is None or is_atomic(read.label) or not self.leads_back(read, value):
                yield write

    def ends_earlier(self, run: LaunchTrace, script: Script) -> bool:
        """True if loops may end with earlier writes than in this run, where the script leaves that open, and the
        execution in which they do has less order: its script is queued instead.
        """
        if not self._leaves_out(run) or any(choice.never for choice in script):
            return False
        reads, accesses, known = self.reads(run), strong_accesses(run), {choice.read for choice in script}
        scripted, changed = list[ChosenRead](), False
        for read in reads:
            write = counted_write(read.source)
            if write is not None and read.key not in known:
                for earlier in self._earlier_ends(read, write, accesses[place_of(read)]):
                    write, changed = earlier, True
            bits = read.bits if write is counted_write(read.source) or write is None else write.bits
            scripted.append(chosen_read(read, None if write is None else write.key, bits))
        if changed:
            self.left_out = True
            self._queue(frozenset(scripted), self._scripts)
        return changed

    def _leaves_out(self, run: LaunchTrace) -> bool:
        """True if an execution may be left out for one in which a loop ends earlier. It may not with a fence.sc: what
        the loop has not read, it comes before, and that may order fences.
        """
        events = (event for thread in run.threads for event in thread.events)
        return self.earliest and not any(
            isinstance(event.label, Fence) and event.label.sem is Sem.SC for event in events
        )

    def _earlier_ends(
        self, read: TraceEvent, write: TraceEvent, accesses: Sequence[TraceEvent]
    ) -> Iterator[TraceEvent]:  # fmt: skip
        """Earlier writes that end the loop around a load as this one does, not seen overwritten by its thread.
        Atomic operations lead from each to this one: what is observed of it is observed through this one, too.
        """
        if is_atomic(read.label) or body_of(self.entry)[read.at].elements > 1:
            return
        before = [other for other in accesses if other.thread == read.thread and (other.order or 0) < (read.order or 0)]
        seen = {id(counted_write(other.source) if side_of(other.label) is Side.READ else other) for other in before}
        values = [access.number for access in accesses if side_of(access.label) is Side.WRITE]
        back = {value for value in (*values, self.initial(read)) if value is not None and self.leads_back(read, value)}
        ends = write.number
        while back and ends is not None and write.partner is not None and id(write) not in seen:
            source = counted_write(write.partner.source)
            value = None if source is None else source.number
            if source is None or value is None or not self.polls.ends_alike(read, back, (value, ends), read.known):
                return
            write = source
            yield write

    def leads_back(self, read: TraceEvent, value: int | None) -> bool:
        return self.polls.repeats(read, value)

    def initial(self, read: TraceEvent) -> int | None:
        return self.polls.initial_of(read)

    def _first_value(self, run: LaunchTrace, reads: Sequence[TraceEvent], read: TraceEvent) -> int | None:
        """The value before all strong writes, if it is known: what another read of it returned, what a weak write
        left, or the initial one.
        """
        for other in reads:
            if place_of(other) == place_of(read) and source_of(other) is None and other.number is not None:
                return other.number
        weak = weak_writes(run, read)
        return weak[0].value if weak else self.initial(read)

    def note_stay(self, run: LaunchTrace, script: Script) -> None:
        """What follows from a run in which some threads stay in their loops: whether it may end so, and scripts in
        which one more thread stays.
        """
        staying = frozenset(choice for choice in script if choice.never)
        reads, accesses = self.reads(run), strong_accesses(run)
        decisions = frozenset((read.key, source_of(read)) for read in reads), staying
        if decisions in self._known_stays:
            return
        self._known_stays.add(decisions)
        polls = [self._polls[choice.read] for choice in staying]
        if all(self._stays(poll, first, accesses) for poll, first in polls):
            self.why_not = f"a thread may stay in the loop around {(self.entry.body or ())[polls[0][0].at].at_line}"
        decided = {id(read) for read in reads}
        waits = {id(event) for events in accesses.values() for event in events if event.at in self.waits}
        followers = Followers(run, decided | waits)
        for read in reads:
            self._may_stay(run, read, reads, staying, followers, accesses)

    def _stays(self, poll: TraceEvent, first: int | None, places: Mapping[Place, Sequence[TraceEvent]]) -> bool:
        """True if a write that may be the last one, or what was there `first`, leads back to a read that polls."""
        assert poll.block is not None
        word = poll.block.instance.name, poll.first
        # The poll is of another run, with blocks of its own: it has the names in common with these.
        accesses = [
            access
            for place in places.values()
            for access in place
            if access.turn != NOT_COUNTED
            and access.block is not None
            and (access.block.instance.name, access.first) == word
        ]
        writes = [access for access in accesses if side_of(access.label) is Side.WRITE]
        values = [write.number for write in _may_be_last(accesses, writes)] if writes else [first]
        return any(self._leads_back(poll, value) and self._may_repeat(poll, value) for value in values)

    def _may_repeat(self, poll: TraceEvent, value: int | None) -> bool:
        """False if a read of the last value of a word leads back to itself only where another read returns another one:
        polls that are unrolled, or nested.
        """
        does = body_of(self.entry)[poll.at]
        return value is None or len(does.writes) != 1 or comes_back_alike(
            self.entry, poll.at, does.loaded(value & (1 << 8 * poll.size) - 1), poll.known
        )  # fmt: skip

    def _leads_back(self, poll: TraceEvent, value: int | None) -> bool:
        """True if a value may lead back to a read. One that is not known may not, if there is no loop around the read,
        or if it is of an element of a vector that the loop does not look at.
        """
        if value is not None:
            return self.leads_back(poll, value)
        if not in_loop(self.entry, poll.at):
            return False
        register, looked = element_register(self.entry, poll), looked_at(self.entry, poll.at)
        return register is None or register in looked or not 0 < len(looked) <= MAX_LOOKED_AT

    def _may_stay(
        self, run: LaunchTrace, read: TraceEvent, reads: Sequence[TraceEvent], staying: Script, followers: Followers,
        accesses: Mapping[Place, Sequence[TraceEvent]],
    ) -> None:  # fmt: skip
        """Queue the script in which one more thread stays in the loop around a read, if some value leads back to it."""
        writes = [access for access in accesses[place_of(read)] if side_of(access.label) is Side.WRITE]
        values = [write.number for write in writes if write is not read.partner]
        first = self._first_value(run, reads, read)
        values.append(first)
        if not any(self._leads_back(read, value) for value in values):
            return
        self._polls[read.key] = read, first
        later, elements = followers.of([read]), len(body_of(self.entry)[read.at].writes)
        stays = ChosenRead(read.key, None, NOTHING, never=True)
        before = [  # the other elements of a vector are not read where the thread stays
            other for other in reads if other.key[:2] != read.key[:2] or other.turn <= read.turn - elements
        ]
        elsewhere = (  # a thread stays in one loop, and in none to which it comes only after this one
            choice
            for choice in staying
            if choice.read[0] != read.thread
            and all(id(event) not in later for event in run.threads[choice.read[0]].events[-1:])
        )
        self._queue(frozenset((*_as_before(before, later), *elsewhere, stays)), self._staying_scripts)

    def _with_other_write(
        self, run: LaunchTrace, reads: Collection[TraceEvent], later: Collection[int], followers: Followers,
        read: TraceEvent, write: TraceEvent | None,
    ) -> Iterator[Script]:  # fmt: skip
        """The scripts in which a read returns another write, and the decisions that do not follow it are as before. Of
        two atomic operations that read from one write one writes nothing: either the other one is decided anew, or this
        one writes nothing. What an operation is reached by is not decided anew.
        """
        atomic = read.partner is not None or is_atomic(read.label)
        key = None if write is None else write.key
        rivals = [
            other
            for other in reads
            if atomic and other is not read and other.partner is not None and id(other) not in later
            and place_of(other) == place_of(read) and source_of(other) == key
        ]  # fmt: skip
        bits = NOTHING if write is None or write.bits is None else write.bits
        if rivals and body_of(self.entry)[read.at].may_fail:
            fails = replace(chosen_read(read, key, bits, may_write=True), fails=True)
            yield frozenset((*_as_before(reads, later), fails))
        anew = followers.of(rivals) if rivals else frozenset[int]()
        preceding = run.threads[read.thread].events[: (read.issue or read).order][-1:]
        if any(id(event) in anew and id(event) not in later for event in preceding):
            return  # this operation is reached only after a rival has written: no execution has both
        decided_anew = {*later, *anew}
        yield frozenset((*_as_before(reads, decided_anew), chosen_read(read, key, bits, may_write=atomic)))

    def _queue(self, script: Script, queue: list[Script]) -> None:
        if script not in self._queued:
            self._queued.add(script)
            queue.append(script)


def _as_before(reads: Collection[TraceEvent], decided_anew: Collection[int]) -> list[ChosenRead]:
    """The decisions of a run, but those that are decided anew."""
    return [chosen_read(read, source_of(read), read.bits) for read in reads if id(read) not in decided_anew]


def _may_be_last(accesses: Sequence[TraceEvent], writes: Sequence[TraceEvent]) -> list[TraceEvent]:
    """The writes to a word after which there may be no other: no thread writes it after it has written or read them, or
    what they come right after.
    """
    overwritten = set[int]()
    met_by_thread: dict[int, list[TraceEvent]] = {}
    following = _next(accesses)
    for access in sorted(accesses, key=lambda access: access.time):
        if side_of(access.label) is Side.WRITE:
            met = met_by_thread.setdefault(access.thread, [])
            for write in met:
                over: TraceEvent | None = write
                while over is not None and over is not access:
                    overwritten.add(id(over))
                    over = following.get(id(over))
            met.append(access)
        elif (source := counted_write(access.source)) is not None:
            met_by_thread.setdefault(access.thread, []).append(source)
    return [write for write in writes if id(write) not in overwritten]


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


def _next(accesses: Sequence[TraceEvent]) -> dict[int | None, TraceEvent]:
    """For each write to a place that an atomic operation reads, by its identity (None: what was there first), the write
    of this operation: it is the next one ("Atomicity").
    """
    writes = [access for access in accesses if side_of(access.label) is Side.WRITE and access.turn != NOT_COUNTED]
    sources = ((None if write.partner is None else counted_write(write.partner.source), write) for write in writes)
    return {None if source is None else id(source): write for source, write in sources if write.partner is not None}


def _overwritten(
    read: TraceEvent, accesses: Sequence[TraceEvent], decided: Collection[int], later: Collection[int],
    earlier: Mapping[int, list[TraceEvent]], following: Mapping[int | None, TraceEvent], order: CausalOrder,
) -> set[int | None]:  # fmt: skip
    """The writes to a place, by their identity (None: what was there first), that a read cannot return: it, or a read
    before it in its thread, returns a later one. `decided`: the reads whose sources are known. What is left undecided
    when the read is (`later`) does not count. Before a write are those of `earlier`, and those that come right after
    one of them (`following`).
    """
    preceding = [
        access for access in accesses if access.thread == read.thread and (access.order or 0) < (read.order or 0)
    ]
    waiting = [access for access in preceding if side_of(access.label) is Side.WRITE]
    sources = (counted_write(access.source) for access in preceding if id(access) in decided)
    waiting += [write for write in sources if write is not None]
    waiting += [write for write in accesses if id(write) in earlier and order.ahead(write, read)]
    overwritten = set[int | None]()
    while waiting:
        write = waiting.pop()
        if id(write) in later:
            continue
        before = list(earlier.get(id(write), ()))
        right_after = (following.get(source) for source in (None, *map(id, before)))
        before += [other for other in right_after if other is not None and other is not write]
        new = [other for other in before if id(other) not in overwritten and id(other) not in later]
        overwritten |= {None, *map(id, new)}
        waiting += new
    return overwritten
