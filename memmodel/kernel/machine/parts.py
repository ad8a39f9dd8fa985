"""The parts of a running launch: groups of lanes, warps, CTAs, barriers, mbarrier objects, tensor memory.

In: nothing. Out: the records that `Machine` and the instructions work on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from memmodel.base.labels import Allocation
from memmodel.kernel.machine.rows import LANES, Row, Uniform, Value
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.threads import TraceThread
from memmodel.program.automata import BarrierCounts
from memmodel.program.fields import NOTHING, Bits
from memmodel.program.ops import Track
from memmodel.program.windows import RANK_BITS

MATRIX_A = 2
"""The part of a tcgen05.mma that reads A in shared memory, whose completion a commit may signal before the others."""

PARTS_OF = dict.fromkeys((Track.MATRIX_A_1, Track.MATRIX_A_2), frozenset({MATRIX_A}))
"""The parts of an issue that one of its names is about; all parts where it is not listed."""

Lanes = list[int]


class Faulty(Exception):
    """An instruction of a thread cannot be carried out; its message says why."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message


@dataclass(slots=True, eq=False)
class LaneGroup:
    """Lanes of a warp that are at one instruction."""

    at: int
    lanes: Lanes
    blocked: bool = False
    """They cannot go on in this turn."""
    waits: object = None
    """What they wait for, as the instruction noted it."""
    mbarrier: tuple[Block, int] | None = None
    """The mbarrier object whose phase they wait for: their test of it has failed."""
    parity: bool = False
    """That test names the phase by its parity."""
    frames: tuple[int, ...] = ()
    """The calls that they are in."""
    poll_jumps: int = 0
    """How often they jumped back in a loop that polls."""
    fence: int = -1
    """The instruction before which a slow warp has stopped."""
    step: int = 0
    """The step of the instruction at which they wait."""
    checked: bool = False
    """What that step asks for was checked."""
    apart_since: Moment | None = None
    """When they went another way than other lanes of the warp, if they have not met all of these again."""
    held_rounds: int = 0
    """They are held back while other lanes of their warp poll this number of times more."""


class Moment(NamedTuple):
    """A moment of a run: how many weak accesses, those of several lanes together, and events there were."""

    single: int
    lanes: int
    time: int


class GoneLanes(NamedTuple):
    """Lanes that have exited while others of their warp go on: when they went another way, and when they exited."""

    lanes: tuple[int, ...]
    since: Moment
    until: Moment


PARKED = "parked"
"""What lanes wait for if they met something that the run cannot decide, and others are to go on without them."""

HELD = "held"
"""What lanes wait for that go on when no other thread can."""


@dataclass(slots=True, eq=False)
class BarrierState:
    """A barrier. `counts`: its present generation. `partly`: the warps of which only some lanes have arrived, with how
    many have, and the count that they ask for. `votes`: by generation, the values that a reduction combines, each with
    its operation. `missing`: by generation, the threads that exited without arriving, if the barrier was complete
    without them.
    """

    counts: BarrierCounts = field(default_factory=BarrierCounts)
    partly: dict[Warp, tuple[int, int | None]] = field(default_factory=dict)
    votes: dict[int, list[tuple[str, Value]]] = field(default_factory=dict)
    missing: dict[int, int] = field(default_factory=dict)

    def arrive(self, warp: Warp, lanes: Lanes, count: int | None) -> None:
        """Lanes of a warp arrive at a barrier of the CTA. The warp counts as all its lanes when they are all there."""
        self.counts = self.counts.after(warp.in_cta(lanes), 0, count)
        self.partly[warp] = self.partly.get(warp, (0, None))[0] + len(lanes), count
        self._whole()

    def lacks(self, warp: Warp) -> bool:
        """True if lanes of a warp have arrived at the barrier of its CTA, and others of them have not."""
        self.gather(warp.cta)
        return warp in self.partly

    def _whole(self) -> None:
        for warp, (lanes, count) in list(self.partly.items()):
            if lanes >= warp.live.bit_count():
                del self.partly[warp]
                self.counts = self.counts.after(0, LANES, count)

    def gather(self, cta: Cta) -> None:
        """Begin the next generation of a barrier of the CTA if this one is complete; lanes may have exited."""
        if self.counts.arrived_threads:
            self._whole()
            self.complete(cta.everyone, cta.exited)

    def complete(self, threads: int, exited: int) -> None:
        """Begin the next generation if this one is complete."""
        if self.counts.complete(threads, exited):
            if self.counts.needed is None and threads & ~self.counts.arrived_threads:
                self.missing[self.counts.generation] = threads & ~self.counts.arrived_threads
            self.counts = self.counts.next()


