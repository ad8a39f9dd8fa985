"""What an event is, as far as its instruction says: one class for each kind of event.

In: nothing. Out: the `Label` types. The instruction table makes them, the base sets of cat are predicates on them, and
both engines carry them along unread. What an execution adds (locations, values, order) is not here.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.base.words import WordList
from memmodel.ptx.vocabulary import Proxy, Scope, Sem


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
    """A read or write of memory.

    `sem`: WEAK, RELAXED, ACQUIRE (reads) or RELEASE (writes); weak accesses have no scope. `rmw`: half of an atomic
    read-modify-write. `asynchronous`: made outside program order. `spelt`: "volatile", "mmio" or "multimem" if it is.
    `group`: N of .cta_group::N. `form`: shape and kind of a tcgen05 operation.
    """

    side: Side
    sem: Sem = Sem.WEAK
    scope: Scope | None = None
    proxy: Proxy = Proxy.GENERIC
    family: Family = Family.PLAIN
    rmw: bool = False
    asynchronous: bool = False
    spelt: str | None = None
    role: Role | None = None
    group: int | None = None
    form: str | None = None

    @property
    def replicated(self) -> bool:
        """True if it goes through a multimem address, to all memory that this points to."""
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
    """Where a fence of the fabric proxy leads: from one proxy to another, `to::from` as it is written."""

    OUT = "generic::fabric"
    IN = "fabric::generic"
    WITHIN = "fabric::fabric"


@dataclass(frozen=True, slots=True)
class ProxyFence:
    """A proxy fence between the generic proxy and `proxy` (None: fence.proxy.alias).

    `half`: RELEASE or ACQUIRE for one half of a uni-directional fence, which alone has a scope; fence.proxy.alias has
    halves too. `restricted`: it has
    .sync_restrict. `covers` None: all memory. `across`: of the fabric proxy, where it leads.
    """

    proxy: Proxy | None
    half: Sem | None = None
    scope: Scope | None = None
    covers: Covers | None = None
    restricted: bool = False
    across: Across | None = None


class Half(WordList):
    """Which half of an execution barrier."""

    ARRIVE = "arrive"
    WAIT = "wait"


class Domain(WordList):
    """Which threads take part in an execution barrier.

    LAUNCH: a CTA and the grid that depends on its own; GRID: a grid that is complete and the one that depends on it.
    PAIR: the two CTAs that manage tensor memory together. It orders nothing, and a wait may end before it is complete.
    COLUMNS: an alloc of tensor memory by itself; it waits where its columns are not there, and orders nothing.
    """

    CTA = "cta"
    WARP = "warp"
    CLUSTER = "cluster"
    LAUNCH = "launch"
    GRID = "grid"
    PAIR = "pair"
    COLUMNS = "columns"


BETWEEN_GRIDS = (Domain.LAUNCH, Domain.GRID)
OF_TENSOR_MEMORY = (Domain.PAIR, Domain.COLUMNS)
"""Where threads wait for tensor memory, and nothing is ordered."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """Half of an execution barrier. `sem`, `scope`: of barrier.cluster, and between grids.

    `reduces`: it belongs to a .red. `ends`: it is an arrival that the end of a thread makes. `without`: a wait of
    bar.warp.sync or elect.sync that a lane of the mask has exited without coming to.
    """

    half: Half
    domain: Domain
    sem: Sem | None = None
    scope: Scope | None = None
    reduces: bool = False
    ends: bool = False
    without: bool = False


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

    `reports`: an init that gives the object .layout::v1, which has room for reports.
    """

    action: Action
    sem: Sem | None = None
    scope: Scope | None = None
    unscoped: bool = False
    reports: bool = False


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
    """tcgen05.alloc, dealloc or relinquish_alloc_permit. `columns`: how many, if that is known before the test runs.

    `exclusive`: of an allocation beside which there is no other.
    """

    what: Allocation
    group: int | None
    columns: int | None = None
    exclusive: bool = False


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


def is_with_outside(label: Label) -> bool:
    """True if an event may take part in an order with the host or with another device: its scope is the system."""
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


def is_atomic(label: Label) -> bool:
    """True for half of an atomic operation."""
    return isinstance(label, Access) and label.rmw


def action_of(label: Label) -> Action | None:
    """The action of an event on an mbarrier object; None for other events."""
    return label.action if isinstance(label, Mbarrier | Signal) else None
