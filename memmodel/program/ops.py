"""What an instruction does, in steps small enough for any engine: the output language of the instruction table.

In: nothing. Out: the `Op` types. `isa.lower` turns one Instruction into a few of these; each engine interprets them in
its own way (with concrete integers, or with formulas), so that the meaning of an instruction is written once. The guard
`@%p` of an instruction guards all its steps.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.base.labels import Access, Allocates, Barrier, Fence, GroupWait, Issue, Mark, Mbarrier, ProxyFence, Signal
from memmodel.base.words import WordList
from memmodel.program.expressions import Expr
from memmodel.program.regions import Chunk, Elements, Multimem, Object, Region, TensorMapAt
from memmodel.ptx.vocabulary import DataType


class Track(WordList):
    """The names by which commits, waits and signals find the parts of asynchronous instructions."""

    CP_ASYNC = "cp.async"
    BULK = "bulk"
    WGMMA = "wgmma"
    TCGEN_LD = "tcgen05.ld"
    TCGEN_ST = "tcgen05.st"
    GROUP_1 = "tcgen05.cta_group::1"
    GROUP_2 = "tcgen05.cta_group::2"
    MATRIX_A_1 = "A of tcgen05.mma.cta_group::1 in shared memory"
    MATRIX_A_2 = "A of tcgen05.mma.cta_group::2 in shared memory"
    FABRIC_GET = "fabric operations that fetch"
    FABRIC_PUT = "fabric operations that do not fetch"


@dataclass(frozen=True, slots=True)
class Assign:
    """register := value; no event."""

    register: str
    value: Expr


@dataclass(frozen=True, slots=True)
class UndefinedIf:
    """The instruction is undefined, by `rule`, if `when` is non-zero: then an event says so, and the thread goes on."""

    rule: str
    when: Expr


@dataclass(frozen=True, slots=True)
class Unmodelled:
    """An execution that comes here with `when` non-zero is beyond this model: what it does is not known."""

    reason: str
    when: Expr


@dataclass(frozen=True, slots=True)
class Decide:
    """register := 0 or 1, which the execution decides, if `when` is non-zero; else 0. No event."""

    register: str
    when: Expr | None = None


@dataclass(frozen=True, slots=True)
class Jump:
    """Go to `label` (None: the end of the thread) if `when` is non-zero (None: always)."""

    label: str | None
    when: Expr | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """Read a region; each register (None: dropped) receives a value of `type` (None: as declared).

    `at`: the byte of the data at which each value begins; None: they lie one after the other, a scalar each.
    """

    registers: tuple[str | None, ...]
    region: Elements | Chunk | Multimem | TensorMapAt
    label: Access
    type: DataType | None = None
    at: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """Write values to a region, one after the other, if `when` is non-zero.

    Each fills a scalar, or, where the region names none, an equal part. `rmw`: one atomic operation with the read just
    before.
    """

    values: tuple[Expr, ...]
    region: Elements | Chunk | Multimem | TensorMapAt
    label: Access
    when: Expr | None = None
    rmw: bool = False


@dataclass(frozen=True, slots=True)
class Emit:
    """An event that is all in its label. `address`, `columns` or `bytes`: the range that it names."""

    label: Fence | ProxyFence | Mark | Allocates
    address: Expr | None = None
    bytes: int = 0
    columns: int = 0


@dataclass(frozen=True, slots=True)
class AtBarrier:
    """One half of a barrier. Equal keys in one domain instance meet.

    `count`: how many arrivals complete a generation (None or value 0: those of every thread of the domain that has not
    exited; negative: however many come). A wait half is for the generation of the thread's last arrive half, or, of
    barrier.cluster, of its arrive half with the same number.
    """

    label: Barrier
    key: tuple[Expr, ...]
    count: Expr | None


@dataclass(frozen=True, slots=True)
class Combine:
    """barrier.cta.red: combine `value` over the arrivals of the generation just waited for (op: popc, and, or)."""

    register: str
    op: str
    value: Expr


@dataclass(frozen=True, slots=True)
class CommitGroup:
    """Close the group of all parts named `track` that the thread issued since the last one; no event."""

    track: Track


@dataclass(frozen=True, slots=True)
class WaitForGroups:
    """Wait until parts named `track` are complete: an event in program order, completed (`compl`) by these parts.

    `pending` None: all earlier parts. Otherwise all those in committed groups except the `pending` most recent groups.
    `sources_only`: just the reads of sources and tensor maps are waited for.
    """

    label: GroupWait
    track: Track
    pending: Expr | None = None
    sources_only: bool = False


@dataclass(frozen=True, slots=True)
class OnObject:
    """A thread's operation on the mbarrier object at a region (one event); `label.action` says which.

    INIT: `count` arrivals a phase. ARRIVE: `count` arrivals (drop: and that many fewer in later phases), after raising
    the tx-count by `bytes` if given; `register` receives the state, a number that names the phase. EXPECT_TX,
    COMPLETE_TX: raise or lower the tx-count by `bytes`. PENDING: raise the pending count by `count`. TEST: `register`
    := 1 if the phase asked for is over, else 0; the phase is given by `parity` or by a `state`. `pending`: an arrive
    puts the arrivals that were pending just before it into that register (only if the thread asks for them).
    `no_complete`: the thread promises that the phase does not end by this arrive.
    `report`: a TEST that returns true puts the report predicate of the phase that it saw end into that register.
    `conditional`: a TEST asks for the conditional phase, past which operations that failed do not go.
    `when`: only if that is non-zero (a CTA of a multicast). `beside`: program order does not relate it with the step
    before, which is another part of the instruction.
    """

    label: Mbarrier
    region: Object
    count: Expr | None = None
    bytes: Expr | None = None
    drop: bool = False
    register: str | None = None
    parity: Expr | None = None
    state: Expr | None = None
    pending: str | None = None
    no_complete: bool = False
    when: Expr | None = None
    beside: bool = False
    report: str | None = None
    conditional: bool = False


# ---- asynchronous parts ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Gather:
    """Read the bytes of a region, piece by piece; `Scatter` and `Update` parts of the instruction write them on."""

    label: Access
    region: Region
    tracks: frozenset[Track] = frozenset()


@dataclass(frozen=True, slots=True)
class Scatter:
    """Write to a region the bytes that the Gather part number `source` read, byte by byte; beyond these, zeros.

    `when`: only if that is non-zero (a CTA of a multicast, a piece that was moved).
    """

    label: Access
    region: Region
    source: int
    tracks: frozenset[Track] = frozenset()
    when: Expr | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """A reduction: every scalar of a region becomes op(scalar, the scalar that part `source` read), atomically.

    `when`: only if that is non-zero.
    """

    read: Access
    write: Access
    region: Region
    source: int
    op: str
    type: DataType
    tracks: frozenset[Track] = frozenset()
    when: Expr | None = None


@dataclass(frozen=True, slots=True)
class AsyncRead:
    """Read a region into temporaries: one for each scalar, or one for the sum of its declared elements."""

    label: Access
    region: Region
    registers: tuple[str | None, ...]
    sums: bool = False
    tracks: frozenset[Track] = frozenset()


@dataclass(frozen=True, slots=True)
class AsyncWrite:
    """Write the scalars of a region. One value for several columns of tensor memory goes to all of them.

    `adds_to`: the value is added to what an AsyncRead of the same region read, column by column, if that expression is
    not 0. `rmw`: one atomic operation with the AsyncRead just before. `when`: only if that is non-zero.
    """

    label: Access
    region: Region
    values: tuple[Expr, ...]
    rmw: bool = False
    adds_to: int | None = None
    adds_if: Expr | None = None
    tracks: frozenset[Track] = frozenset()
    when: Expr | None = None


@dataclass(frozen=True, slots=True)
class Respond:
    """Write the response of a try_cancel, whose outcome the execution decides: 0 if refused, else `success`.

    `like`: the part whose outcome this one has, for a further receiver. A kernel has responses of its own, which say
    what was cancelled.
    """

    label: Access
    region: Region
    success: int
    like: int | None = None


@dataclass(frozen=True, slots=True)
class SignalPart:
    """An operation on an mbarrier object that the hardware makes when something is complete.

    `bytes`, or the size of part number `bytes_of`: a complete-tx of that many bytes; neither: an arrive-on with count
    1. It completes the parts `of` this instruction, by number, and with `tracks` every earlier part of the thread that
    carries that name. `when`: only if that is non-zero. `failed`: if that is non-zero, it reports a failure.
    """

    label: Signal
    region: Object
    bytes: Expr | None = None
    bytes_of: int | None = None
    of: tuple[int, ...] = ()
    tracks: Track | None = None
    when: Expr | None = None
    failed: Expr | None = None


Part = Gather | Scatter | Update | AsyncRead | AsyncWrite | Respond | SignalPart


@dataclass(frozen=True, slots=True)
class IssueAsync:
    """An asynchronous instruction: an issue event in program order, then its parts, outside of it.

    A part may use temporaries that AsyncRead parts before it assigned.
    """

    label: Issue
    parts: tuple[Part, ...]


Op = (
    Assign
    | UndefinedIf
    | Unmodelled
    | Decide
    | Jump
    | Read
    | Write
    | Emit
    | AtBarrier
    | Combine
    | CommitGroup
    | WaitForGroups
    | OnObject
    | IssueAsync
)
