"""Loads that poll words: the values that lead back to them, and the writes that end their loops in every execution.

In: LaunchTrace, instructions, what precedes what in causality. Out: `Polls`; `Turn`, a loop that ended; `sure`, the
loads of polling loops that can end in one way only.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from memmodel.base.labels import Label, Side, is_atomic, side_of
from memmodel.isa.lowered import body_of
from memmodel.kernel.executions.decisions import strong_together
from memmodel.kernel.flow.known_values import Known
from memmodel.kernel.flow.rounds import ends_alike, reads_again, reads_vector_again
from memmodel.kernel.launch import Launch
from memmodel.kernel.machine.memory import DeviceMemory
from memmodel.kernel.order.last_writes import STORED, CausalOrder, strong_writes, write_kind
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import ChoiceKind, LaunchTrace
from memmodel.ptx.module.syntax import PtxFunction, PtxModule
from memmodel.ptx.vocabulary import Space

Written = TraceEvent | WeakAccess | None
"""A write to polled bytes; None is the initial one."""


class PolledWrite(NamedTuple):
    """A write to bytes that are polled. `value`: what it leaves, if that is known."""

    first: int
    size: int
    event: Written
    value: int | None


class Polls:
    """The strong loads of a launch that poll: which values lead back to them, and which end their loops."""

    def __init__(self, module: PtxModule, entry: PtxFunction, launch: Launch) -> None:
        self._module, self._entry, self._launch = module, entry, launch
        self._known_to_lead_back: dict[tuple[object, ...], bool] = {}

    @cached_property
    def _memory(self) -> DeviceMemory:
        return DeviceMemory(self._module, self._entry, self._launch)

    def initial(self, block: Block, first: int, size: int) -> int | None:
        """The value of some bytes before the launch."""
        owner = self._memory.find(block.address) if block.instance.space is Space.GLOBAL else None
        return None if owner is None else owner.load(first, size)

    def initial_of(self, read: TraceEvent) -> int | None:
        """What a read returns before all writes of the launch."""
        return None if read.block is None else self.initial(read.block, read.first, read.size)

    def leads_back(self, event: TraceEvent, value: int | None, around: Known | None = None) -> bool:
        """True if a load that returns this value leads back to itself. `around`: known values of other registers, where
        they are not those of the run.
        """
        if value is None:
            return False
        value_read = self._loaded(event, value)
        known = event.known if around is None else around
        key = event.at, value_read, known
        if key not in self._known_to_lead_back:
            self._known_to_lead_back[key] = reads_again(self._entry, event.at, value_read, known)
        return self._known_to_lead_back[key]

    def repeats(self, event: TraceEvent, value: int | None) -> bool:
        """True if a load that returns this value leads back to itself; of an element of a vector, whatever the other
        elements are. A round after that changes nothing; it may have fences, which only order.
        """
        if value is None:
            return False
        result, value_read = element_register(self._entry, event), self._loaded(event, value)
        key = "repeats", event.at, result, value_read, event.known
        if key not in self._known_to_lead_back:
            again = (
                reads_again(self._entry, event.at, value_read, event.known, fences=True)
                if result is None
                else reads_vector_again(self._entry, event.at, result, value_read, event.known)
            )
            self._known_to_lead_back[key] = again
        return self._known_to_lead_back[key]

    def ends_alike(self, event: TraceEvent, on: Collection[int], ends: Collection[int], around: Known) -> bool:
        """True if a loop that continues with the values `on` ends in the same way with each of `ends`."""
        continuing, behind = ([self._loaded(event, value) for value in values] for values in (on, ends))
        return ends_alike(self._entry, event.at, continuing, behind, around)

    def _loaded(self, event: TraceEvent, value: int) -> int:
        """What the register receives if a load reads this value."""
        return body_of(self._entry)[event.at].loaded(value & (1 << 8 * event.size) - 1)

    def single(self, run: LaunchTrace) -> frozenset[int]:
        """Loads that poll for the only write to their bytes: the same write ends the loop in every execution."""
        return frozenset(
            number
            for number, waits in self.polled(run).items()
            if all(len(writes) == 1 and self._ends(event, writes) in ([], writes) for event, writes in waits)
        )

    def turns(self, run: LaunchTrace, only: Container[int] | None = None) -> dict[int, list[Turn]]:
        """Loads that poll words to which several writes store known numbers, with how each loop ended.

        The source of a read that did not end its loop is removed: it differs between executions. `only`: the loads that
        are looked at.
        """
        turns: dict[int, list[Turn]] = {}
        for number, waits in self.polled(run).items():
            ends = [self._ends(event, writes) for event, writes in waits]
            if (only is not None and number not in only) or None in ends or self._stay(waits):
                continue
            turns[number] = []
            before: dict[object, list[TraceEvent]] = {}
            for (event, writes), enders in zip(waits, ends, strict=True):
                polled = before.setdefault((event.thread, event.block, event.first), [])
                polled.append(event)
                rivals = {write.event for write in enders or ()}
                if not self.leads_back(event, event.number):
                    told = self._told_again(event, writes, enders or ()) if only is not None else []
                    if told:
                        event.source, rivals = told[0], rivals.difference(told)
                    mine = {write.event: self._leaves(write.event) for write in writes if write.event is not None}
                    others = tuple(rivals - {event.source})
                    turns[number].append(Turn(tuple(polled), event.source, mine, others, tuple(told[1:])))
                    polled.clear()
                else:
                    event.source = None
        return _with_seen(turns, run)

    def _stay(self, waits: Iterable[tuple[TraceEvent, object]]) -> bool:
        """True if some thread is still in its loop at the end of the run: nothing says how that loop ends."""
        last = {(event.thread, event.block, event.first): event for event, _ in waits}
        return any(self.leads_back(event, event.number) for event in last.values())

    def _told_again(
        self, event: TraceEvent, writes: Sequence[PolledWrite], enders: Sequence[PolledWrite]
    ) -> list[TraceEvent]:
        """Writes of one thread, made in one way, of which each ends the loop, in program order: a flag that counts up.

        Which of them the loop reads makes no other difference than order: what the first of them publishes each later
        one publishes, too. The first is the one that the loop may have read first in this run. Empty if no two are so,
        or what is read is used behind the loop.
        """
        source, written = event.source, [write.event for write in writes if isinstance(write.event, TraceEvent)]
        if source is None or source.issue is not None or event.block is None or len(written) < len(writes):
            return []
        ending = {id(write.event): write.value for write in enders}
        again = [
            write
            for write in sorted(written, key=lambda each: each.time)
            if id(write) in ending
            and write.issue is None
            and (write.thread, write.label) == (source.thread, source.label)
        ]
        alike = set(map(id, again))
        since = max((each.time for each in written if each.time < source.time and id(each) not in alike), default=-1)
        again = [write for write in again if write.time > since]
        first = self.initial(event.block, event.first, event.size)
        on = [write.value for write in writes if id(write.event) not in ending]
        on += [first] if self.leads_back(event, first) else []
        before, behind = _numbers(on), _numbers(ending[id(write)] for write in again)
        if (
            len(again) < 2
            or before is None
            or behind is None
            or not self.ends_alike(event, before, behind, event.known)
        ):
            return []
        return again

    def polled(self, run: LaunchTrace) -> dict[int, list[tuple[TraceEvent, list[PolledWrite]]]]:
        """The reads of each load that may poll, each with the writes to its bytes."""
        numbers = {number for kind, number in run.choices if kind is ChoiceKind.LOAD}
        reads = [
            event
            for thread in run.threads
            for event in thread.events
            if event.at in numbers and event.block is not None
        ]
        writes: dict[Block | None, list[PolledWrite]] = {event.block: [] for event in reads}
        for event in (event for events in strong_writes(run).values() for event in events if event.block in writes):
            left = event.number if _modifies(event.label) else event.value
            writes[event.block].append(PolledWrite(event.first, event.size, event, left))
        for access in run.weak({block for block in writes if block is not None}):
            if side_of(access.label) is Side.WRITE:
                writes[access.block].append(PolledWrite(access.first, access.size, access, access.value))
        polled: dict[int, list[tuple[TraceEvent, list[PolledWrite]]]] = {}
        for event in reads:
            end = event.first + event.size
            touching = [
                access
                for access in writes[event.block]
                if access.first < end and event.first < access.first + access.size
            ]
            polled.setdefault(event.at, []).append((event, touching))
        return polled

    def _leaves(self, write: TraceEvent | WeakAccess) -> Hashable:
        """A name for how an atomic operation computes the new value from the old; STORED where it ignores the old."""
        does = body_of(self._entry)[write.at]
        if isinstance(write, WeakAccess) or not _modifies(write.label) or does.replaces:
            return STORED
        return write_kind(write, does.instruction)

    def _ends(self, event: TraceEvent, writes: list[PolledWrite]) -> list[PolledWrite] | None:
        """The writes that end the loop, the initial one among them. None if only a part of the bytes is written, or a
        read ended the loop and its source is not known: the initial value and weak writes leave no trace.
        """
        if event.block is None or any((write.first, write.size) != (event.first, event.size) for write in writes):
            return None
        ended = not self.leads_back(event, event.number)
        weak = any(isinstance(write.event, WeakAccess) for write in writes)
        if ended and event.source is None and len(writes) > 1 and weak:
            return None
        back = self.leads_back(event, self.initial(event.block, event.first, event.size))
        first = [] if back else [PolledWrite(event.first, event.size, None, None)]
        ends = [*first, *(write for write in writes if not self.leads_back(event, write.value))]
        return ends if not ended or any(write.event is event.source for write in ends) else None


def element_register(entry: PtxFunction, read: TraceEvent) -> int | None:
    """The register that receives an element of a vector that is loaded; None for other reads."""
    does = body_of(entry)[read.at]
    if does.elements == 1 or read.block is None:
        return None
    at = (read.block.address + read.first) % (does.elements * read.size)  # a vector is aligned to its size
    return does.element_register(at // read.size)


class Turn(NamedTuple):
    """A loop that ended. `reads`: the last one ended it. `write`: what that read from. `writes`: all writes to the word
    but the initial one, with how each computes its value. `rivals`: the other writes that would have ended the loop.
    `again`: those of the writes that would have been as good. `seen`: the write with which the thread's loop before,
    around a load of the same word, ended; this one reads none before it.
    """

    reads: tuple[TraceEvent, ...]
    write: Written
    writes: Mapping[TraceEvent | WeakAccess, Hashable]
    rivals: tuple[Written, ...]
    again: tuple[TraceEvent, ...] = ()
    seen: TraceEvent | None = None

    def sure(self, order: CausalOrder) -> bool:
        """True if the loop ends with this write in every execution. Then each rival comes after the loop, or another
        write comes between it and the loop; each other write comes before this write or after the loop. So the reads
        return this write eventually, and no other one that ends the loop: coherence and reads respect causality. An
        atomic operation that may leave another value than in this run is a rival, and cannot be this write.
        """
        rivals = {*self.rivals, *(write for write in self.writes if not self._settled(write, order))}

        def earlier(write: Written) -> bool:
            return write is not None and self.write is not None and order.before(write, self.write)

        def overwritten(write: Written) -> bool:
            return any(
                (after is self.seen or order.ahead(after, self.reads[0]))
                and (write is None or order.before(write, after))
                for after in self.writes
                if after is not write
            )

        as_good = {self.write, *self.again, *rivals}
        others = (write for write in self.writes if write not in as_good)
        return (
            all(self._outside(write, order) for write in self.writes if isinstance(write, WeakAccess))
            and self.write not in rivals
            and all(self._later(write, order) or overwritten(write) for write in rivals)
            and all(earlier(write) or self._later(write, order) for write in others)
        )

    def _outside(self, write: WeakAccess, order: CausalOrder) -> bool:
        """True if a weak write races with no round of the loop: it comes before the first, or after the last one."""
        return order.ahead(write, self.reads[0]) or self._later(write, order)

    def _later(self, write: Written, order: CausalOrder) -> bool:
        return write is not None and order.before(self.reads[-1], write)

    def _settled(self, write: TraceEvent | WeakAccess, order: CausalOrder) -> bool:
        """True if a write leaves the same value in every execution. An atomic operation does if each other write comes
        before or after it, and those before it commute with it, or the last of them leaves the same value.
        """
        kind = self.writes[write]
        if kind == STORED:
            return True
        before = [rival for rival in self.writes if rival is not write and order.before(rival, write)]
        after = (rival for rival in self.writes if rival is not write and rival not in before)
        if not all(
            order.before(write, rival) or (write is self.write and self._later(rival, order)) for rival in after
        ):
            return False
        if not before or (kind is not None and all(self.writes[rival] == kind for rival in before)):
            return True
        last = (write for write in before if all(write is rival or order.before(rival, write) for rival in before))
        return any(self._settled(write, order) for write in last)


def sure(turns: dict[int, list[Turn]], order: CausalOrder) -> frozenset[int]:
    """The loads of which every loop ends with the same write in every execution."""
    return frozenset(load for load, loops in turns.items() if all(turn.sure(order) for turn in loops))


def _with_seen(turns: dict[int, list[Turn]], run: LaunchTrace) -> dict[int, list[Turn]]:
    """Loops with the write that their thread had seen by the loop before: what is morally strong is observed."""
    latest, seen = dict[object, Turn](), dict[TraceEvent, TraceEvent]()
    ended = (turn for loops in turns.values() for turn in loops)
    for turn in sorted(ended, key=lambda turn: turn.reads[0].order or 0):
        first = turn.reads[0]
        word = first.thread, first.block, first.first, first.size
        before = latest.get(word)
        if before is not None and isinstance(before.write, TraceEvent):
            observed = strong_together([before.write, *before.again, before.reads[-1]], run)
            seen |= {first: before.write} if observed else {}
        latest[word] = turn
    return {number: [turn._replace(seen=seen.get(turn.reads[0])) for turn in loops] for number, loops in turns.items()}


def _numbers(values: Iterable[int | None]) -> list[int] | None:
    """These values; None if one of them is not known."""
    numbers = list(values)
    known = [number for number in numbers if number is not None]
    return known if len(known) == len(numbers) else None


def _modifies(label: Label) -> bool:
    """True for the write of an atomic operation."""
    return is_atomic(label) and side_of(label) is Side.WRITE