class PairTurn(NamedTuple):
    """An operation that both CTAs of a pair make together: its kind, and its number among those of its CTA."""

    kind: Allocation
    turn: int


class WarpArrival(NamedTuple):
    """The generation of a barrier at which some lanes of a warp have arrived and others have not."""

    generation: int


class IssueGroups:
    """The asynchronous instructions of each lane with one track.

    `issued`: all of them; `open`: those since the last commit; `closed`: the groups that were committed.
    """

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
        """The instructions that are complete when all groups but the last `left` are."""
        groups = self.closed[lane]
        return [issue for group in groups[: len(groups) - left] for issue in group] if left < len(groups) else []


@dataclass(slots=True, eq=False)
class WgmmaUse:
    """The registers of a warp that wgmma.mma_async uses, as `isa.wgmma_registers` counts them.

    `groups`, `shapes`: of each register, the group and the accumulator of the last wgmma.mma_async that uses it; the
    accumulator is empty for a fragment of A. `written`, `read`, `multiplied`: how many wgmma.fence there were when
    another instruction last wrote or read a register, and when a wgmma.mma_async last used it.
    """

    fences: int = 0
    committed: int = 0
    completed: int = 0
    groups: dict[int, int] = field(default_factory=dict)
    shapes: dict[int, tuple[object, ...]] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)
    read: dict[int, int] = field(default_factory=dict)
    multiplied: dict[int, int] = field(default_factory=dict)

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


@dataclass(frozen=True, slots=True)
class PutAside:
    """What a recursive call keeps of the function that it calls again: registers of a thread, pieces of its memory."""

    registers: tuple[Value, ...]
    memory: tuple[tuple[int, bytes, bytes], ...]


@dataclass(slots=True)
class Collected:
    """A collector buffer. `filled`: it holds a matrix. `used`: an mma has taken the matrix. `threads`: which threads
    issued mma with it."""

    filled: bool = False
    used: bool = False
    threads: set[int] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class TensorMemory:
    """The tensor memory of a CTA: `columns[c]` is the allocation that column c belongs to.

    `promised`: for a number of columns the first, where the peer CTA has allocated with .cta_group::2. `given`: by its
    first column, the last allocation there, which is over perhaps. `exclusive`: it has an allocation that excludes
    others. `last`: how many columns the last allocation had, 0 if there was none. `collected`: the collector buffers.
    """

    block: Block
    columns: list[TraceEvent | None]
    promised: dict[int, int] = field(default_factory=dict)
    given: dict[int, TraceEvent] = field(default_factory=dict)
    exclusive: bool = False
    last: int = 0
    collected: dict[str, Collected] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Cta:
    """A CTA. `base`: of its addresses in the window of its cluster. `spare`: registers that warps have given back.
    `everyone`, `exited`: its threads, and those of them that have exited, as masks.

    `refused`: the threads that saw that no cluster is left to cancel. `pair_operations`: how many operations its warps
    have come to that the CTAs of a pair make together, by kind.
    """

    number: int
    cluster: int
    rank: int
    shared: Block
    threads: list[TraceThread]
    barriers: dict[int, BarrierState] = field(default_factory=dict)
    exited: int = 0
    spare: int = 0
    refused: set[int] = field(default_factory=set)
    tensor: TensorMemory | None = None
    aliases: dict[tuple[Block, int], int] = field(default_factory=dict)
    pair_operations: Counter[Allocation] = field(default_factory=Counter)

    @property
    def base(self) -> int:
        return self.rank << RANK_BITS

    @property
    def everyone(self) -> int:
        return (1 << len(self.threads)) - 1


