"""What one thread records when it runs alone.

In: nothing. Out: the `Record` types, `Trace`. Not decided here: where the values that the thread read come from, and
what memory holds between its accesses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memmodel.base.labels import Access, Action, Half, Label
from memmodel.base.points import BarrierId, Range
from memmodel.base.words import WordList
from memmodel.memory.bytes import Cell, Footprint
from memmodel.program.ops import Track


@dataclass(frozen=True, slots=True)
class RecordName:
    """The name of a record that both engines know.

    `time`: how often the thread had executed the step before. `part`: which part of the step.
    """

    thread: int
    step: int
    time: int
    part: int = 0


@dataclass(frozen=True, slots=True)
class BytesRead:
    """Some bytes that a thread has read: bytes first … first+size of the data of a record. Values depend on them."""

    record: int
    first: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What a step, or a part of one, did.

    `order`: its place in program order, None for a part. `instruction`: a number for this execution of its instruction.
    `issue`: for a part, the record of its issue. `addr`, `ctrl`: masks over the tokens of the trace.
    """

    name: RecordName
    label: Label = field(compare=False)
    order: int | None
    instruction: int
    issue: int | None = None
    addr: int = 0
    ctrl: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainRecord(Record):
    """A fence, an issue, a mark. `data`: of an issue. `range`: the bytes that it names."""

    data: int = 0
    range: Range | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRecord(Record):
    """A read or write of a footprint; its value is in the trace.

    `data`: what each scalar depends on, or one mask for all. `half_of`: for the write of an atomic operation, the
    record of its read. `copies`: the record whose bytes this one writes. `refused`: this is the response to a request
    that failed.
    """

    footprint: Footprint
    data: tuple[int, ...] = (0,)
    half_of: int | None = None
    copies: int | None = None
    refused: bool = False
    tracks: frozenset[Track] = field(default=frozenset(), compare=False)

    @property
    def access(self) -> Access:
        assert isinstance(self.label, Access)
        return self.label


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierRecord(Record):
    """Half of a barrier. `count` None: every thread of the domain; negative: however many arrive."""

    half: Half
    barrier: BarrierId
    count: int | None
    data: int = 0
    reduces: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRecord(Record):
    """An operation on an mbarrier object. `result`: what a test yields, or the state that an arrive returns.

    `pending`: the count that an arrive puts into a register. `completes`: the records that a signal completes.
    `report`: the report predicate that a test put into a register. `failed`: a signal reports a failure.
    `conditional`: a test of the conditional phase.
    """

    object: Cell
    action: Action
    count: int = 0
    bytes: int = 0
    drop: bool = False
    parity: int | None = None
    state: int | None = None
    result: int | None = None
    pending: int | None = None
    no_complete: bool = False
    data: int = 0
    completes: frozenset[int] = frozenset()
    report: int | None = None
    failed: bool = False
    conditional: bool = False

    @property
    def updates(self) -> bool:
        return self.action is not Action.TEST

    @property
    def done(self) -> bool:
        """True of a test that yielded 1."""
        return self.action is Action.TEST and self.result == 1

    def answer(self, over: int) -> int:
        """The result of a test after `over` completed phases, which are counted as states count them if the test is by
        state.
        """
        if self.parity is not None:
            return int(over % 2 != self.parity % 2)
        return int(self.state is not None and over > self.state)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitRecord(Record):
    """A wait for groups. `completes`: the records that it waits for."""

    completes: frozenset[int]


@dataclass(frozen=True, slots=True)
class Contribution:
    """The value that a thread gave to a barrier reduction, and the result that it assumed.

    `arrive`: the record of its arrive half.
    """

    arrive: int
    op: str
    value: int
    result: int


class End(WordList):
    """How a trace ends."""

    REACHED = "the end of the thread"
    EXIT = "ret or exit"
    FAULT = "a bad address"
    WAITS = "a wait that never ends"
    CUT = "a loop beyond the bound"
    BEYOND = "something that is not modelled"


@dataclass(frozen=True, slots=True)
class Ending:
    """How and where a trace ends.

    `step`, `time`: for WAITS, CUT and BEYOND, the step and how often it was executed before. `reason`: for BEYOND.

    For WAITS, one of three says what the thread waits for. `first`: the first record of the round of a spin loop that
    it repeats. `arrive`: the record of the arrive half of a barrier. `barrier` and `generation`: a generation by its
    number.
    """

    end: End = End.REACHED
    step: int = 0
    time: int = 0
    first: int | None = None
    arrive: int | None = None
    barrier: BarrierId | None = None
    generation: int | None = None
    reason: str = ""

    @property
    def complete(self) -> bool:
        """True if the thread counts as ended."""
        return self.end in (End.REACHED, End.EXIT, End.FAULT)


@dataclass(frozen=True, slots=True)
class Trace:
    """One run of a thread: records (apart from values, which make `values`), registers at the end, how it ends."""

    records: tuple[Record, ...]
    values: tuple[int | None, ...]
    tokens: tuple[BytesRead, ...]
    registers: Mapping[str, int]
    contributions: tuple[Contribution, ...]
    ending: Ending
