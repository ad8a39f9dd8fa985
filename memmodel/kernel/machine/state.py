"""The state of a running launch: CTAs, warps, barriers, mbarrier objects.

In: Launch, Memory. Out: `Machine` state that instructions work on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from memmodel.base.labels import Access, Action, Domain, Label, Side
from memmodel.base.points import BarrierId
from memmodel.kernel.judge.events import Failure, LaunchTrace, ObjectStep, Refused, TraceEvent, TraceThread, WeakAccess
from memmodel.kernel.launch import Launch
from memmodel.kernel.machine.alu import Value
from memmodel.kernel.machine.memory import PARAM_WINDOW, RANK_SHIFT, SHARED_START, SHARED_WINDOW, Block, DeviceMemory
from memmodel.kernel.machine.schedule import Schedule
from memmodel.kernel.text.syntax import PtxInstruction

LANES = 32
Lanes = list[int]


class Faulty(Exception):
    """An instruction of a thread cannot be carried out; its message says why."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message


@dataclass(slots=True, eq=False)
class LaneGroup:
    """Lanes of a warp that are at one instruction. `waits`: what they wait for, as the instruction noted it.

    `spun`: how often they jumped back in a loop that polls.
    """

    at: int
    lanes: Lanes
    blocked: bool = False
    waits: object = None
    spun: int = 0


@dataclass(slots=True, eq=False)
class BarrierState:
    """A barrier: its generation, who has arrived in it and how many are needed."""

    generation: int = 0
    arrived: int = 0
    needed: int | None = None
    over: int = 0


@dataclass(slots=True, eq=False)
class Mbar:
    """An mbarrier object."""

    over: int = 0
    pending: int = 0
    expected: int = 0
    tx: int = 0
    live: bool = False
    life: int = 0


@dataclass(slots=True, eq=False)
class Cta:
    """A CTA. `base`: of its addresses in the window of its cluster."""

    number: int
    index: tuple[int, int, int]
    cluster: int
    rank: int
    shared: Block
    threads: list[TraceThread]
    barriers: dict[int, BarrierState] = field(default_factory=dict)
    exited: int = 0

    @property
    def base(self) -> int:
        return self.rank << RANK_SHIFT


@dataclass(slots=True, eq=False)
class Warp:
    """A warp: registers as lists over the lanes, groups of lanes, special registers."""

    cta: Cta
    number: int
    threads: list[TraceThread]
    registers: list[list[Value]]
    special: dict[str, list[Value]]
    groups: list[LaneGroup]
    syncs: dict[int, BarrierState] = field(default_factory=dict)
    pending: list[list[TraceEvent]] = field(default_factory=list)
    committed: list[list[list[TraceEvent]]] = field(default_factory=list)
    bulk: list[list[TraceEvent]] = field(default_factory=list)
    bulk_groups: list[list[list[TraceEvent]]] = field(default_factory=list)
    locals: dict[str, list[list[Value]]] = field(default_factory=dict)
    predicates: list[Value] = field(default_factory=list)

    @property
    def live(self) -> int:
        """The lanes that have not exited, as a mask."""
        return sum(1 << lane for group in self.groups for lane in group.lanes)


