"""The state of a running launch: CTAs, warps, barriers, mbarrier objects.

In: Launch, Memory. Out: `Machine` state that instructions work on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from memmodel.base.labels import Action, Barrier, Domain, Family, Label, Mbarrier
from memmodel.base.points import BarrierId
from memmodel.kernel.judge.events import (
    Failure,
    LaneAccesses,
    LaunchTrace,
    ObjectStep,
    Refused,
    TraceEvent,
    TraceThread,
    WeakAccess,
)
from memmodel.kernel.launch import Launch
from memmodel.kernel.machine.memory import (
    LOCAL_WINDOW,
    PARAM_WINDOW,
    PRIVATE_START,
    RANK_SHIFT,
    SHARED_START,
    SHARED_WINDOW,
    Block,
    DeviceMemory,
)
from memmodel.kernel.machine.rows import LANES, Row, Uniform, Value
from memmodel.kernel.text.syntax import PtxInstruction
from memmodel.ptx import Scope, Sem, Space

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

    `frames`: the calls that they are in.
    """

    at: int
    lanes: Lanes
    blocked: bool = False
    waits: object = None
    frames: tuple[int, ...] = ()


@dataclass(slots=True, eq=False)
class BarrierState:
    """A barrier: its generation, who has arrived in it and how many are needed."""

    generation: int = 0
    arrived: int = 0
    needed: int | None = None
    over: int = 0
    who: set[int] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class Mbar:
    """An mbarrier object."""

    over: int = 0
    pending: int = 0
    expected: int = 0
    tx: int = 0
    live: bool = False
    life: int = 0


class IssueGroups:
    """Asynchronous instructions of each lane: all of them, those since the last commit, and the groups."""

    __slots__ = ("closed", "issued", "open")

    def __init__(self) -> None:
        self.issued: list[list[TraceEvent]] = [[] for _ in range(LANES)]
        self.open: list[list[TraceEvent]] = [[] for _ in range(LANES)]
        self.closed: list[list[list[TraceEvent]]] = [[] for _ in range(LANES)]

    def add(self, lane: int, issue: TraceEvent) -> None:
        self.issued[lane].append(issue)
        self.open[lane].append(issue)

    def commit(self, lane: int) -> None:
        self.closed[lane].append(self.open[lane])
        self.open[lane] = []

    def over(self, lane: int, left: int) -> list[TraceEvent]:
        """What is done when all but the last groups are."""
        groups = self.closed[lane]
        return [one for group in groups[: len(groups) - left] for one in group] if left < len(groups) else []


@dataclass(slots=True, eq=False)
class WgmmaUse:
    """The registers of a warp that wgmma.mma_async uses, as `isa.wgmma_registers` counts them.

    `groups`, `shapes`: the group and the accumulator of the last one that uses a register; an empty accumulator for a
    fragment of A. `written`: wgmma.fence so far when a register was written last.
    """

    fences: int = 0
    committed: int = 0
    completed: int = 0
    groups: dict[int, int] = field(default_factory=dict)
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)

    def busy(self, slot: int) -> bool:
        return self.groups.get(slot, 0) > self.completed

    def wait(self, left: int) -> None:
        self.completed = max(self.completed, self.committed - left)


class Peek(NamedTuple):
    """A test that returned false because it only looks ahead: which object and phase, and when."""

    block: Block
    at: int
    phase: int
    time: int


@dataclass(slots=True, eq=False)
class TensorMemory:
    """The tensor memory of a CTA: `columns[c]` is the allocation that column c belongs to.

    `promised`: for a number of columns the first, where the peer CTA has allocated with .cta_group::2.
    """

    block: Block
    columns: list[TraceEvent | None]
    promised: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Cta:
    """A CTA. `base`: of its addresses in the window of its cluster. `spare`: registers that warps have given back."""

    number: int
    index: tuple[int, int, int]
    cluster: int
    rank: int
    shared: Block
    threads: list[TraceThread]
    barriers: dict[int, BarrierState] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    spare: int = 0
    tensor: TensorMemory | None = None
    aliases: dict[tuple[Block, int], int] = field(default_factory=dict)

    @property
    def base(self) -> int:
        return self.rank << RANK_SHIFT


