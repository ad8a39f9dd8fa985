"""Accesses as conflicts see them: single ones, pairs, and places that several share.

In: nothing, or a LaunchTrace. Out: `Use`, `ConflictPair`, `SharedPlace`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from memmodel.base.labels import Access, Family, Label, Role, Side, is_replicated, side_of
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.problems import Refused
from memmodel.memory.bytes import CtaId
from memmodel.ptx.vocabulary import Proxy, Sem, Space

MAX_EVENTS = 36_000
Name = tuple[int, int, int, int, int, int, int]
"""An access within its thread."""


def bounded(events: int) -> None:
    """Raise Refused if these are more events than are judged."""
    if events > MAX_EVENTS:
        shorter = "a launch of fewer CTAs, or one whose loops run less often, may be small enough"
        raise Refused(f"at least {events:,} events to judge are more than {MAX_EVENTS:,}; {shorter}")


class Use(NamedTuple):
    """An access as conflicts see it. `event`: of a strong access. `parts`: weak accesses that were joined in it.

    `part`: which part of an issue it is, or of which matrix, as in `LaneAccesses`. `others`: issues of other lanes that
    make it together with this one.
    """

    thread: int
    epoch: int
    label: Label
    scalar: int | None
    at: int
    first: int
    size: int
    issue: TraceEvent | None = None
    event: TraceEvent | None = None
    parts: tuple[WeakAccess, ...] = ()
    part: int = 0
    others: tuple[TraceEvent, ...] = ()

    def stored(self, first: int, size: int) -> int | None:
        """The bytes that a weak store leaves there, if they are known, and the same each time that it is executed."""
        return stored_by(self.parts, first, size)

    @property
    def writes(self) -> bool:
        return side_of(self.label) is Side.WRITE

    @property
    def matrix(self) -> int:
        """Of a weak access of a lane, which matrix it is a part of."""
        return self.part if self.issue is None and self.event is None else 0

    @property
    def plain(self) -> bool:
        """Of an access without event that can be judged alone: it is weak, and not through a multimem address."""
        return isinstance(self.label, Access) and self.label.sem is Sem.WEAK and not is_replicated(self.label)

    @property
    def alone(self) -> bool:
        """True if it can be judged against one other access, without third ones: if it is plain, strong, or an atomic
        operation that no thread observes.
        """
        return self.event is not None or is_generic(self.label)


def stored_by(parts: Sequence[WeakAccess], first: int, size: int) -> int | None:
    """The bytes that the parts of a weak store leave there, if they are known and the same each time."""
    end, values = first + size, set[int]()
    for part in parts:
        begin = part.first
        if begin < end and first < begin + part.size:
            if part.value is None or not begin <= first <= end <= begin + part.size:
                return None
            values.add(part.value >> 8 * (first - begin) & (1 << 8 * size) - 1)
    return values.pop() if len(values) == 1 else None


@dataclass(slots=True)
class ConflictPair:
    """Two classes of accesses that touch one byte, with an example.

    `stored`: of two stores, whether they leave the same bytes everywhere: equal, unknown or different; `unknown`: the
    instructions of those that leave unknown bytes.
    """

    block: Block
    left: Use
    right: Use
    first: int
    stored: str = "equal"
    unknown: frozenset[tuple[int, int]] = frozenset()

    def compare(self, left: Use, right: Use, left_value: int | None, right_value: int | None) -> None:
        """Compare two stores that touch the same bytes, by what each leaves there, if it is known."""
        twin = None if left.issue is None else left.issue.twin
        if twin is not None and right.issue is not None and twin == right.issue.twin and left.part == right.part:
            return
        if left_value is None or right_value is None:
            self.stored = "unknown" if self.stored == "equal" else self.stored
            self.unknown = _joined(self.unknown, (left.at, right.at))
        elif left_value != right_value:
            self.stored = "different"


@lru_cache(maxsize=4096)
def _joined(known: frozenset[tuple[int, int]], more: tuple[int, int]) -> frozenset[tuple[int, int]]:
    """A set with one member more; the same object for all pairs of the same instructions, of which there are many."""
    return known | {more}


@dataclass(slots=True)
class SharedPlace:
    """Bytes that several accesses touch, of which some are asynchronous.

    `members`: each access with the representative of its thread. `owner`: the representative of the CTA that owns the
    memory. `pairs`: of members, by their numbers; `comparable`: those of stores that may still leave different bytes.
    """

    block: Block
    owner: CtaId | None
    members: list[tuple[Use, int]]
    pairs: dict[tuple[int, int], ConflictPair] = field(default_factory=dict)
    comparable: list[tuple[int, int]] = field(default_factory=list)
    _compared: set[tuple[int, ...]] = field(default_factory=set)

    def meet(self, first: int, by_one_lane: Callable[[Use, Use], bool]) -> None:
        """Pair the members of which one writes, where they meet at a byte; two strong ones meet at their own events.
        `by_one_lane`: whether one lane makes two accesses, whichever it is.
        """
        strong = [use.event is not None for use, _ in self.members]
        writes = [use.writes for use, _ in self.members]
        for n, (use, _) in enumerate(self.members):
            for m in range(n + 1, len(writes)):
                other = self.members[m][0]
                if (writes[n] or writes[m]) and not (strong[n] and strong[m]) and not by_one_lane(use, other):
                    self.pairs[n, m] = ConflictPair(self.block, use, other, first)
        self.comparable = [(n, m) for n, m in self.pairs if writes[n] and writes[m]]

    def compare(self, members: list[tuple[Use, int]], first: int, size: int) -> None:
        """Compare what accesses of the same pattern leave at another place, or at this one. Nothing is compared where
        the same accesses leave equal bytes, and the same copies make them, as at a place before.
        """
        if not self.comparable:
            return
        left: list[int | None] = []
        values, twins, alike = dict[int, int](), dict[int, int](), list[int]()
        for use, _ in members:
            twin = None if use.issue is None else use.issue.twin
            value = use.stored(first, size) if use.writes else None
            left.append(value)
            alike.append(use.at)
            alike.append(-1 if twin is None else twins.setdefault(twin, len(twins)))
            alike.append(-1 if value is None else values.setdefault(value, len(values)))
        if (compared := tuple(alike)) in self._compared:
            return
        self._compared.add(compared)
        for n, m in self.comparable:
            self.pairs[n, m].compare(members[n][0], members[m][0], left[n], left[m])
        self.comparable = [pair for pair in self.comparable if self.pairs[pair].stored != "different"]


def is_generic(label: Label) -> bool:
    """True for an access that a thread makes itself, through the generic proxy."""
    return isinstance(label, Access) and label.proxy is Proxy.GENERIC and not label.asynchronous


def outlives(label: Label) -> bool:
    """True if an access may be made after the CTA of its thread has ended: a bulk copy that nothing waits for."""
    return isinstance(label, Access) and label.family in (Family.BULK, Family.BULK_REDUCTION)


def given_maps(run: LaunchTrace) -> Iterator[Use]:
    """The reads of tensor maps in global memory of which nothing in the run has written a byte before.

    A write that is ordered before the read precedes it in the run, and one that is not ordered is a race. A map that
    the host wrote is used only after an acquire fence (PTX ISA "Memory Consistency Model", "Memory synchronization");
    the model says which fence suffices. Maps in parameters and constants need none, and are left out.
    """
    reads = [read for read in run.single if read.block.instance.space is Space.GLOBAL and _is_map(read)]
    if not reads:
        return
    blocks = {read.block for read in reads}
    written: dict[Block, list[tuple[int, int, int, int]]] = {block: [] for block in blocks}
    for access in run.weak(blocks):
        if side_of(access.label) is Side.WRITE:
            written[access.block].append((access.first, access.size, access.thread, access.epoch))
    for event in (event for thread in run.threads for event in thread.events):
        if event.block in written and side_of(event.label) is Side.WRITE:
            written[event.block].append((event.first, event.size, event.thread, event.order or 0))
    for read in reads:
        end = read.first + read.size
        writes = (who for first, size, *who in written[read.block] if read.first < first + size and first < end)
        if not any(_earlier(run, thread, epoch, read) for thread, epoch in writes):
            yield Use(
                read.thread, read.epoch, read.label, read.scalar, read.at, read.first, read.size, read.issue, None,
                (read,), read.part, read.others,
            )  # fmt: skip


def _earlier(run: LaunchTrace, thread: int, epoch: int, read: WeakAccess) -> bool:
    """True if in the run a write of a thread, after its first `epoch` events, precedes a read of a copy."""
    if thread == read.thread or read.issue is None:
        return epoch <= read.epoch
    after = run.threads[thread].events[epoch : epoch + 1]
    return bool(after) and after[0].time <= read.issue.time


def _is_map(access: WeakAccess) -> bool:
    return isinstance(access.label, Access) and access.label.role is Role.DESCRIPTOR