class Machine:
    """What all warps share, and how a thread leaves its traces."""

    def __init__(self, launch: Launch, memory: DeviceMemory, run: LaunchTrace, ctas: list[Cta]) -> None:
        self.launch = launch
        self.memory = memory
        self.run = run
        self.ctas = {(one.cluster, one.rank): one for one in ctas}
        self.objects: dict[tuple[Block, int], Mbar] = {}
        self.strong: dict[Block, dict[int, tuple[int, TraceEvent]]] = {}
        self.order: dict[tuple[str, int], list[int]] = {}
        self.kinds: dict[tuple[Block, int], str] = {}
        self.elect_last = False
        self.schedule = Schedule()
        self.version = 0
        self.polled = False
        self._touched: dict[int, int] = {}
        self._clock = 0

    # ---- addresses -------------------------------------------------------------------------------------------

    def place(
        self, warp: Warp, space: str, address: Value, size: int, instruction: PtxInstruction
    ) -> tuple[Block, int]:
        """The bytes that an access of `size` bytes touches. Raises Faulty, or Refused for an unknown address."""
        if address is None:
            self.unknown("the address", instruction)
        found = self._find(warp, space, address)
        if found is None:
            raise Faulty("undefined-address", f"address {address:#x} is outside every object")
        block, at = found
        if at + size > block.size or (block is warp.cta.shared and at < SHARED_START):
            raise Faulty("undefined-address", f"{size} bytes at {address:#x} reach beyond the {block.instance.name}")
        return block, at

    def _find(self, warp: Warp, space: str, address: int) -> tuple[Block, int] | None:
        if space.startswith("shared"):
            return self._shared(warp, address & 0xFFFFFFFF)
        if space == "generic" and SHARED_WINDOW <= address < SHARED_WINDOW + (1 << 32):
            return self._shared(warp, address - SHARED_WINDOW)
        if space == "generic" and PARAM_WINDOW <= address < PARAM_WINDOW + self.memory.params.size:
            return self.memory.params, address - PARAM_WINDOW
        block = self.memory.find(address)
        return None if block is None else (block, address - block.address)

    def _shared(self, warp: Warp, address: int) -> tuple[Block, int] | None:
        cta = self.ctas.get((warp.cta.cluster, address >> RANK_SHIFT))
        return None if cta is None else (cta.shared, address & (1 << RANK_SHIFT) - 1)

    def unknown(self, what: str, instruction: PtxInstruction) -> NoReturn:
        raise Refused(f"{what} depends on a value that this run does not know", instruction.span)

    # ---- traces ----------------------------------------------------------------------------------------------

    def event(self, thread: TraceThread, at: int, label: Label, *note: object) -> TraceEvent:
        """A new event in the order of a thread."""
        made = TraceEvent(thread.number, len(thread.events), at, label, note=note)
        thread.events.append(made)
        self._clock += 1
        made.time = self._clock
        if isinstance(label, Access) and label.side is Side.READ:
            self.polled = True
        else:
            self.version += 1
        return made

    def poll(self, thread: TraceThread, at: int, block: Block, first: int) -> None:
        """A strong read is about to be made again in a loop that did nothing else: the last one need not be kept.

        The first one is, since it may race with what comes before the last.
        """
        events = thread.events
        if len(events) < 2 or self._touched.get(thread.number, 0) >= len(events) - 1:
            return
        for one in events[-2:]:
            label = one.label
            if one.at != at or one.block is not block or one.first != first:
                return
            if not isinstance(label, Access) or label.side is not Side.READ or one.partner is not None:
                return
        events.pop()

    def weak(
        self, block: Block, first: int, size: int, thread: TraceThread, label: Label, at: int, scalar: int | None,
        issue: TraceEvent | None = None, value: Value = None,
    ) -> None:  # fmt: skip
        """A weak access. Bytes that it overwrites are no longer those of a strong write."""
        epoch = len(thread.events) if issue is None or issue.order is None else issue.order
        self._touched[thread.number] = epoch
        if isinstance(label, Access) and label.side is Side.WRITE:
            self.version += 1
        self.run.weak.append(WeakAccess(block, first, size, thread.number, epoch, label, at, scalar, issue, value))

    def forget(self, block: Block, first: int, size: int) -> None:
        """A weak write to these bytes: a later strong read does not read from a strong write before it."""
        known = self.strong.get(block)
        if known:
            for at, (length, _) in list(known.items()):
                if at < first + size and first < at + length:
                    del known[at]

    def object(self, block: Block, at: int) -> Mbar:
        return self.objects.setdefault((block, at), Mbar())

    def update(self, event: TraceEvent, action: Action, count: int = 0, tx: int = 0, *, drop: bool = False) -> None:
        """An update of an mbarrier object, made now."""
        assert event.block is not None
        one = self.object(event.block, event.first)
        before, bad = one.over, False
        if action is Action.INIT:
            bad = one.live
            one.life += 1
            one.over, one.pending, one.expected, one.tx, one.live = 0, count, count, 0, True
            before = 0
        elif not one.live:
            bad = True
        elif action is Action.INVAL:
            one.live = False
        else:
            one.tx += tx
            one.pending += count if action is Action.PENDING else -count
            if drop:
                one.expected = max(0, one.expected - count)
            bad = one.pending < 0
            one.pending = max(0, one.pending)
            if one.pending == 0 and one.tx == 0 and action in (Action.ARRIVE, Action.COMPLETE_TX, Action.EXPECT_TX):
                one.over, one.pending = one.over + 1, one.expected
        if bad:
            self.run.bad.append(event)
        event.note = (*event.note, event.first, before, one.life)
        log = self.run.objects.setdefault((event.block, event.first), [])
        log.append(ObjectStep(event, True, before, one.over, one.life, 0))

    def test(self, event: TraceEvent, seen: int) -> None:
        """A test that returned true."""
        assert event.block is not None
        one = self.object(event.block, event.first)
        event.note = (*event.note, event.first, seen, one.life)
        log = self.run.objects.setdefault((event.block, event.first), [])
        log.append(ObjectStep(event, False, seen, seen, one.life, seen))

    def problem(self, rule: str, message: str, instruction: PtxInstruction | None) -> None:
        for one in self.run.problems:
            if one.rule == rule and one.instruction is instruction:
                one.threads += 1
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
            here = {who for other, first, who in places if other is block and first == at}
            if ranks[number] >= 0 and not set(queue[: ranks[number]]) <= here:
                return None
        return sorted(ranks, key=lambda number: ranks[number])

    def passed(self, block: Block, at: int, thread: int) -> None:
        queue = self.order.get((block.instance.name, at))
        if queue and thread in queue:
            queue.remove(thread)

    def barrier(self, cta: Cta, number: int) -> tuple[BarrierState, BarrierId]:
        identity = BarrierId(Domain.CTA, cta.threads[0].place.cta_id, (number, 0))
        return cta.barriers.setdefault(number, BarrierState()), identity