@dataclass(slots=True, eq=False)
class Warp:
    """A warp: registers as lists over the lanes, groups of lanes, special registers."""

    cta: Cta
    number: int
    threads: list[TraceThread]
    registers: list[Row]
    special: dict[str, Row]
    groups: list[LaneGroup]
    limit: int = 0
    syncs: dict[int, BarrierState] = field(default_factory=dict)
    copies: IssueGroups = field(default_factory=lambda: IssueGroups())
    bulk: IssueGroups = field(default_factory=lambda: IssueGroups())
    wgmma: IssueGroups = field(default_factory=lambda: IssueGroups())
    tensor: dict[Family, list[list[TraceEvent]]] = field(default_factory=dict)
    registers_in_use: WgmmaUse = field(default_factory=WgmmaUse)
    arrived: list[int] = field(default_factory=lambda: [-1] * LANES)
    peeks: list[dict[int, Peek]] = field(default_factory=lambda: [{} for _ in range(LANES)])
    locals: list[Block | None] = field(default_factory=lambda: [None] * LANES)
    carry: Row = field(default_factory=lambda: [None] * LANES)

    def own(self, slot: int) -> Row:
        """The row of a register, to change single lanes of it."""
        row = self.registers[slot]
        if type(row) is Uniform:
            row = self.registers[slot] = list(row)
        return row

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
        self.order: dict[int, int] = {}
        self._turns: dict[tuple[Block, int], int] = {}
        self.kinds: dict[tuple[Block, int], str] = {}
        self.version = 0
        self.awaits: dict[int, frozenset[int]] = {}
        self.unstarted: list[tuple[int, int, int]] = []
        self._clusters: dict[int, BarrierState] = {}
        self.elect_last = False
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
        if at + size > block.size or (block.instance.space is Space.SHARED and at < SHARED_START):
            raise Faulty("undefined-address", f"{size} bytes at {address:#x} reach beyond the {block.instance.name}")
        return block, at

    def _find(self, warp: Warp, space: str, address: int) -> tuple[Block, int] | None:
        if space.startswith("shared"):
            found = self._shared(warp, address & 0xFFFFFFFF)
            if found is not None and space != "shared::cluster" and found[0] is not warp.cta.shared:
                raise Faulty("undefined-address", f"address {address:#x} is in another CTA, outside .shared::cta")
            return found
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

    def places(
        self, warp: Warp, space: str, addresses: Row, lanes: Lanes, size: int, instruction: PtxInstruction
    ) -> tuple[Block, list[int]] | None:
        """The block and the offsets of what lanes access, if it all lies in one block; otherwise None."""
        given = [addresses[lane] for lane in lanes]
        first = given[0]
        if first is None or None in given:
            return None
        found = self._find(warp, space, first)
        if found is None or found[0] is self.memory.params:
            return None
        block, at = found
        shift = at - first
        offsets = [one + shift for one in given if one is not None]
        least = SHARED_START if block.instance.space is Space.SHARED else 0
        if min(offsets) < least or max(offsets) + size > block.size:
            return None
        return block, offsets

    # ---- traces ----------------------------------------------------------------------------------------------

    def event(self, thread: TraceThread, at: int, label: Label, *note: object) -> TraceEvent:
        """A new event in the order of a thread."""
        made = TraceEvent(thread.number, len(thread.events), at, label, note=note)
        thread.events.append(made)
        if not (isinstance(label, Barrier) and label.sem is Sem.RELAXED and label.domain is Domain.WARP):
            # Lanes that only wait for one another order no memory, so that accesses around that come as one.
            thread.epoch = len(thread.events)
        self._clock += 1
        made.time = self._clock
        return made

    def weak(
        self, block: Block, first: int, size: int, thread: TraceThread, label: Label, at: int, scalar: int | None,
        issue: TraceEvent | None = None, value: Value = None, part: int = 0, others: tuple[TraceEvent, ...] = (),
    ) -> None:  # fmt: skip
        """A weak access, or a part of an asynchronous one."""
        epoch = thread.epoch if issue is None or issue.order is None else issue.order
        made = WeakAccess(block, first, size, thread.number, epoch, label, at, scalar, issue, value, part, others)
        self.run.single.append(made)

    def weak_lanes(
        self, warp: Warp, lanes: Lanes, block: Block, firsts: list[int], size: int, label: Label, at: int, scalar: int,
        values: list[Value] | None = None,
    ) -> None:  # fmt: skip
        """Weak accesses of lanes, in their order."""
        threads = [warp.threads[lane] for lane in lanes]
        numbers, epochs = [one.number for one in threads], [one.epoch for one in threads]
        self.run.lanes.append(LaneAccesses(block, firsts, size, numbers, epochs, label, at, scalar, values))

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

    def forget_all(self, block: Block, offsets: list[int], size: int) -> None:
        """The same for several places."""
        if self.strong.get(block):
            for at in offsets:
                self.forget(block, at, size)

    def private(self, warp: Warp, lane: int, address: Value, size: int) -> tuple[Block, int] | None:
        """The local memory at a generic address; None for any other address."""
        at = -1 if address is None else address - LOCAL_WINDOW - PRIVATE_START
        if not 0 <= at <= self.memory.private_size - size:
            return None
        block = warp.locals[lane]
        if block is None:
            block = warp.locals[lane] = self.memory.private()
        return block, at

    def problem(self, rule: str, message: str, instruction: PtxInstruction | None) -> None:
        for one in self.run.problems:
            if one.rule == rule and one.instruction is instruction:
                one.threads += 1
                return
        self.run.problems.append(Failure(rule, message, instruction))

    def blocked(self, block: Block, at: int, thread: int) -> bool:
        """Is an atomic operation of a thread not yet its turn, where their order is given?"""
        return thread in self.order and self.order[thread] != self._turns.get((block, at), 0)

    def passed(self, block: Block, at: int) -> None:
        self._turns[block, at] = self._turns.get((block, at), 0) + 1

    def alias(self, cta: Cta, block: Block, at: int) -> int:
        """A number for a place, the same in CTAs that use places in the same way."""
        return cta.aliases.setdefault((block, at), len(cta.aliases))

    def cancel(self, instruction: PtxInstruction) -> int:
        """What a request to cancel a cluster is told: 0, or the next of those that the schedule did not start."""
        self.run.cancels[instruction.number] = instruction
        if not self.unstarted:
            return 0
        x, y, z = self.unstarted.pop(0)
        return 1 | x << 32 | y << 64 | z << 96

    # ---- looking ahead ---------------------------------------------------------------------------------------

    def peeked(self, warp: Warp, lane: int, instruction: PtxInstruction, block: Block, at: int, parity: int) -> None:
        """A test that only looks ahead: it fails, so that the wait that it could save is made."""
        one = self.object(block, at)
        phase = one.over if one.over % 2 == parity % 2 else one.over - 1
        made = self.event(warp.threads[lane], instruction.number, Mbarrier(Action.TEST, Sem.RELAXED, Scope.CTA))
        made.block, made.first, made.size = block, at, 8
        made.note = (at, phase, one.life, "peek")
        self.run.peeks.append((made, phase))
        warp.peeks[lane][instruction.number] = Peek(block, at, phase, made.time)

    def waited(self, warp: Warp, lane: int, instruction: PtxInstruction, block: Block, at: int) -> None:
        """A wait that a test before it could have saved has to be for the same phase."""
        known = [one for n, one in warp.peeks[lane].items() if n in self.awaits.get(instruction.number, ())]
        if not known:
            return
        last = max(known, key=lambda one: one.time)
        if (last.block, last.at, last.phase) != (block, at, self.object(block, at).over - 1):
            self.run.choices.setdefault(("peek", instruction.number), instruction)

    # ---- barriers --------------------------------------------------------------------------------------------

    def cluster_barrier(self, cta: Cta) -> tuple[BarrierState, BarrierId]:
        identity = BarrierId(Domain.CLUSTER, cta.threads[0].place.cluster_id, (0,))
        return self._clusters.setdefault(cta.cluster, BarrierState()), identity

    def cluster_complete(self, cta: Cta) -> None:
        """Begin the next generation if all threads of the cluster have arrived or exited."""
        meeting = self._clusters[cta.cluster]
        members = [one for (cluster, _), one in self.ctas.items() if cluster == cta.cluster]
        if meeting.who and all(t.number in meeting.who or t.number in one.gone for one in members for t in one.threads):
            meeting.generation, meeting.who = meeting.generation + 1, set()
            self.version += 1

    def barrier(self, cta: Cta, number: int) -> tuple[BarrierState, BarrierId]:
        identity = BarrierId(Domain.CTA, cta.threads[0].place.cta_id, (number, 0))
        return cta.barriers.setdefault(number, BarrierState()), identity
