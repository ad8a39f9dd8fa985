"""What one thread leaves behind when it runs alone, and where it stands while it runs.

In: nothing. Out: the types of a run: events with concrete addresses, dependencies and counts; traces; `State`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from memmodel.enumeration.meter import Meter
from memmodel.isa.memory import Cell, Location
from memmodel.isa.ops import AddressOf, Const, Event, Expr, Issue, Part, Reduce, Signal, registers_of

Resource = tuple[object, ...]
"""A barrier: the domain, which CTA, cluster or warp, and the values of its key."""


@dataclass(frozen=True, slots=True)
class Half:
    """One half of a barrier as executed: which resource, and how many arrivals it asks for.

    `count` 0: all threads of the domain that the test has; negative: those that arrive.
    """

    half: str
    resource: Resource
    count: int


@dataclass(frozen=True, slots=True)
class Operation:
    """What an event does to an mbarrier object (`action` as in `isa.ops.Mbarrier`), with its numbers.

    `result`: what a test yields, or the state that an arrive puts into a register. `pending`: the count that an arrive
    puts into a register.
    """

    object: Location
    action: str
    count: int = 0
    bytes: int = 0
    drop: bool = False
    parity: int | None = None
    state: int | None = None
    result: int | None = None
    pending: int | None = None
    no_complete: bool = False

    @property
    def updates(self) -> bool:
        return self.action != "test"

    @property
    def done(self) -> bool:
        """Is it a test that yielded 1?"""
        return self.action == "test" and self.result == 1

    def answer(self, over: int) -> int:
        """What a test yields that sees so many phases over."""
        if self.parity is not None:
            return int(over % 2 != self.parity % 2)
        return int(self.state is not None and over > self.state)


def answers(operation: Operation | None) -> tuple[int, ...]:
    """What an operation tells its thread."""
    if operation is None:
        return ()
    return tuple(one for one in (operation.result, operation.pending) if one is not None)


@dataclass(frozen=True, slots=True)
class ThreadEvent:
    """One event of a trace. `addr`, `data`, `ctrl`, `completes`: masks over the trace's events, which are numbered in
    the order in which the thread creates them: an issue, then its parts and signals.

    `part`: position of a part or signal in its instruction. `source`: for these, their issue. `rmw`: the atom's read.
    `range_at`: where the range that an event covers begins.
    """

    step: int
    made: Event = field(compare=False)
    cell: Cell | None = None
    addr: int = 0
    data: int = 0
    ctrl: int = 0
    rmw: int | None = None
    half: Half | None = None
    range_at: int | None = None
    part: int | None = None
    source: int | None = None
    completes: int = 0
    operation: Operation | None = None


@dataclass(frozen=True, slots=True)
class Reduction:
    """What a thread put into a barrier reduction of one generation and what it took the result to be."""

    resource: Resource
    generation: int
    op: str
    value: int
    result: int


@dataclass(frozen=True, slots=True)
class Stand:
    """Where a thread stands for good: in front of a wait half of a barrier, or in a round of a spin loop.

    `half`: that wait half, which is no event. `first`: the first event of that round; `step`: where it goes round.
    """

    step: int
    half: Half | None = None
    first: int | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """One complete run of a thread: events (apart from values, which make `values`), registers at the end.

    With `stand` it is complete up to there, and the thread does not go on. `exited`: it ended by ret or exit.
    """

    events: tuple[ThreadEvent, ...]
    values: tuple[int | None, ...]
    registers: dict[str, int]
    reductions: tuple[Reduction, ...]
    stand: Stand | None = None
    exited: bool = False


@dataclass(slots=True)
class Runs:
    """The traces of one thread. `cut`: a loop was stopped at the bound. `standing`: traces of a thread that waits.

    `read`: the locations that any trace reads. `asked`: the mbarrier objects whose counts some trace keeps.
    """

    traces: list[Trace] = field(default_factory=list)
    standing: list[Trace] = field(default_factory=list)
    cut: bool = False
    read: set[Location] = field(default_factory=set)
    asked: set[Location] = field(default_factory=set)


@dataclass(slots=True)
class State:
    """A thread in the middle of a run. `heads`: where the events of the current round of a loop start.

    `commits`: each group that was closed: its name, and the number of events before its end. `source`: the issue whose
    parts are being made.
    """

    registers: dict[str, int]
    dependencies: dict[str, int] = field(default_factory=dict)
    events: list[ThreadEvent] = field(default_factory=list)
    values: list[int | None] = field(default_factory=list)
    reductions: list[Reduction] = field(default_factory=list)
    commits: list[tuple[str, int]] = field(default_factory=list)
    rounds: dict[int, int] = field(default_factory=dict)
    heads: dict[int, int] = field(default_factory=dict)
    at: int = 0
    taken: int = 0
    told: int = 0
    ctrl: int = 0
    instruction: int | None = None
    enabled: bool = True
    guard_depends: int = 0
    source: int | None = None
    exited: bool = False

    def copy(self) -> State:
        return State(
            self.registers.copy(),
            self.dependencies.copy(),
            self.events.copy(),
            self.values.copy(),
            self.reductions.copy(),
            self.commits.copy(),
            self.rounds.copy(),
            self.heads.copy(),
            self.at,
            self.taken,
            self.told,
            self.ctrl,
            self.instruction,
            self.enabled,
            self.guard_depends,
            self.source,
            self.exited,
        )

    def add(self, event: ThreadEvent, value: int | None = None) -> None:
        self.events.append(event)
        self.values.append(value)

    def set(self, register: str, value: int, depends: int) -> None:
        self.registers[register] = value
        self.dependencies[register] = depends

    def depends(self, *exprs: Expr | None) -> int:
        """The reads whose values some expressions depend on."""
        mask = 0
        for expr in exprs:
            if expr is not None and not isinstance(expr, Const | AddressOf):
                for name in registers_of(expr):
                    mask |= self.dependencies.get(name, 0)
        return mask

    def control(self) -> int:
        """The reads that the execution of the current step depends on."""
        return self.ctrl | self.guard_depends


def issue_depends(state: State, op: Issue) -> tuple[int, int]:
    """The addr and data dependencies of an issue: those of its parts, except on what other parts read."""
    addr = data = 0
    inner: set[str] = set()
    for part in op.parts:
        value = part.bytes if isinstance(part, Signal) else part.value
        for expr, places in ((part.address, True), (value, False)):
            if expr is not None:
                for name in registers_of(expr) - inner:
                    if places:
                        addr |= state.dependencies.get(name, 0)
                    else:
                        data |= state.dependencies.get(name, 0)
        if isinstance(part, Part) and part.register is not None:
            inner.add(part.register)
    return addr, data


@dataclass(frozen=True, slots=True)
class Asked:
    """What a thread wants to know of an mbarrier object: "test" (0 or 1), "state" (phases over) or "pending"."""

    object: Location
    what: str


Oracle = Callable[[Location | Reduce | Asked, int], Sequence[int]]
"""The values that a read of a location, or a barrier reduction, or an operation on an mbarrier object may return; with
the number of values taken before, those of mbarrier objects counted apart."""


@dataclass(frozen=True, slots=True)
class Walk:
    """What all states of one run share: who answers reads, who counts, what was found, what is left to do."""

    oracle: Oracle
    meter: Meter
    runs: Runs
    pending: list[State]
    waits: bool
