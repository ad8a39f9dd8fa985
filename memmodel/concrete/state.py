"""A thread in the middle of a run, and who answers it.

In: nothing. Out: `RunState`, `Oracle`, `Run`. An oracle says what a read, a test or a reduction may return; if there
are several answers, the run continues once for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from memmodel.concrete.meter import Meter
from memmodel.concrete.records import BytesRead, Contribution, Ending, Record, RecordName, Trace
from memmodel.memory.bytes import Cell, Footprint
from memmodel.program.expressions import Const, Expr, registers_of
from memmodel.program.ops import IssueAsync, Track


class Oracle(Protocol):
    """Answers that a thread may get; the more likely ones first."""

    def read(self, name: RecordName, footprint: Footprint) -> Sequence[int]:
        """Values of the data of a read, as one number."""

    def test(self, name: RecordName, object: Cell) -> Sequence[int]:
        """Results of a test of an mbarrier object: 0 or 1."""

    def phases(self, name: RecordName, object: Cell) -> Sequence[int]:
        """States that an arrive may return."""

    def pending(self, name: RecordName, object: Cell) -> Sequence[int]:
        """Arrivals that may be pending before an arrive."""

    def reduction(self, name: RecordName, op: str) -> Sequence[int]:
        """Results of a barrier reduction."""

    def report(self, name: RecordName) -> Sequence[int]:
        """Report predicates of a test that yields 1: 0 or 1."""

    def success(self, name: RecordName) -> Sequence[int]:
        """Results that no other part of the execution decides, such as the success of a try_cancel: 0 or 1."""


@dataclass(slots=True)
class Issuing:
    """An asynchronous instruction whose parts are being made: its issue, and the record of each part, as numbers."""

    op: IssueAsync
    issue: int
    records: list[int | None] = field(default_factory=list)

    def copy(self) -> Issuing:
        return Issuing(self.op, self.issue, self.records.copy())


@dataclass(slots=True)
class RunState:
    """A thread in the middle of a run."""

    registers: dict[str, int]
    depends: dict[str, int] = field(default_factory=dict)
    """Register -> the reads that its value depends on, as a mask over `tokens`."""
    records: list[Record] = field(default_factory=list)
    values: list[int | None] = field(default_factory=list)
    tokens: dict[BytesRead, int] = field(default_factory=dict)
    """Bytes that were read -> their bit in masks."""
    contributions: list[Contribution] = field(default_factory=list)
    groups: list[tuple[Track, int]] = field(default_factory=list)
    """For each closed group, its name and the number of records before its end."""
    times: dict[int, int] = field(default_factory=dict)
    """Step -> how often it was executed."""
    rounds: dict[int, int] = field(default_factory=dict)
    """Loop -> the number of its rounds."""
    heads: dict[int, int] = field(default_factory=dict)
    """Loop -> the number of the first record of its current round."""
    failed: frozenset[int] = frozenset()
    """The spin loops of which a failed round was kept."""
    at: int = 0
    """The next step."""
    visits: int = 0
    instructions: int = 0
    instruction: int | None = None
    enabled: bool = True
    ctrl: int = 0
    guard: int = 0
    issuing: Issuing | None = None
    ended: Ending | None = None
    dropped: bool = False
    """True if the run reached a round that is not kept."""

    def copy(self) -> RunState:
        return RunState(
            self.registers.copy(),
            self.depends.copy(),
            self.records.copy(),
            self.values.copy(),
            self.tokens.copy(),
            self.contributions.copy(),
            self.groups.copy(),
            self.times.copy(),
            self.rounds.copy(),
            self.heads.copy(),
            self.failed,
            self.at,
            self.visits,
            self.instructions,
            self.instruction,
            self.enabled,
            self.ctrl,
            self.guard,
            None if self.issuing is None else self.issuing.copy(),
            self.ended,
            self.dropped,
        )

    def add(self, record: Record, value: int | None = None) -> int:
        """Append a record, and return its number."""
        self.records.append(record)
        self.values.append(value)
        return len(self.records) - 1

    def token(self, record: int, first: int, size: int) -> int:
        """The mask that stands for some bytes of a read."""
        return 1 << self.tokens.setdefault(BytesRead(record, first, size), len(self.tokens))

    def set(self, register: str, value: int, depends: int) -> None:
        """register := value, depending on the guard too."""
        self.registers[register] = value
        self.depends[register] = depends | self.guard

    def depend(self, *exprs: Expr | None) -> int:
        """What some expressions depend on."""
        mask = 0
        for expr in exprs:
            if expr is not None and not isinstance(expr, Const):
                for name in registers_of(expr):
                    mask |= self.depends.get(name, 0)
        return mask

    def control(self) -> int:
        """What the execution of the current step depends on."""
        return self.ctrl | self.guard


@dataclass(frozen=True, slots=True)
class Run:
    """What all states of a thread's runs share: the oracle, the meter, the traces so far, the states to go on with.

    `waits`: also keep traces of a thread that waits for ever.
    """

    oracle: Oracle
    meter: Meter
    traces: list[Trace]
    pending: list[RunState]
    waits: bool
