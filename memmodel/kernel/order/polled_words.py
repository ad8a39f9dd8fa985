"""Strong accesses whose results differ between schedules, or do not.

In: LaunchTrace, instructions, a graph with the causality of a model. Out: writes of which the run leaves open which one
is the last (not those that leave the same value in every order: atomic operations of one kind that commute, stores of
one number); loads in polling loops that can end in one way only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Hashable, Mapping
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from memmodel.base.labels import Access, Side
from memmodel.concrete.execution import Rows
from memmodel.kernel.flow.rounds import ends_alike, reads_again
from memmodel.kernel.launch import Launch
from memmodel.kernel.machine.memory import DeviceMemory
from memmodel.kernel.machine.values.widths import extended, wider
from memmodel.kernel.order.graph import Graph
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction, PtxModule
from memmodel.ptx.operands import Imm
from memmodel.ptx.vocabulary import Space

COMMUTING = ("add", "min", "max", "and", "or", "xor")
"""Operations that leave the same value in any order, if all are of one kind."""

Body = tuple[PtxInstruction, ...]
Place = tuple[Block, int]
Known = tuple[tuple[int, int], ...]
Before = Callable[[TraceEvent | WeakAccess, TraceEvent | WeakAccess], bool]


class CausalOrder(NamedTuple):
    """`before`: does one access precede another in causality? `ahead`: does it precede something that the thread of the
    other one does before that one, so that it precedes that one whatever it reads?
    """

    before: Before
    ahead: Before


def contested(run: LaunchTrace, body: Body) -> list[dict[Hashable, list[TraceEvent]]]:
    """Places to which several threads, or asynchronous instructions of one, write what is not the same in every order:
    the writes of each by their kind.
    """
    found = []
    for events in strong_writes(run).values():
        by_kind: dict[Hashable, list[TraceEvent]] = {}
        for one in events:
            by_kind.setdefault(_kind(one, body[one.at]), []).append(one)
        several = len({one.thread for one in events}) > 1 or (len(events) > 1 and any(one.issue for one in events))
        if several and (len(by_kind) > 1 or None in by_kind):
            found.append(by_kind)
    return found


def last_writes(
    graph: Graph, run: LaunchTrace, body: Body, causality: Rows | None
) -> dict[tuple[str, int], PtxInstruction]:
    """The writes whose order matters and is open."""
    found: dict[tuple[str, int], PtxInstruction] = {}
    for by_kind in contested(run, body):
        for number in _open(graph, by_kind, causality):
            if ("atomic", number) not in run.choices:
                found["order", number] = body[number]
    return found


def tallied(run: LaunchTrace, entry: PtxFunction, *, whole: bool) -> frozenset[int]:
    """The atomic operations whose words hold the same after a set of them, in whatever order they were made.

    They add, or are of one other kind that commutes, with integers, and nothing else that is strong touches a byte of
    theirs. `whole`: were all CTAs run? Else others may operate on global memory.
    """
    kinds: dict[tuple[Block, int, int], set[Hashable]] = {}
    numbers: dict[int, set[tuple[Block, int, int]]] = {}
    for event in (event for thread in run.threads for event in thread.strong()):
        assert event.block is not None
        place = event.block, event.first, event.size
        kinds.setdefault(place, set()).add(_tally(event, (entry.body or ())[event.at]))
        numbers.setdefault(event.at, set()).add(place)
    across: dict[Block, list[tuple[int, int]]] = {}
    for block, first, size in kinds:
        across.setdefault(block, []).append((first, size))
    for block, places in across.items():
        places.sort()
        for (first, size), (other, length) in pairwise(places):
            if other < first + size:
                kinds[block, first, size].add(None)
                kinds[block, other, length].add(None)
    good = {
        place
        for place, found in kinds.items()
        if len(found) == 1 and None not in found and (whole or place[0].instance.space is Space.SHARED)
    }
    return frozenset(number for number, places in numbers.items() if places <= good)


def _tally(event: TraceEvent, one: PtxInstruction) -> Hashable:
    """The kind of an atomic operation on integers that commutes with those of its kind; None for all else."""
    whole = one.words[-1][:1] in "usb" and "x" not in one.words[-1]
    return _kind(event, one) if one.words[0] in ("atom", "red") and event.issue is None and whole else None


class Polls:
    """The strong loads of a launch that poll: which values lead back to them, and which end their loops."""

    def __init__(self, module: PtxModule, entry: PtxFunction, launch: Launch) -> None:
        self._module, self._entry, self._launch = module, entry, launch
        self._leads_back: dict[tuple[object, ...], bool] = {}

    @cached_property
    def _memory(self) -> DeviceMemory:
        return DeviceMemory(self._module, self._entry, self._launch)

    def initial(self, block: Block, first: int, size: int) -> int | None:
        """The value of some bytes before the launch."""
        found = self._memory.find(block.address) if block.instance.space is Space.GLOBAL else None
        return None if found is None else found.load(first, size)

    def again(self, event: TraceEvent, value: int | None, around: Known | None = None) -> bool:
        """Does a load that finds this value lead back to itself? `around`: what is known of other registers, if that is
        not what was in the run.
        """
        load, size = (self._entry.body or ())[event.at], event.size
        bytes_ = None if value is None else value & (1 << 8 * size) - 1
        found = extended(bytes_, size, wider(load.words[-1], size, load.operands))
        if found is None:
            return False
        known = event.known if around is None else around
        key = event.at, found, known
        if key not in self._leads_back:
            self._leads_back[key] = reads_again(self._entry, event.at, found, known)
        return self._leads_back[key]

    def ends_alike(self, event: TraceEvent, on: Collection[int], ends: Collection[int], around: Known) -> bool:
        """Does a loop that goes on with some values end in the same way with each of the others?"""
        load, size = (self._entry.body or ())[event.at], event.size
        wide = wider(load.words[-1], size, load.operands)
        again, behind = ([extended(one, size, wide) for one in values] for values in (on, ends))
        known = [one for one in (*again, *behind) if one is not None]
        return len(known) == len(on) + len(ends) and ends_alike(
            self._entry, event.at, known[: len(on)], known[len(on) :], around
        )

    def single(self, run: LaunchTrace) -> frozenset[int]:
        """Loads that poll for the only write there is, so that what ends the loop is the same in every execution."""
        return frozenset(
            number
            for number, waits in self.polled(run).items()
            if all(len(writes) == 1 and self._ends(event, writes) in ([], writes) for event, writes in waits)
        )

    def turns(self, run: LaunchTrace, only: Container[int] | None = None) -> dict[int, list[Turn]]:
        """Loads that poll where several writes leave known numbers: how each loop ended.

        A read that did not end its loop is made to read from nowhere: what it finds is not the same everywhere. `only`:
        the loads that are looked at.
        """
        found: dict[int, list[Turn]] = {}
        for number, waits in self.polled(run).items():
            ends = [self._ends(event, writes) for event, writes in waits]
            if (only is not None and number not in only) or None in ends:
                continue
            found[number] = []
            before: dict[object, list[TraceEvent]] = {}
            for (event, writes), enders in zip(waits, ends, strict=True):
                polled = before.setdefault((event.thread, event.block, event.first), [])
                polled.append(event)
                rivals = {one.event for one in enders or ()}
                if not self.again(event, _value(event)):
                    mine = {one.event: self._leaves(one.event) for one in writes if one.event is not None}
                    found[number].append(Turn(tuple(polled), event.source, mine, tuple(rivals - {event.source})))
                    polled.clear()
                else:
                    event.source = None
        return found

    def polled(self, run: LaunchTrace) -> dict[int, list[tuple[TraceEvent, list[PolledWrite]]]]:
        """The executions of each load that may poll, with the writes to its bytes."""
        numbers = {number for what, number in run.choices if what == "load"}
        reads = [
            event
            for thread in run.threads
            for event in thread.events
            if event.at in numbers and event.block is not None
        ]
        writes: dict[Block | None, list[PolledWrite]] = {event.block: [] for event in reads}
        for event in (event for events in strong_writes(run).values() for event in events if event.block in writes):
            left = _value(event) if _modifies(event) else event.value
            writes[event.block].append(PolledWrite(event.first, event.size, event, left))
        for one in run.weak({block for block in writes if block is not None}):
            if isinstance(one.label, Access) and one.label.side is Side.WRITE:
                writes[one.block].append(PolledWrite(one.first, one.size, one, one.value))
        found: dict[int, list[tuple[TraceEvent, list[PolledWrite]]]] = {}
        for event in reads:
            end = event.first + event.size
            there = [one for one in writes[event.block] if one.first < end and event.first < one.first + one.size]
            found.setdefault(event.at, []).append((event, there))
        return found

    def _leaves(self, write: TraceEvent | WeakAccess) -> Hashable:
        """A name for how an atomic operation makes what it leaves of what it finds; STORED where it does not look."""
        one = (self._entry.body or ())[write.at]
        modifies = isinstance(write, TraceEvent) and _modifies(write) and "exch" not in one.words
        return _kind(write, one) if modifies and isinstance(write, TraceEvent) else STORED

    def _ends(self, event: TraceEvent, writes: list[PolledWrite]) -> list[PolledWrite] | None:
        """The writes that end the loop, the initial one among them; None if a part of the bytes is written alone, or a
        read ended it and it is not known what it found: the initial value and weak writes leave no trace.
        """
        if event.block is None or any((one.first, one.size) != (event.first, event.size) for one in writes):
            return None
        ended, weak = not self.again(event, _value(event)), any(isinstance(one.event, WeakAccess) for one in writes)
        if ended and event.source is None and len(writes) > 1 and weak:
            return None
        back = self.again(event, self.initial(event.block, event.first, event.size))
        first = [] if back else [PolledWrite(event.first, event.size, None, None)]
        ends = [*first, *(one for one in writes if not self.again(event, one.value))]
        return ends if not ended or any(one.event is event.source for one in ends) else None


Written = TraceEvent | WeakAccess | None
"""A write to bytes that are polled: None is the initial one."""


STORED = "stored"


class Turn(NamedTuple):
    """The reads of a loop, of which the last one ended it, the write that this one read from, all writes there but the
    initial one, with how they come by what they leave, and the other writes that would have ended it.
    """

    reads: tuple[TraceEvent, ...]
    write: Written
    writes: Mapping[TraceEvent | WeakAccess, Hashable]
    rivals: tuple[Written, ...]

    def sure(self, order: CausalOrder) -> bool:
        """Does the loop end with this write in every execution? Then each rival comes after the loop, or another write
        comes between it and the loop; and of the others, each comes before this write or after the loop. So the reads
        find this write some time, and nothing else that ends the loop: causality binds coherence and reads. An atomic
        operation that may leave something else than in this run is a rival, and cannot be this write.
        """
        rivals = {*self.rivals, *(one for one in self.writes if not self._settled(one, order))}

        def earlier(one: Written) -> bool:
            return one is not None and self.write is not None and order.before(one, self.write)

        def overwritten(one: Written) -> bool:
            over = (other for other in self.writes if other is not one and order.ahead(other, self.reads[0]))
            return any(one is None or order.before(one, other) for other in over)

        others = (one for one in self.writes if one is not self.write and one not in rivals)
        return (
            self.write not in rivals
            and all(self._later(one, order) or overwritten(one) for one in rivals)
            and all(earlier(one) or self._later(one, order) for one in others)
        )

    def _later(self, one: Written, order: CausalOrder) -> bool:
        return one is not None and order.before(self.reads[-1], one)

    def _settled(self, one: TraceEvent | WeakAccess, order: CausalOrder) -> bool:
        """Does a write leave the same in every execution? An atomic operation does if each other write comes before or
        after it, and those before it commute with it, or end with one that does.
        """
        kind = self.writes[one]
        if kind == STORED:
            return True
        before = [other for other in self.writes if other is not one and order.before(other, one)]
        after = (other for other in self.writes if other is not one and other not in before)
        if not all(order.before(one, other) or (one is self.write and self._later(other, order)) for other in after):
            return False
        if not before or (kind is not None and all(self.writes[other] == kind for other in before)):
            return True
        last = (one for one in before if all(one is other or order.before(other, one) for other in before))
        return any(self._settled(one, order) for one in last)


def sure(turns: dict[int, list[Turn]], order: CausalOrder) -> frozenset[int]:
    """The loads of which every loop that ended is sure to."""
    return frozenset(number for number, found in turns.items() if all(one.sure(order) for one in found))


def _value(event: TraceEvent) -> int | None:
    """What a strong access found, if that is known."""
    return None if event.bits is None else event.bits.whole(8 * event.size)


class PolledWrite(NamedTuple):
    """A write to bytes that are polled. `value`: what it leaves, if that is known."""

    first: int
    size: int
    event: Written
    value: int | None


def strong_writes(run: LaunchTrace) -> dict[Place, list[TraceEvent]]:
    """The strong writes of the run by their first byte, and the cas that failed, which may write elsewhere."""
    found: dict[Place, list[TraceEvent]] = {}
    for thread in run.threads:
        for event in thread.strong():
            assert event.block is not None
            label = event.label
            fails = isinstance(label, Access) and label.rmw and event.issue is None and event.partner is None
            if fails or (isinstance(label, Access) and label.side is Side.WRITE):
                found.setdefault((event.block, event.first), []).append(event)
    return found


def stores_matter(run: LaunchTrace, numbers: set[int]) -> bool:
    """Is one of these instructions a store, or does a strong store go to a place where one of them works?"""
    places = {place for place, events in run.atomics.items() if any(one.at in numbers for one in events)}
    for place, events in strong_writes(run).items():
        if any(_stores(one) and (one.at in numbers or place in places) for one in events):
            return True
    return False


def _modifies(event: TraceEvent) -> bool:
    """Is it the write of an atomic operation?"""
    return isinstance(event.label, Access) and event.label.rmw and event.label.side is Side.WRITE


def _stores(event: TraceEvent) -> bool:
    return isinstance(event.label, Access) and not event.label.rmw


def _kind(event: TraceEvent, one: PtxInstruction) -> Hashable:
    """Writes of one kind leave the same value in any order; None: nothing is known of it."""
    if not _stores(event):
        name = next((word for word in one.words[1:] if word in COMMUTING), None)
        return None if name is None else (name, one.words[-1])
    what = one.operands[1] if len(one.operands) > 1 else None
    return ("store", what.value, event.size) if isinstance(what, Imm) else None


def _open(graph: Graph, by_kind: dict[Hashable, list[TraceEvent]], before: Rows | None) -> set[int]:
    """The instructions of two writes that differ, of two threads, that nothing orders."""
    found: set[int] = set()
    kinds = list(by_kind.items())
    for place, (kind, mine) in enumerate(kinds):
        others = [one for _, events in kinds[place + 1 :] for one in events]
        for one in mine:
            for other in [*others, *(mine if kind is None else ())]:
                alone = one.thread == other.thread and one.issue is other.issue is None
                if one is other or alone or {one.at, other.at} <= found:
                    continue
                first, second = graph.number.get(id(one)), graph.number.get(id(other))
                if first is None or second is None:  # other threads stand for these
                    continue
                if before is None or not (before[first] >> second & 1 or before[second] >> first & 1):
                    found |= {one.at, other.at}
    return found
