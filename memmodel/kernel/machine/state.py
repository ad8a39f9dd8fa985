"""The state of a running launch, and how threads leave their traces.

In: Launch, Memory. Out: `Machine` state that instructions work on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NoReturn

from memmodel.base.labels import Access, Action, Barrier, Domain, Fence, Label, Mbarrier, ProxyFence, Side, layout_of
from memmodel.base.points import BarrierId
from memmodel.kernel.flow.ahead import NOBODY
from memmodel.kernel.launch import Launch
from memmodel.kernel.machine.addressing import Addressing
from memmodel.kernel.machine.choices.chosen_reads import ChosenReads
from memmodel.kernel.machine.choices.delayed_accesses import DelayedAccesses
from memmodel.kernel.machine.choices.failing_tests import FailingTests
from memmodel.kernel.machine.choices.schedule import Schedule
from memmodel.kernel.machine.collective.warpgroups import Warpgroups
from memmodel.kernel.machine.memory import DeviceMemory
from memmodel.kernel.machine.parts import BarrierState, Cta, LaneGroup, Lanes, Moment, Peek, Warp
from memmodel.kernel.machine.rows import Value
from memmodel.kernel.machine.values.cells import MemoryTerms
from memmodel.kernel.trace.accesses import LaneAccesses, WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.objects import ObjectStep
from memmodel.kernel.trace.problems import UNKNOWN_VALUE, Failure, Refused
from memmodel.kernel.trace.threads import TraceThread
from memmodel.program.automata import MbarrierCounts, changes
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Scope, Sem

Span = tuple[Block, int, int]
"""Bytes of memory: the block, the offset, how many."""

NEVER_INITIALISED = MbarrierCounts()

WIDEST = 16
"""Bytes of the largest strong access."""


class Machine:
    """What all warps share, and how a thread leaves its traces."""

    def __init__(
        self, launch: Launch, memory: DeviceMemory, run: LaunchTrace, ctas: list[Cta], schedule: Schedule,
        reads: ChosenReads,
    ) -> None:  # fmt: skip
        self.launch = launch
        self.memory = memory
        self.run = run
        self.ctas = {(cta.cluster, cta.rank): cta for cta in ctas}
        self.addressing = Addressing(memory, self.ctas)
        self.objects: dict[tuple[Block, int], MbarrierCounts] = {}
        self.strong: dict[Block, dict[int, tuple[int, TraceEvent]]] = {}
        self.schedule = schedule
        self.reads = reads
        self.delays = DelayedAccesses(schedule, reads, self.strong)
        self.failing = FailingTests(run, schedule.failing)
        self.order = {place: list(threads) for place, threads in schedule.order}
        self.awaits: Mapping[int, frozenset[int]] = {}
        self.looked_at: dict[int, tuple[int, ...]] = {}
        self.twins: dict[object, int] = {}
        self.unstarted: dict[int, tuple[int, int, int]] = {}
        self.cancelling_cluster: int | None = None
        self._multimem: dict[Block, Block] = {}
        self._clusters: dict[int, BarrierState] = {}
        self.warpgroups = Warpgroups()
        self.version = 0
        self.idle = 0
        """How many of the changes that `version` counts are fences, or atomic operations that left what was there."""
        self.polled = False
        self.steps = 0
        self._touched: dict[int, int] = {}
        self._clock = 0
        self.matrices: dict[tuple[object, ...], list[Span]] = {}
        """Matrices in shared memory that were looked up: rounds of a loop ask for the same."""
        self._fragments: dict[tuple[object, ...], int] = {}
        """Numbers for matrices of which it is not specified which lane moves which part, by fragment and places."""
        self.observed = 0
        """Bytes of large strong copies whose elements are told apart."""
        self.memory_terms: MemoryTerms | None = None
        """Hears of each write, where values are followed."""

    def unknown(self, what: str, instruction: PtxInstruction) -> NoReturn:
        raise Refused(f"{what} depends on {UNKNOWN_VALUE}", instruction.span)

    # ---- traces ----------------------------------------------------------------------------------------------

    @property
    def moment(self) -> Moment:
        return Moment(len(self.run.single), len(self.run.lanes), self._clock)

    def event(self, thread: TraceThread, at: int, label: Label, *note: object) -> TraceEvent:
        """A new event in the order of a thread."""
        return self.each((thread,), at, label, *note)[0]

    def each(self, threads: Iterable[TraceThread], at: int, label: Label, *note: object) -> list[TraceEvent]:
        """A new event of each of some threads."""
        # Lanes that only wait for one another order no memory, so that accesses around that come as one.
        orders = not (isinstance(label, Barrier) and label.sem is Sem.RELAXED and label.domain is Domain.WARP)
        events_made = []
        for thread in threads:
            events = thread.events
            self._clock += 1
            event = TraceEvent(thread.number, len(events), at, label, note=note, time=self._clock)
            events.append(event)
            events_made.append(event)
            if orders:
                thread.epoch = len(events)
        if isinstance(label, Access) and label.side is Side.READ:
            self.polled |= bool(events_made)
        else:
            self.version += len(events_made)
            self.idle += len(events_made) * isinstance(label, Fence | ProxyFence)
        return events_made

    def poll(self, thread: TraceThread, at: int, block: Block, first: int) -> None:
        """A strong read is about to be made again in a loop that did nothing else: the last one need not be kept.

        The first one is, since it may race with what comes before the last.
        """
        events = thread.events
        if len(events) < 2 or self._touched.get(thread.number, 0) >= len(events) - 1:
            return
        for event in events[-2:]:
            label = event.label
            if event.at != at or event.block is not block or event.first != first:
                return
            if not isinstance(label, Access) or label.side is not Side.READ or event.partner is not None:
                return
        if self.reads and events[-1].known != events[-2].known:  # the loop counts its rounds
            return
        events.pop()
        thread.epoch = min(thread.epoch, len(events))

    def weak(
        self, block: Block, first: int, size: int, thread: TraceThread, label: Label, at: int, scalar: int | None,
        issue: TraceEvent | None = None, value: Value = None, part: int = 0, others: tuple[TraceEvent, ...] = (),
    ) -> None:  # fmt: skip
        """A weak access, or a part of an asynchronous one."""
        epoch = thread.epoch if issue is None or issue.order is None else issue.order
        self._touched[thread.number] = len(thread.events)
        if isinstance(label, Access) and label.side is Side.WRITE:
            self.version += 1
            if self.memory_terms is not None:
                self.memory_terms.written(block, first, size, at)
        access = WeakAccess(block, first, size, thread.number, epoch, label, at, scalar, issue, value, part, others)
        self.run.single.append(access)

    def weak_parts(
        self, spans: Sequence[Span], thread: TraceThread, label: Access, at: int, scalar: int | None,
        issue: TraceEvent, part: int = 0, others: tuple[TraceEvent, ...] = (),
    ) -> None:  # fmt: skip
        """An asynchronous access to bytes in several places."""
        epoch, number = thread.epoch if issue.order is None else issue.order, thread.number
        if spans:
            self._touched[number] = len(thread.events)
        if label.side is Side.WRITE:
            self.version += len(spans)
            if self.memory_terms is not None:
                for block, first, size in spans:
                    self.memory_terms.written(block, first, size, at)
        self.run.single += [
            WeakAccess(block, first, size, number, epoch, label, at, scalar, issue, None, part, others)
            for block, first, size in spans
        ]

    def weak_lanes(
        self, warp: Warp, lanes: Lanes, block: Block, firsts: list[int], size: int, label: Access, at: int, scalar: int,
        values: list[Value] | None = None, part: int = 0,
    ) -> None:  # fmt: skip
        """Weak accesses of lanes, in their order. `part`: as in `LaneAccesses`."""
        threads = [warp.threads[lane] for lane in lanes]
        numbers, epochs = [thread.number for thread in threads], [thread.epoch for thread in threads]
        self._touched |= {thread.number: len(thread.events) for thread in threads}
        if label.side is Side.WRITE:
            self.version += 1
            if self.memory_terms is not None:
                for first in firsts:
                    self.memory_terms.written(block, first, size, at)
        self.run.lanes.append(LaneAccesses(block, firsts, size, numbers, epochs, label, at, scalar, values, part))

    def weak_matrix(
        self, warp: Warp, lanes: Lanes, block: Block, firsts: list[int], size: int, label: Access, at: int, scalar: int,
        fragment: str,
    ) -> None:  # fmt: skip
        """Weak accesses of which each is made by some lane, and it is not specified by which: the lanes take turns,
        once from the first on and once from the second. So no lane is alone with bytes that it accesses afterwards.
        `fragment`: for equal ones at equal places the lanes are the same; empty: that is said of no other one.
        """
        key = fragment, *firsts
        number = self._fragments.setdefault(key, len(self._fragments) + 1) if fragment else 0
        for turn in (0, 1):
            movers = [lanes[(piece + turn) % len(lanes)] for piece in range(len(firsts))]
            self.weak_lanes(warp, movers, block, firsts, size, label, at, scalar, part=2 * number + turn)

    def forget(self, block: Block, first: int, size: int) -> None:
        """A weak write to these bytes: a later strong read does not read from a strong write before it."""
        known = self.strong.get(block)
        if known:
            near = range(first - WIDEST + 1, first + size) if size < len(known) else list(known)
            for at in near:
                if at in known and at < first + size and first < at + known[at][0]:
                    del known[at]

    def object(self, block: Block, at: int) -> MbarrierCounts:
        """The mbarrier object at a place, as it is now."""
        return self.objects.get((block, at), NEVER_INITIALISED)

    def update(
        self, event: TraceEvent, action: Action, count: int = 0, size: int = 0, *, drop: bool = False,
        no_complete: bool = False,
    ) -> None:  # fmt: skip
        """An update of an mbarrier object by `count` arrivals and `size` bytes, made now."""
        assert event.block is not None
        place = event.block, event.first
        before = self.object(*place)
        life, layout = before.number + 1, layout_of(event.label)
        after, bad = before.after(action, count, size, drop=drop, no_complete=no_complete, life=life, layout=layout)
        self.objects[place] = after
        phase = 0 if action is Action.INIT else before.over
        if bad:
            self.run.miscounted.append(event)
        event.note = (*event.note, event.first, phase, after.life, *self._elsewhere(event), *(["bad"] if bad else []))
        change = changes(action, count, size)
        log = self.run.objects.setdefault(place, [])
        log.append(ObjectStep(event, True, phase, after.over, after.life, 0, before.pending, *change))

    def test(self, event: TraceEvent, seen: int, *, stale: bool) -> None:
        """A test that returned true. `stale`: it asked for a phase before the one that ended last."""
        assert event.block is not None
        counts = self.object(event.block, event.first)
        if stale:
            self.run.stale_tests.append(event)
        event.note = (
            *event.note,
            event.first,
            seen,
            counts.life,
            *self._elsewhere(event),
            *(["stale"] if stale else []),
        )
        log = self.run.objects.setdefault((event.block, event.first), [])
        log.append(ObjectStep(event, False, seen, seen, counts.life, seen))

    def _elsewhere(self, event: TraceEvent) -> tuple[int, ...]:
        """The CTA of an object in another CTA, by its rank: lanes that go to different CTAs do not do the same."""
        assert event.block is not None
        own = self.run.threads[event.thread].place.cta_id
        if event.block.instance.owner == own:
            return ()
        return tuple(rank for (_, rank), cta in self.ctas.items() if cta.shared is event.block)

    def forget_all(self, block: Block, offsets: list[int], size: int) -> None:
        """The same for several places."""
        if self.strong.get(block):
            for at in offsets:
                self.forget(block, at, size)

    def problem(self, rule: str, message: str, instruction: PtxInstruction | None) -> None:
        for known in self.run.problems:
            if known.rule == rule and known.instruction is instruction:
                known.threads += 1
                return
        self.run.problems.append(Failure(rule, message, instruction))

    def turn(self, places: list[tuple[Block, int, int]]) -> list[int] | None:
        """The order in which threads make their atomic operations: (block, offset, thread) of those that are there.

        Places in the list; None if it is the turn of others.
        """
        ranks = {}
        for number, (block, at, thread) in enumerate(places):
            queue = self.order.get((block.instance.name, at), ())
            ranks[number] = queue.index(thread) if thread in queue else -1
            present = {who for other, first, who in places if other is block and first == at}
            if ranks[number] >= 0 and not set(queue[: ranks[number]]) <= present:
                return None
        return sorted(ranks, key=lambda number: ranks[number])

    def passed(self, block: Block, at: int, thread: int) -> None:
        queue = self.order.get((block.instance.name, at))
        if queue and thread in queue:
            queue.remove(thread)

    def alias(self, cta: Cta, block: Block, at: int) -> int:
        """A number for a place, the same in CTAs that use places in the same way."""
        return cta.aliases.setdefault((block, at), len(cta.aliases))

    def cancel(self, instruction: PtxInstruction, cluster: int) -> int:
        """The response to a request to cancel a cluster: 0, or the first CTA of the next cluster that the schedule did
        not start. The cluster that asks first gets them all.
        """
        self.run.cancels[instruction.number] = instruction
        self.cancelling_cluster = cluster if self.cancelling_cluster is None else self.cancelling_cluster
        if not self.unstarted or cluster != self.cancelling_cluster:
            return 0
        x, y, z = self.unstarted.pop(next(iter(self.unstarted)))
        return 1 | x << 32 | y << 64 | z << 96

    def replicas(self, block: Block, instruction: PtxInstruction) -> tuple[Block, ...]:
        """The memory that a multimem address points to. Where the launch names none, one block stands for all of it:
        the replicas are accessed alike. All multimem addresses of a replica are taken for one: it may have only one.
        """
        self.run.multimem.setdefault(block, instruction)
        replicas, why = self.memory.replicas.get(block) or (block,), ""
        if block not in self.memory.replicas:
            why = "the launch does not say what this multimem address points to"
        elif any(self._multimem.setdefault(replica, block) is not block for replica in replicas):
            why = "this memory has another multimem address, too, and the order between the two is not judged"
        if why:
            self.run.unchecked.setdefault(f"line {instruction.line}: {instruction.opcode}: {why}")
        return replicas

    # ---- looking ahead ---------------------------------------------------------------------------------------

    def peeked(
        self, warp: Warp, lane: int, instruction: PtxInstruction, block: Block, at: int, parity: int, *, stale: bool
    ) -> None:
        """A test that only looks ahead fails, so that the wait that it could save is made. `stale`: as in `test`."""
        counts = self.object(block, at)
        phase = counts.over if counts.over % 2 == parity % 2 else counts.over - 1
        event = self.event(warp.threads[lane], instruction.number, Mbarrier(Action.TEST, Sem.RELAXED, Scope.CTA))
        event.block, event.first, event.size = block, at, 8
        event.note = (at, phase, counts.life, "peek", *(["stale"] if stale else []))
        if stale:
            self.run.stale_tests.append(event)
        if instruction.number in self.awaits.get(NOBODY, ()):
            return
        self.run.peeks.append((event, phase))
        warp.peeks[lane][instruction.number] = Peek(block, at, phase, event.time)

    def waited(self, warp: Warp, lane: int, instruction: PtxInstruction, block: Block, at: int) -> None:
        """A wait that a test before it could have saved has to be for the same phase."""
        known = [peek for n, peek in warp.peeks[lane].items() if n in self.awaits.get(instruction.number, ())]
        if not known:
            return
        last = max(known, key=lambda peek: peek.time)
        if (last.block, last.at, last.phase) != (block, at, self.object(block, at).over - 1):
            message = "a test before it may skip this wait, and is about another object or phase"
            raise Refused(f"{instruction.opcode}: {message}", instruction.span)

    # ---- barriers --------------------------------------------------------------------------------------------

    def cluster_barrier(self, cta: Cta) -> tuple[BarrierState, BarrierId]:
        identity = BarrierId(Domain.CLUSTER, cta.threads[0].place.cluster_id, (0,))
        return self._clusters.setdefault(cta.cluster, BarrierState()), identity

    def in_cluster(self, warp: Warp, lanes: Lanes) -> int:
        """Lanes as a mask of the threads of the cluster."""
        return warp.in_cta(lanes) << warp.cta.rank * self.launch.threads

    def cluster_complete(self, cta: Cta) -> None:
        """Begin the next generation if all threads of the cluster have arrived or exited."""
        meeting, everyone, gone = self._clusters[cta.cluster], 0, 0
        if not meeting.counts.arrived_threads:
            return
        for (cluster, rank), member in self.ctas.items():
            if cluster == cta.cluster:
                everyone |= member.everyone << rank * self.launch.threads
                gone |= member.exited << rank * self.launch.threads
        if meeting.counts.complete(everyone, gone):
            meeting.counts = meeting.counts.next()
            self.version += 1

    def barrier(self, cta: Cta, number: int) -> tuple[BarrierState, BarrierId]:
        identity = BarrierId(Domain.CTA, cta.threads[0].place.cta_id, (number, 0))
        return cta.barriers.setdefault(number, BarrierState()), identity


Blocking = Callable[[Machine, Warp, Lanes, LaneGroup], bool]
"""What lanes do at an instruction; False if they wait, and do it again."""
