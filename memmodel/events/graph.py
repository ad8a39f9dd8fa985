"""Events as the Z3 engine sees them: each may or may not run, at one of a few locations, with one of a few values.

In: nothing. Out: `Event` and `EventGraph`, filled by `events.elaborate` and read by `encode`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from memmodel.events.values import Deps, Value
from memmodel.isa import ops
from memmodel.isa.memory import Location, MemoryMap
from memmodel.litmus.syntax import Instruction, LitmusTest
from memmodel.logic import TRUE, Logic
from memmodel.ptx import Place, Scope


@dataclass(frozen=True, slots=True)
class MbarrierStep:
    """What an event does to its mbarrier object: an ops.Mbarrier action, or a signal's, with values.

    `result`: for a test, 0 and 1 -> formula; for an arrive with a state operand, state -> formula.
    `pending`: arrivals that were pending just before an arrive -> formula, if the thread asks.
    """

    action: str
    count: int = 0
    bytes: int | None = None
    drop: bool = False
    parity: Value | None = None
    state: Value | None = None
    result: dict[int, int] | None = None
    pending: dict[int, int] | None = None
    no_complete: bool = False


@dataclass(frozen=True, slots=True)
class CommitMark:
    """A commit_group: it lies before the event with uid `position` of its thread, and runs under a formula."""

    thread: int
    position: int
    track: str
    runs: int


@dataclass(frozen=True, slots=True)
class Stuck:
    """A place where a thread may stand for good, when hangs are asked for.

    `round`: uids of the events of the last round of a spin loop; `barrier`: uid of the wait half that never runs.
    """

    thread: int
    when: int
    instruction: Instruction
    round: tuple[int, ...] = ()
    barrier: int | None = None


@dataclass(slots=True)
class Event:
    """One event. `thread` is None for an initial write. All formulas hold only if the event runs (`runs`).

    `where`: (location, virtual address) -> formula. `value`: read or written. `barrier`: its step, with `key` the
    possible values of its resource. `partner`: for the write of an atomic operation, the uid of its read.
    `issue`: for an asynchronous event, the uid of its issue; it is then in no program order. `track`, `of`, `tracks`,
    `wait`, `pending`: what completes what (ops.Part, Signal, Wait). `mbarrier`: what it does to the object at `where`.
    `covers`, `covers_from`: the state space or range (from an address) of a fence.
    """

    uid: int
    thread: int | None
    place: Place | None
    tags: frozenset[str]
    scope: Scope | None = None
    runs: int = TRUE
    where: dict[tuple[Location, tuple[str, int]], int] = field(default_factory=dict)
    value: Value | None = None
    address_deps: Deps = field(default_factory=dict)
    data_deps: Deps = field(default_factory=dict)
    control_deps: Deps = field(default_factory=dict)
    partner: int | None = None
    barrier: ops.Barrier | None = None
    key: dict[tuple[int, ...], int] = field(default_factory=dict)
    count: int = 0
    issue: int | None = None
    track: frozenset[str] = frozenset()
    of: tuple[int, ...] = ()
    tracks: str | None = None
    wait: ops.Wait | None = None
    pending: int | None = None
    mbarrier: MbarrierStep | None = None
    covers: ops.Cover | None = None
    covers_from: Value | None = None
    unit: int | None = None
    form: str | None = None
    instruction: Instruction | None = None
    _at: dict[Location, int] | None = None

    @property
    def in_po(self) -> bool:
        """Is it in program order? Initial writes and asynchronous events are not."""
        return self.thread is not None and self.issue is None

    @property
    def is_read(self) -> bool:
        return "R" in self.tags

    @property
    def is_write(self) -> bool:
        return "W" in self.tags

    def at(self, logic: Logic) -> dict[Location, int]:
        """Location -> formula under which the event accesses it."""
        if self._at is None:
            self._at = {}
            for (location, _), formula in self.where.items():
                self._at[location] = logic.either(self._at.get(location, -TRUE), formula)
        return self._at


@dataclass(frozen=True, slots=True)
class Reduction:
    """One barrier.cta.red: `result` (integer -> formula) combines `nonzero` over the generation of `wait`."""

    wait: int
    op: str
    nonzero: int
    result: dict[int, int]
    runs: int


@dataclass(slots=True)
class EventGraph:
    """All events of a test, initial writes first, then thread by thread in order of execution.

    `registers[t]`: final register values of thread t. `cut`: formulas under which a loop ran over the bound; these
    executions are left out. `logic` already requires that every thread reaches its end.
    """

    test: LitmusTest
    logic: Logic
    events: list[Event]
    registers: list[dict[str, Value]]
    cut: list[int]
    reductions: list[Reduction]
    commits: list[CommitMark]
    memory: MemoryMap
    stuck: list[Stuck]
    exited: list[int]

    @property
    def bounded(self) -> bool:
        """Was some execution left out because a loop ran over the bound?"""
        return bool(self.cut)
