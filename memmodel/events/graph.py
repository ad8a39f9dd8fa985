"""Events as the Z3 engine sees them: each may or may not run; where it is and what it does are known.

In: nothing. Out: the `Event` types and `EventGraph`, filled by `events.elaborate` and read by `encode`. An instruction
whose address, count or barrier an execution decides has events for each possibility, which exclude one another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from memmodel.base.labels import Action, Half, Label
from memmodel.base.logic import FALSE, TRUE, Logic
from memmodel.base.points import BarrierId, Point
from memmodel.events.values import NO_DEPS, Deps, Value
from memmodel.litmus.syntax import Instruction
from memmodel.memory.bytes import Cell, Extent
from memmodel.memory.cells import Cells, Edges, Starts
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import Track


@dataclass(frozen=True, slots=True)
class Visit:
    """A step of a thread that is executed, under a formula, at this place of the thread's execution.

    Visits are numbered in that order, which is program order (`Point.order`).
    """

    thread: int
    step: int
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event. It runs if `runs` holds; `addr`, `data`, `ctrl` say which reads it depends on, and how.

    `visit`: the visit that makes it, None for an initial write. `part`: which part of its instruction.
    """

    point: Point
    runs: int = TRUE
    addr: Deps = field(default_factory=lambda: NO_DEPS)
    data: Deps = field(default_factory=lambda: NO_DEPS)
    ctrl: Deps = field(default_factory=lambda: NO_DEPS)
    visit: int | None = None
    part: int = 0

    @property
    def uid(self) -> int:
        return self.point.event

    @property
    def label(self) -> Label:
        return self.point.label

    @property
    def thread(self) -> int | None:
        return self.point.thread

    @property
    def moment(self) -> int:
        """The number of the visit that makes it; initial writes have none."""
        assert self.visit is not None
        return self.visit


K = TypeVar("K", bound=Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainEvent(Event):
    """A fence, an issue, a mark: its label says it all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEvent(Event):
    """A read or write of one cell. `value`: its bytes as an unsigned number. `tracks`: of an asynchronous part."""

    value: Value
    tracks: frozenset[Track] = frozenset()

    @property
    def cell(self) -> Cell:
        assert self.point.cell is not None
        return self.point.cell


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierEvent(Event):
    """Half of a barrier. `count`: arrivals of a generation; None: all threads of the domain; negative: however many."""

    half: Half
    barrier: BarrierId
    count: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectEvent(Event):
    """An operation on an mbarrier object, of a thread or of the hardware, with its numbers.

    `result`: for a test, 0 and 1 -> formula; for an arrive that returns a state, state -> formula. `pending`: arrivals
    that were pending just before an arrive -> formula, if the thread asks; `report`: the report predicate of a test.
    `failed`: a signal reports a failure. `conditional`: a test of the conditional phase.
    """

    action: Action
    count: int = 0
    bytes: int = 0
    drop: bool = False
    parity: Value | None = None
    state: Value | None = None
    result: dict[int, int] | None = None
    pending: dict[int, int] | None = None
    no_complete: bool = False
    of: tuple[int, ...] = ()
    tracks: Track | None = None
    report: dict[int, int] | None = None
    failed: int = FALSE
    conditional: bool = False

    @property
    def object(self) -> Cell:
        assert self.point.cell is not None
        return self.point.cell


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWaitEvent(Event):
    """A wait for groups. `pending`: how many of the last groups may be open; None: it waits for all parts."""

    track: Track
    pending: int | None
    sources_only: bool


@dataclass(frozen=True, slots=True)
class CommitMark:
    """A commit_group at this place of its thread's program order."""

    thread: int
    order: int
    track: Track
    runs: int


@dataclass(frozen=True, slots=True)
class Reduction:
    """One barrier.cta.red: `result` (integer -> formula) combines `nonzero` over the generation of its arrive half."""

    arrives: tuple[int, ...]
    op: str
    nonzero: int
    result: dict[int, int]
    runs: int
    visit: int


@dataclass(frozen=True, slots=True)
class StuckAt:
    """A place where a thread may wait for ever: at `visit`.

    `round`: uids of the events of the last round of a spin loop; `arrives`: uids of the arrive halves of the barrier
    whose wait half never runs.
    """

    thread: int
    when: int
    visit: int
    round: tuple[int, ...] = ()
    arrives: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class NotFollowed:
    """Executions in which `when` holds are not followed further: the instruction jumps back beyond the bound, or does
    something that is not modelled, as `reason` says."""

    when: int
    instruction: Instruction
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Copied:
    """Bytes that are copied from one extent to another, if `runs`: a cut in one is a cut in the other."""

    source: Extent
    target: Extent
    runs: int


@dataclass(slots=True)
class EventGraph:
    """All events of a test: threads first, in program order, then initial writes.

    `registers[t]`: final register values of thread t, if it ends. Thread t reaches its end under `ended[t]`, by ret or
    exit under `exited[t]`, and stops at a bad address under `faulted[t]`. `requests`: for each try_cancel, by its
    visit, the part that responds and the formula of its success. `decisions`: for each Decide, by its visit, the
    variable that says that it is 1. `cut`: loops that go round more often than the bound;
    `unmodelled`: what is not modelled. `footprints`: memory is cut at their ends, and at the ends of their scalars,
    when the formula holds. `chosen`: for a thread and a register of `Program.choices`, the variable that says that it
    is 1. `sizes`: of an mbarrier object that is declared for as many arrivals as the execution has for it, or for one
    where it has none, these numbers -> formula; so it ends one phase at most.
    """

    lowered: LoweredTest
    cells: Cells
    starts: Starts
    logic: Logic = field(default_factory=Logic)
    events: list[Event] = field(default_factory=list)
    visits: list[Visit] = field(default_factory=list)
    registers: list[dict[str, Value]] = field(default_factory=list)
    ended: list[int] = field(init=False)
    exited: list[int] = field(init=False)
    faulted: list[int] = field(init=False)
    stuck: list[StuckAt] = field(default_factory=list)
    cut: list[NotFollowed] = field(default_factory=list)
    unmodelled: list[NotFollowed] = field(default_factory=list)
    commits: list[CommitMark] = field(default_factory=list)
    reductions: list[Reduction] = field(default_factory=list)
    requests: dict[int, tuple[int, int]] = field(default_factory=dict)
    decisions: dict[int, int] = field(default_factory=dict)
    footprints: dict[Edges, int] = field(default_factory=dict)
    copies: list[Copied] = field(default_factory=list)
    chosen: dict[tuple[int, str], int] = field(default_factory=dict)
    sizes: dict[Cell, dict[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ended, self.exited, self.faulted = ([FALSE] * len(self.lowered.programs) for _ in range(3))

    def of_kind(self, kind: type[K]) -> list[K]:
        """The events of one class."""
        return [event for event in self.events if isinstance(event, kind)]

    def complete(self) -> int:
        """The formula that says that every thread has reached its end, or stopped at a bad address."""
        logic = self.logic
        return logic.conj(logic.either(e, f) for e, f in zip(self.ended, self.faulted, strict=True))
