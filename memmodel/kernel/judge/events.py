"""What one run leaves behind: events in the order of their threads, and weak accesses between them.

In: nothing. Out: `TraceEvent`, `WeakAccess`, `LaunchTrace`, `Refused`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from memmodel.base.labels import Access, Label, Mark, Marker
from memmodel.base.points import BarrierId
from memmodel.errors import InputError
from memmodel.kernel.machine.memory import Block
from memmodel.kernel.text.syntax import PtxInstruction
from memmodel.program.fields import Bits
from memmodel.ptx.vocabulary import Place


class Refused(InputError):
    """The run met something that it cannot decide: an unknown instruction, a branch on unknown data."""


@dataclass(slots=True, eq=False)
class TraceEvent:
    """Something a thread did that may order its accesses, or a part of an asynchronous instruction.

    `order`: place among the events of its thread; None for a part. `block`, `first`, `size`: what it is about.
    `note`: what tells it from others of the same instruction, the same for threads that do the same. `signals`: of an
    issue, those that tell of its end, and its strong accesses. `completes`: the issues that are over with it, all of
    them or their `parts`, or only what they read (`reads_only`). `range`: the bytes that a fence names, and of an issue
    its tensor map. `value`: of a strong store, what it leaves, if that is known. `known`: of a strong load, values of
    registers that a loop around it looks at. `owners`: of an event about tensor memory the allocations. `twin`: the
    same for copies that lanes issue at once, from one place to another. `turn`: of a strong access, how many its thread
    had made before with the instruction; `bits`: what it found, or leaves. `given`: the operand of an atomic operation,
    of its write. `observed`: of a read, writes that it observes through atomic operations, whichever it reads from.
    """

    thread: int
    order: int | None
    at: int
    label: Label
    block: Block | None = None
    first: int = 0
    size: int = 0
    issue: TraceEvent | None = field(default=None, repr=False)
    signals: tuple[TraceEvent, ...] = ()
    parts: frozenset[int] | None = None
    reads_only: bool = False
    range: tuple[Block, int, int] | None = None
    owners: tuple[TraceEvent, ...] = ()
    twin: int | None = None
    note: tuple[object, ...] = ()
    value: int | None = None
    known: tuple[tuple[int, int], ...] = ()
    barrier: BarrierId | None = None
    generation: int = 0
    count: int | None = None
    completes: tuple[TraceEvent, ...] = ()
    source: TraceEvent | None = field(default=None, repr=False)
    partner: TraceEvent | None = field(default=None, repr=False)
    time: int = 0
    turn: int = -1
    bits: Bits | None = None
    given: int | None = None
    observed: tuple[TraceEvent, ...] = ()


class Labels:
    """Numbers for labels, the same for equal ones. Most equal ones are one object, which is faster to find."""

    def __init__(self) -> None:
        self._objects: dict[int, tuple[Label, int]] = {}
        self._equal: dict[Label, int] = {}

    def number(self, label: Label) -> int:
        known = self._objects.get(id(label))
        if known is None:
            known = self._objects[id(label)] = label, self._equal.setdefault(label, len(self._equal))
        return known[1]


class WeakAccess(NamedTuple):
    """A weak access of a thread. `epoch`: how many events its thread had then. `scalar`: bytes of its elements.

    `value`: the bytes that are stored, if they are known. `issue`: of an asynchronous access; `part`: which part of it.
    `others`: issues of other lanes that make it together.
    """

    block: Block
    first: int
    size: int
    thread: int
    epoch: int
    label: Label
    at: int
    scalar: int | None
    issue: TraceEvent | None = None
    value: int | None = None
    part: int = 0
    others: tuple[TraceEvent, ...] = ()


class LaneAccesses(NamedTuple):
    """The weak accesses that lanes of a warp make with one instruction, each `size` bytes long.

    `values`: the bytes that each stores, if they are known.
    """

    block: Block
    firsts: list[int]
    size: int
    threads: list[int]
    epochs: list[int]
    label: Label
    at: int
    scalar: int | None
    values: list[int | None] | None = None

    def each(self) -> Iterator[WeakAccess]:
        """One access for each lane."""
        values = self.values or [None] * len(self.firsts)
        for first, thread, epoch, value in zip(self.firsts, self.threads, self.epochs, values, strict=True):
            yield WeakAccess(self.block, first, self.size, thread, epoch, self.label, self.at, self.scalar, None, value)


class ObjectStep(NamedTuple):
    """An update of an mbarrier object or a test that saw a phase end, in the order of the run."""

    event: TraceEvent
    update: bool
    before: int
    after: int
    life: int
    seen: int


@dataclass(slots=True)
class TraceThread:
    """One thread of the launch. `epoch`: its last event that may order its accesses."""

    number: int
    cta: int
    warp: int
    lane: int
    place: Place
    events: list[TraceEvent] = field(default_factory=list)
    epoch: int = 0

    @property
    def ended(self) -> bool:
        """Has it left the kernel?"""
        label = self.events[-1].label if self.events else None
        return isinstance(label, Mark) and label.what is Marker.EXIT

    def strong(self) -> Iterator[TraceEvent]:
        """Its strong accesses: those that it makes itself, and those of its asynchronous instructions."""
        for event in [one for one in self.events if one.block is not None or one.signals]:
            if isinstance(event.label, Access) and event.block is not None:
                yield event
            for one in event.signals:
                if isinstance(one.label, Access):
                    yield one


def done_by(access: TraceEvent | WeakAccess, thread: TraceThread) -> TraceEvent | WeakAccess:
    """What a thread that does the same does in place of an access."""
    if isinstance(access, WeakAccess):
        return access._replace(thread=thread.number)
    return access if access.order is None or access.thread == thread.number else thread.events[access.order]


@dataclass(slots=True)
class Failure:
    """Something wrong that the run itself showed: a hang, a bad address, a failed assertion."""

    rule: str
    message: str
    instruction: PtxInstruction | None
    threads: int = 1


class AwaitedPhase(NamedTuple):
    """The phase of an mbarrier object at the end of a run: its number, what it lacks, and is the object initialised?"""

    block: Block
    first: int
    phase: int
    pending: int
    tx: int
    live: bool


class StuckLanes(NamedTuple):
    """Lanes of a warp that wait for ever at an instruction. `awaits`: the phase that they test, if it is a test."""

    threads: tuple[int, ...]
    at: int
    awaits: AwaitedPhase | None = None


@dataclass(slots=True)
class LaunchTrace:
    """One run of a launch. `choices`: what another run might do otherwise: (what, instruction).

    `bad`: updates of mbarrier objects that break their counts; `stale`: tests of a state that is too old. `awaits`: by
    the number of a wait the tests that look ahead for it; `proved`: the tests of which failures were seen to change
    nothing; `peeks`: these tests, each with its phase. `cancels`: the
    requests to cancel a cluster. `endless`: branches on unknown data around loops that only compute. `infeasible`: the
    kernel did not let its atomic operations be made in the order that was asked for. `again`: carries the run out once
    more, with terms for what some stores leave, with or without NaN; `doubtful`: NaN matters there. `assumed`: what was
    taken for granted, as notes. `multimem`: what has multimem addresses, with an instruction that accesses it.
    `unchecked`: what the launch would have to say, or the text, as sentences. `loose`: parts of instructions (number,
    part) of which the text does not say which bytes they touch. `chosen`: the strong reads that return the write that
    the schedule says, each with it. `stuck`: those that wait for ever where nobody can go on.
    """

    threads: list[TraceThread] = field(default_factory=list)
    single: list[WeakAccess] = field(default_factory=list)
    lanes: list[LaneAccesses] = field(default_factory=list)
    objects: dict[tuple[Block, int], list[ObjectStep]] = field(default_factory=dict)
    problems: list[Failure] = field(default_factory=list)
    stuck: list[StuckLanes] = field(default_factory=list)
    choices: dict[tuple[str, int], PtxInstruction] = field(default_factory=dict)
    tests: dict[int, PtxInstruction] = field(default_factory=dict)
    proved: frozenset[int] = frozenset()
    cancels: dict[int, PtxInstruction] = field(default_factory=dict)
    endless: dict[int, PtxInstruction] = field(default_factory=dict)
    assumed: dict[str, None] = field(default_factory=dict)
    multimem: dict[Block, PtxInstruction] = field(default_factory=dict)
    unchecked: dict[str, None] = field(default_factory=dict)
    loose: set[tuple[int, int]] = field(default_factory=set)
    awaits: Mapping[int, frozenset[int]] = field(default_factory=dict)
    peeks: list[tuple[TraceEvent, int]] = field(default_factory=list)
    atomics: dict[tuple[Block, int], list[TraceEvent]] = field(default_factory=dict)
    bad: list[TraceEvent] = field(default_factory=list)
    stale: list[TraceEvent] = field(default_factory=list)
    chosen: list[tuple[TraceEvent, TraceEvent | None]] = field(default_factory=list)
    instructions: int = 0
    elected: bool = False
    infeasible: bool = False
    doubtful: bool = False
    again: Callable[[frozenset[int], bool], LaunchTrace] | None = field(default=None, repr=False)

    @property
    def accesses(self) -> int:
        """How many weak accesses there were."""
        return len(self.single) + sum(len(one.firsts) for one in self.lanes)

    def weak(self, blocks: Container[Block] | None = None) -> Iterator[WeakAccess]:
        """The weak accesses, or those to some blocks."""
        yield from (one for one in self.single if blocks is None or one.block in blocks)
        for many in self.lanes:
            if blocks is None or many.block in blocks:
                yield from many.each()
