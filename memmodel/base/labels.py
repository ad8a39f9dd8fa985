"""What the instruction of an event says about it: one class for each kind of event.

In: nothing. Out: the `Label` types. The instruction table makes them, the base sets of cat are predicates on them, and
both engines carry them along unread. What an execution adds (locations, values, order) is not here.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.base.words import WordList
from memmodel.ptx.vocabulary import MbarrierLayout, Proxy, Scope, Sem


class Side(WordList):
    """What an access does to memory."""

    READ = "R"
    WRITE = "W"


class Family(WordList):
    """The instruction that an asynchronous or atomic event belongs to; PLAIN for ld and st and their like."""

    PLAIN = "ld, st"
    ATOM = "atom"
    RED = "red"
    CP_ASYNC = "cp.async"
    BULK = "cp.async.bulk"
    BULK_REDUCTION = "cp.reduce.async.bulk"
    ST_ASYNC = "st.async, red.async"
    WGMMA = "wgmma.mma_async"
    TRY_CANCEL = "clusterlaunchcontrol.try_cancel"
    MMA = "tcgen05.mma"
    TCGEN_CP = "tcgen05.cp"
    SHIFT = "tcgen05.shift"
    TCGEN_LD = "tcgen05.ld"
    TCGEN_ST = "tcgen05.st"
    COMMIT = "tcgen05.commit"
    FABRIC_GET = "fabric.try_get, fabric.try_pullred"
    FABRIC_PUT = "fabric.try_put, fabric.try_red, fabric.try_atom"


TCGEN = frozenset((Family.MMA, Family.TCGEN_CP, Family.SHIFT, Family.TCGEN_LD, Family.TCGEN_ST, Family.COMMIT))
"""The families of tcgen05 instructions."""

FABRIC = frozenset((Family.FABRIC_GET, Family.FABRIC_PUT))
"""The families of fabric operations."""


class Role(WordList):
    """What an asynchronous read is for: the source of a copy, or the tensor map that says where it is."""

    SOURCE = "source"
    DESCRIPTOR = "descriptor"


@dataclass(frozen=True, slots=True)
class InitialWrite:
    """The write that gives a location its first value."""


@dataclass(frozen=True, slots=True)
class Access:
    """A read or write of memory."""

    side: Side
    sem: Sem = Sem.WEAK
    """WEAK, RELAXED, ACQUIRE (reads) or RELEASE (writes)."""
    scope: Scope | None = None
    """None for a weak access."""
    proxy: Proxy = Proxy.GENERIC
    family: Family = Family.PLAIN
    rmw: bool = False
    """True for each half of an atomic read-modify-write."""
    asynchronous: bool = False
    """True if program order does not order the access."""
    spelt: str | None = None
    """"volatile", "mmio" or "multimem", if the mnemonic has this word."""
    role: Role | None = None
    """Set for an asynchronous read."""
    group: int | None = None
    """N of .cta_group::N."""
    form: str | None = None
    """Shape and kind of a tcgen05 operation."""

    @property
    def replicated(self) -> bool:
        """True if the access goes through a multimem address, to every location that this points to."""
        return self.spelt == "multimem"


class Covers(WordList):
    """What a fence is about, when it is not about all memory."""

    OWN_SHARED = "shared memory of the executing CTA"
    SHARED = "all shared memory"
    GLOBAL = "global memory"  # and whatever else is neither shared nor tensor memory
    INIT = "the thread's earlier mbarrier.init"
    OWN_READS = "the thread's earlier reads of shared memory"
    RANGE = "the bytes that an operand names"


@dataclass(frozen=True, slots=True)
class Fence:
    """A memory fence.

    `sem`: ACQUIRE, RELEASE, ACQ_REL or SC. `covers`: set for fences with .sync_restrict and for fence.mbarrier_init.
    """

    sem: Sem
    scope: Scope
    covers: Covers | None = None


class Across(WordList):
    """The direction of a fence of the fabric proxy, spelt `to::from` as in the mnemonic."""

    OUT = "generic::fabric"
    IN = "fabric::generic"
    WITHIN = "fabric::fabric"


@dataclass(frozen=True, slots=True)
class ProxyFence:
    """A proxy fence between the generic proxy and another one."""

    proxy: Proxy | None
    """The other proxy; None for fence.proxy.alias."""
    half: Sem | None = None
    """RELEASE or ACQUIRE for one half of a uni-directional fence (fence.proxy.alias has halves too)."""
    scope: Scope | None = None
    """Set for a uni-directional fence only."""
    covers: Covers | None = None
    """None: all memory."""
    restricted: bool = False
    """True if the fence has .sync_restrict."""
    across: Across | None = None
    """The direction of a fence of the fabric proxy."""


class Half(WordList):
    """Which half of an execution barrier."""

    ARRIVE = "arrive"
    WAIT = "wait"


class Domain(WordList):
    """Which threads take part in an execution barrier.

    LAUNCH: a CTA that lets a dependent grid begin, and the threads of that grid.
    GRID: a grid that has completed, and the threads of a dependent grid.
    PAIR: the two CTAs of a CTA pair, which manage tensor memory together. It orders nothing, and a wait may end before
    the barrier is complete.
    COLUMNS: a single alloc of tensor memory, which waits until its columns are free. It orders nothing.
    """

    CTA = "cta"
    WARP = "warp"
    CLUSTER = "cluster"
    LAUNCH = "launch"
    GRID = "grid"
    PAIR = "pair"
    COLUMNS = "columns"


BETWEEN_GRIDS = (Domain.LAUNCH, Domain.GRID)
"""Barriers at which a grid waits for the grid that it depends on."""
OF_TENSOR_MEMORY = (Domain.PAIR, Domain.COLUMNS)
"""Barriers at which threads wait for tensor memory; they order nothing."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """Half of an execution barrier."""

    half: Half
    domain: Domain
    sem: Sem | None = None
    """Set for barrier.cluster and for barriers between grids, as `scope` is."""
    scope: Scope | None = None
    reduces: bool = False
    """True for barrier.red."""
    ends: bool = False
    """True for the arrival that the end of a thread makes."""
    lane_exited: bool = False
    """True for a wait of bar.warp.sync or elect.sync if a lane of its mask has exited and never executes it."""


@dataclass(frozen=True, slots=True)
class Issue:
    """An asynchronous instruction as its thread executes it.

    `sem`: RELEASE for st.async.release and red.async.release.
    """

    family: Family
    sem: Sem | None = None
    scope: Scope | None = None
    group: int | None = None
    form: str | None = None


class Action(WordList):
    """What an operation does to an mbarrier object.

    PENDING: cp.async.mbarrier.arrive without .noinc adds one pending arrival.
    """

    INIT = "init"
    INVAL = "inval"
    ARRIVE = "arrive"
    EXPECT_TX = "expect_tx"
    COMPLETE_TX = "complete_tx"
    PENDING = "pending"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class Mbarrier:
    """A thread's operation on an mbarrier object. `unscoped`: the instruction names no scope, so it has the default.

    `layout`: what an init gives the object.
    """

    action: Action
    sem: Sem | None = None
    scope: Scope | None = None
    unscoped: bool = False
    layout: MbarrierLayout = MbarrierLayout.V0


@dataclass(frozen=True, slots=True)
class Signal:
    """A complete-tx or arrive-on that the hardware makes when the parts of an instruction are done; it releases."""

    action: Action
    scope: Scope
    family: Family
    group: int | None = None


@dataclass(frozen=True, slots=True)
class GroupWait:
    """Waits for groups of asynchronous operations of a family; TCGEN_LD and TCGEN_ST for tcgen05.wait."""

    family: Family


class Marker(WordList):
    """Events without a parameter."""

    WGMMA_FENCE = "wgmma.fence"
    BEFORE = "tcgen05.fence::before_thread_sync"
    AFTER = "tcgen05.fence::after_thread_sync"
    END = "the end of a thread"
    EXIT = "an explicit end of a thread: ret, exit"
    SUBMIT = "fabric.submit"
    SUBMIT_FETCHING = "fabric.submit.op_restrict::fetching"


@dataclass(frozen=True, slots=True)
class Mark:
    """One of the events without a parameter."""

    what: Marker


class Allocation(WordList):
    """What an instruction does to tensor memory as a whole."""

    ALLOC = "tcgen05.alloc"
    DEALLOC = "tcgen05.dealloc"
    RELINQUISH = "tcgen05.relinquish_alloc_permit"


@dataclass(frozen=True, slots=True)
class Allocates:
    """tcgen05.alloc, dealloc or relinquish_alloc_permit."""

    what: Allocation
    group: int | None
    """N of .cta_group::N."""
    columns: int | None = None
    """The number of columns, if it is known before the test runs."""
    exclusive: bool = False
    """True for an alloc that may not have another allocation beside it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An instruction whose address is bad: it does nothing, and its thread ends."""

    reason: str


@dataclass(frozen=True, slots=True)
class Undefined:
    """An instruction that its own thread makes undefined, whatever other threads do; `rule` says why."""

    rule: str


Label = (
    InitialWrite
    | Access
    | Fence
    | ProxyFence
    | Barrier
    | Issue
    | Mbarrier
    | Signal
    | GroupWait
    | Mark
    | Allocates
    | Fault
    | Undefined
)


def scope_of(label: Label) -> Scope | None:
    """The scope that an event specifies, or None."""
    scope: Scope | None = getattr(label, "scope", None)
    return scope


def layout_of(label: Label) -> MbarrierLayout:
    """The layout that an init gives its object."""
    return label.layout if isinstance(label, Mbarrier) else MbarrierLayout.V0


def is_with_outside(label: Label) -> bool:
    """True if an event can synchronize with the host or another device: its scope is .sys."""
    return scope_of(label) is Scope.SYS


def sem_of(label: Label) -> Sem | None:
    """The semantics that an event specifies, or None."""
    match label:
        case ProxyFence(half=half):
            return half
        case Signal():
            return Sem.RELEASE
        case InitialWrite():
            return Sem.WEAK
    sem: Sem | None = getattr(label, "sem", None)
    return sem


def family_of(label: Label) -> Family | None:
    """The instruction family of an access, an issue, a signal or a wait."""
    family: Family | None = getattr(label, "family", None)
    return family


def group_of(label: Label) -> int | None:
    """N of .cta_group::N, or None."""
    group: int | None = getattr(label, "group", None)
    return group


def is_restricted(label: Label) -> bool:
    """True for a fence with .sync_restrict and for fence.mbarrier_init."""
    return (isinstance(label, Fence) and label.covers is not None) or (
        isinstance(label, ProxyFence) and label.restricted
    )


def side_of(label: Label) -> Side | None:
    """The side of an access; None for other events."""
    return label.side if isinstance(label, Access) else None


def is_memory(label: Label) -> bool:
    """True for an access, and for an initial write."""
    return isinstance(label, Access | InitialWrite)


def is_read(label: Label) -> bool:
    """True for the read of a location."""
    return isinstance(label, Access) and label.side is Side.READ


def is_replicated(label: Label) -> bool:
    """True for an access through a multimem address, which is another virtual address of the same memory."""
    return isinstance(label, Access) and label.replicated


def is_write(label: Label) -> bool:
    """True for a write, an initial one too."""
    return isinstance(label, InitialWrite) or (isinstance(label, Access) and label.side is Side.WRITE)


def is_atomic(label: Label) -> bool:
    """True for half of an atomic operation."""
    return isinstance(label, Access) and label.rmw


def action_of(label: Label) -> Action | None:
    """The action of an event on an mbarrier object; None for other events."""
    return label.action if isinstance(label, Mbarrier | Signal) else None