@dataclass(slots=True, eq=False)
class Warp:
    """A warp: registers as lists over the lanes, groups of lanes, special registers.

    `limit`: how many registers each of its threads owns; `limit_known`: the text says so. `slow`: it only goes on when
    no other warp changes anything. `bits`: by register and lane, the known bits of a value that is not known as a
    whole. `names`: by register, the term of its value in each lane, in a run that has terms. `exchanges`: by mask and
    words of the instruction, the lanes that wait for others of the mask. `arrived`, `waited`: by lane, the generation
    of the cluster barrier at which it arrived last, and for which it waited last. `tracks`: the asynchronous
    instructions that commits, waits and signals find by a name. `passed_over`: the instructions that lanes execute
    together and that only some of those that came to them do, by their guards. `rounds`: by a branch back and its
    target, how often each lane took it apart from others since all lanes executed something together."""

    cta: Cta
    number: int
    threads: list[TraceThread]
    registers: list[Row]
    special: dict[str, Row]
    groups: list[LaneGroup]
    limit: int = 0
    limit_known: bool = False
    slow: bool = False
    syncs: dict[int, BarrierState] = field(default_factory=dict)
    exchanges: dict[tuple[int, frozenset[str]], list[LaneGroup]] = field(default_factory=dict)
    tracks: defaultdict[Track, IssueGroups] = field(default_factory=lambda: defaultdict(IssueGroups))
    registers_in_use: WgmmaUse = field(default_factory=WgmmaUse)
    arrived: list[int] = field(default_factory=lambda: [-1] * LANES)
    waited: list[int] = field(default_factory=lambda: [-1] * LANES)
    peeks: list[dict[int, Peek]] = field(default_factory=lambda: [{} for _ in range(LANES)])
    locals: list[Block | None] = field(default_factory=lambda: [None] * LANES)
    stacked: list[int] = field(default_factory=lambda: [0] * LANES)
    stacks: list[list[int]] = field(default_factory=lambda: [[] for _ in range(LANES)])
    aside: list[list[PutAside]] = field(default_factory=lambda: [[] for _ in range(LANES)])
    bits: dict[tuple[int | None, int], Bits] = field(default_factory=dict)
    names: dict[int, list[int | None]] = field(default_factory=dict)
    exited: list[GoneLanes] = field(default_factory=list)
    passed_over: set[int] = field(default_factory=set)
    rounds: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    def own(self, slot: int) -> Row:
        """The row of a register, to change single lanes of it."""
        row = self.registers[slot]
        if type(row) is Uniform:
            row = self.registers[slot] = list(row)
        return row

    def knows(self, slot: int, lane: int) -> bool:
        """True if anything is known of a register."""
        return self.registers[slot][lane] is not None or (slot, lane) in self.bits

    def bits_of(self, slot: int | None, row: Row, lane: int) -> Bits:
        """What is known of an operand: the register, and its row before it changes."""
        value = row[lane]
        return Bits.of(value, 128) if value is not None else self.bits.get((slot, lane), NOTHING)

    def learn(self, slot: int, lane: int, bits: Bits, width: int) -> None:
        """What is known of the bits of a register whose value is not known."""
        self.bits.pop((slot, lane), None)
        if self.registers[slot][lane] is not None:
            return
        whole = bits.number(width)
        if whole is not None:
            self.own(slot)[lane] = whole
        elif bits.known:
            self.bits[slot, lane] = bits

    def clear(self, slots: Iterable[int], lanes: Lanes) -> None:
        """Forget the bits and terms of registers that are written."""
        for slot in slots if self.bits or self.names else ():
            if self.bits:
                for lane in lanes:
                    self.bits.pop((slot, lane), None)
            if slot in self.names:
                self.name(slot, lanes, [None] * len(lanes))

    def name(self, slot: int, lanes: Lanes, terms: Sequence[int | None]) -> None:
        """Note the terms of a register, one for each of these lanes."""
        row = list(self.names.get(slot) or [None] * LANES)
        for lane, term in zip(lanes, terms, strict=True):
            row[lane] = term
        self.names[slot] = row

    def in_cta(self, lanes: Lanes) -> int:
        """Lanes as a mask of the threads of the CTA."""
        return sum(1 << lane for lane in lanes) << self.number * LANES

    @property
    def everyone(self) -> int:
        """The lanes that the warp has, as a mask."""
        return (1 << len(self.threads)) - 1

    @property
    def live(self) -> int:
        """The lanes that have not exited, as a mask."""
        return sum(1 << lane for group in self.groups for lane in group.lanes)

    def split(self, group: LaneGroup, lanes: Lanes) -> None:
        """Keep only these lanes in the group. The others go on after its instruction, as a group of their own."""
        if len(lanes) < len(group.lanes):
            others = [lane for lane in group.lanes if lane not in lanes]
            self.groups.append(LaneGroup(group.at + 1, others, frames=group.frames))
            group.lanes = lanes


def state_of(waiting: list[Warp]) -> object:
    """The state of all warps, to see whether a round in which no memory changed has changed anything else."""
    return [
        (dict(warp.bits), [(group.at, tuple(group.lanes), [[row[lane] for lane in group.lanes]
                            for row in warp.registers]) for group in warp.groups])
        for warp in waiting
    ]  # fmt: skip
