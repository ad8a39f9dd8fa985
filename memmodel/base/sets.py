"""The base sets of cat: each name with its meaning, its source, and the predicate that says which events are in it.

In: nothing. Out: `SETS`. A set is decided by the label of an event, by the place it accesses, or by the execution; the
engines supply the last kind (`DECIDED`), and a test asks both for every name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from memmodel.base.labels import (
    FABRIC,
    OF_TENSOR_MEMORY,
    TCGEN,
    Access,
    Across,
    Action,
    Allocates,
    Allocation,
    Barrier,
    Covers,
    Domain,
    Family,
    Fault,
    Fence,
    GroupWait,
    Half,
    InitialWrite,
    Issue,
    Label,
    Mark,
    Marker,
    Mbarrier,
    ProxyFence,
    Role,
    Signal,
    Undefined,
    family_of,
    is_read,
    is_restricted,
    is_write,
    scope_of,
    sem_of,
)
from memmodel.memory.bytes import Cell
from memmodel.ptx.vocabulary import MbarrierLayout, Proxy, Scope, Sem, Space

Holds = Callable[[Label], bool]


@dataclass(frozen=True, slots=True)
class BaseSet:
    """`holds` None: the execution decides.

    `spaces`: only events that access memory of these state spaces; `objects`: of a declared mbarrier object.
    """

    name: str
    meaning: str
    source: str
    holds: Holds | None
    spaces: tuple[Space, ...] = ()
    objects: bool = False

    @property
    def placed(self) -> bool:
        """True if it depends on the memory that an event accesses."""
        return bool(self.spaces) or self.objects

    def has(self, cell: Cell | None) -> bool:
        """True if that memory is in the set."""
        if not self.placed:
            return True
        if cell is None or (self.spaces and cell.instance.space not in self.spaces):
            return False
        return not self.objects or cell.instance.arrivals is not None


def _is(*kinds: type) -> Holds:
    return lambda label: isinstance(label, kinds)


def _access(**fields: object) -> Holds:
    """Accesses whose fields have these values."""
    return lambda label: isinstance(label, Access) and all(getattr(label, k) == v for k, v in fields.items())


def _family(*families: Family) -> Holds:
    """Accesses of these instructions."""
    return lambda label: isinstance(label, Access) and label.family in families


def _tensor_core(family: Family) -> Holds:
    """Accesses and issues of a tcgen05 instruction."""
    return lambda label: isinstance(label, Access | Issue) and label.family is family


def _through(proxy: Proxy) -> Holds:
    """Accesses through a proxy, and its fences."""
    return lambda label: isinstance(label, Access | ProxyFence) and label.proxy is proxy


def _leads(across: Across) -> Holds:
    """Fences of the fabric proxy that lead there."""
    return lambda label: isinstance(label, ProxyFence) and label.across is across


def _sem(*sems: Sem) -> Holds:
    return lambda label: sem_of(label) in sems


def _scope(scope: Scope) -> Holds:
    return lambda label: scope_of(label) is scope


def _marker(what: Marker) -> Holds:
    return lambda label: isinstance(label, Mark) and label.what is what


def _allocation(what: Allocation) -> Holds:
    return lambda label: isinstance(label, Allocates) and label.what is what


def _action(action: Action) -> Holds:
    return lambda label: isinstance(label, Mbarrier) and label.action is action


def _is_generic(label: Label) -> bool:
    match label:
        case Access(proxy=proxy, family=family):
            return proxy is Proxy.GENERIC and family not in TCGEN
        case Issue(sem=sem):
            return sem is not None
        case _:
            return isinstance(label, InitialWrite | Fence | Barrier | Mbarrier | Signal)


def _is_half(half: Half) -> Holds:
    return lambda label: isinstance(label, Barrier) and label.half is half and label.domain not in OF_TENSOR_MEMORY


def _is_red(label: Label) -> bool:
    if not isinstance(label, Access):
        return False
    return label.family is Family.RED or (label.family is Family.ST_ASYNC and label.rmw)


def _is_tcgen(label: Label) -> bool:
    marked = isinstance(label, Mark) and label.what in (Marker.BEFORE, Marker.AFTER)
    return marked or isinstance(label, Allocates) or family_of(label) in TCGEN


def _waits_for(*families: Family) -> Holds:
    return lambda label: isinstance(label, GroupWait) and label.family in families


def _is_init_fence(label: Label) -> bool:
    return isinstance(label, Fence) and label.covers is Covers.INIT


_GROUPS = (Family.CP_ASYNC, Family.BULK, Family.WGMMA, Family.FABRIC_PUT)

SETS: tuple[BaseSet, ...] = (
    BaseSet("_", "all events", "herd", lambda label: True),
    BaseSet("emptyset", "no event; another spelling of `0`", "herd", lambda label: False),
    BaseSet("M", "memory events: reads and writes", "Memory Operations", _is(Access, InitialWrite)),
    BaseSet("R", "reads; an atomic operation has one", "Operation Types", is_read),
    BaseSet("W", "writes, initial writes included", "Operation Types", is_write),
    BaseSet("F", "fences of any kind, memory fences and proxy fences", "Operation Types", _is(Fence, ProxyFence)),
    BaseSet("B", "halves of execution barriers", "Memory synchronization", _is(Barrier)),
    BaseSet("IW", "initial writes, one for each location that is accessed", "Initialization", _is(InitialWrite)),
    BaseSet(
        "WEAK",
        "weak reads and writes",
        "Operation Types",
        lambda label: isinstance(label, Access | InitialWrite) and sem_of(label) is Sem.WEAK,
    ),
    BaseSet("RLX", "strong accesses that are neither acquire nor release", "Operation Types", _sem(Sem.RELAXED)),
    BaseSet("ACQ", "acquire reads and acquire fences", "Operation Types", _sem(Sem.ACQUIRE)),
    BaseSet("REL", "release writes and release fences", "Operation Types", _sem(Sem.RELEASE)),
    BaseSet(
        "ACQ_REL", "fences that both acquire and release; fence.sc is one", "Operation Types", _sem(Sem.ACQ_REL, Sem.SC)
    ),
    BaseSet("SC", "fence.sc", "Operation Types", _sem(Sem.SC)),
    BaseSet("CTA", "events that specify scope .cta", "Scope", _scope(Scope.CTA)),
    BaseSet("CLUSTER", "events that specify scope .cluster", "Scope", _scope(Scope.CLUSTER)),
    BaseSet("GPU", "events that specify scope .gpu", "Scope", _scope(Scope.GPU)),
    BaseSet("SYS", "events that specify scope .sys", "Scope", _scope(Scope.SYS)),
    BaseSet(
        "GEN", "events of the generic proxy: plain accesses, memory fences, initial writes", "Proxies", _is_generic
    ),
    BaseSet("SUR", "surface accesses and fence.proxy.surface", "Proxies", _through(Proxy.SURFACE)),
    BaseSet("TEX", "texture accesses and fence.proxy.texture", "Proxies", _through(Proxy.TEXTURE)),
    BaseSet("CON", "constant accesses and fence.proxy.constant", "Proxies", _through(Proxy.CONSTANT)),
    BaseSet(
        "NC", "ld.global.nc: the read-only path, which no fence bridges", "ld.global.nc", _through(Proxy.READ_ONLY)
    ),
    BaseSet(
        "ALIAS",
        "fence.proxy.alias, whole or one of its halves",
        "Proxies",
        lambda label: isinstance(label, ProxyFence) and label.proxy is None,
    ),
    BaseSet("ATOM", "both events of an atom", "Operation Types", _family(Family.ATOM)),
    BaseSet("RED", "both events of a red, whose read no one sees", "Reductions do not form Acquire Patterns", _is_red),
    BaseSet("RMW", "both events of any atomic read-modify-write", "Operation Types", _access(rmw=True)),
    BaseSet("VOLATILE", "accesses spelt .volatile", "Volatile Operation", _access(spelt="volatile")),
    BaseSet("MMIO", "accesses spelt .mmio", "MMIO Operation", _access(spelt="mmio")),
    BaseSet("ARRIVE", "arrive halves of barriers", "Memory synchronization", _is_half(Half.ARRIVE)),
    BaseSet("WAIT", "wait halves of barriers", "Memory synchronization", _is_half(Half.WAIT)),
    BaseSet(
        "ENDS",
        "ends of threads, as arrivals for the grid that depends on theirs",
        "griddepcontrol",
        lambda label: isinstance(label, Barrier) and label.ends,
    ),
    BaseSet(
        "LANEGONE",
        "in kernels: waits of bar.warp.sync and elect.sync with a lane in the mask that has exited",
        "bar.warp.sync",
        lambda label: isinstance(label, Barrier) and label.lane_exited,
    ),
    BaseSet(
        "GRIDEND",
        "ends of threads, and griddepcontrol.wait, as halves of the end of a grid",
        "griddepcontrol",
        lambda label: isinstance(label, Barrier) and label.domain is Domain.GRID,
    ),
    BaseSet(
        "ASYNC",
        "events outside program order: what asynchronous instructions do",
        "Asynchronous Operations",
        lambda label: isinstance(label, Signal) or (isinstance(label, Access) and label.asynchronous),
    ),
    BaseSet("ISSUE", "asynchronous instructions as their thread executes them", "Asynchronous Operations", _is(Issue)),
    BaseSet("SIGNAL", "complete-tx and arrive-on operations that the hardware makes", "mbarrier", _is(Signal)),
    BaseSet("ASY", "async-proxy accesses and fence.proxy.async", "Async proxy", _through(Proxy.ASYNC)),
    BaseSet("TMP", "tensormap-proxy accesses and fence.proxy.tensormap", "Proxies", _through(Proxy.TENSORMAP)),
    BaseSet(
        "UNI",
        "uni-directional proxy fences; REL or ACQ says which half",
        "membar, fence",
        lambda label: isinstance(label, ProxyFence) and label.half is not None,
    ),
    BaseSet("FAB", "fabric-proxy accesses and fences of the fabric proxy", "Fabric Proxy", _through(Proxy.FABRIC)),
    BaseSet("FABOUT", "fence.proxy.generic::fabric: from the fabric proxy", "membar, fence", _leads(Across.OUT)),
    BaseSet("FABIN", "fence.proxy.fabric::generic: to the fabric proxy", "membar, fence", _leads(Across.IN)),
    BaseSet("FABWITHIN", "fence.proxy.fabric::fabric", "membar, fence", _leads(Across.WITHIN)),
    BaseSet(
        "CFT",
        "accesses, issues and signals of fabric operations",
        "Fabric operations",
        lambda label: family_of(label) in FABRIC,
    ),
    BaseSet(
        "CFTGET",
        "those of fabric.try_get and fabric.try_pullred",
        "fabric.submit",
        lambda label: family_of(label) is Family.FABRIC_GET,
    ),
    BaseSet("SUBMIT", "fabric.submit of all operations", "fabric.submit", _marker(Marker.SUBMIT)),
    BaseSet("SUBMITGET", "fabric.submit.op_restrict::fetching", "fabric.submit", _marker(Marker.SUBMIT_FETCHING)),
    BaseSet("RESTRICTED", "fences with .sync_restrict, and fence.mbarrier_init", "membar, fence", is_restricted),
    BaseSet("INITFENCE", "fence.mbarrier_init", "membar, fence", _is_init_fence),
    BaseSet(
        "BULK",
        "accesses of bulk copies and bulk reductions",
        "cp.async.bulk",
        _family(Family.BULK, Family.BULK_REDUCTION),
    ),
    BaseSet("CPASYNC", "accesses of cp.async", "cp.async", _family(Family.CP_ASYNC)),
    BaseSet("STASYNC", "accesses of st.async and red.async", "st.async", _family(Family.ST_ASYNC)),
    BaseSet("WGMMA", "accesses of wgmma.mma_async", "wgmma", _family(Family.WGMMA)),
    BaseSet("WGFENCE", "wgmma.fence", "wgmma.fence", _marker(Marker.WGMMA_FENCE)),
    BaseSet(
        "CLC",
        "accesses of clusterlaunchcontrol.try_cancel",
        "clusterlaunchcontrol.try_cancel",
        _family(Family.TRY_CANCEL),
    ),
    BaseSet(
        "CANCEL",
        "clusterlaunchcontrol.try_cancel as its thread executes it",
        "clusterlaunchcontrol.try_cancel",
        lambda label: isinstance(label, Issue) and label.family is Family.TRY_CANCEL,
    ),
    BaseSet(
        "REFUSED",
        "responses which say that no cluster was cancelled",
        "clusterlaunchcontrol.try_cancel",
        None,
    ),
    BaseSet(
        "SRC",
        "reads of the source of a bulk copy, and of the tensor map",
        "cp.async.bulk.wait_group",
        lambda label: isinstance(label, Access) and label.role is not None,
    ),
    BaseSet("DESC", "reads of a tensor map by a tensor copy", "cp.async.bulk.tensor", _access(role=Role.DESCRIPTOR)),
    BaseSet(
        "WAITGROUP", "events that wait for groups of asynchronous operations", "Async groups", _waits_for(*_GROUPS)
    ),
    BaseSet("MBAR", "operations on mbarrier objects, signals included", "mbarrier", _is(Mbarrier, Signal)),
    BaseSet("MBINIT", "mbarrier.init", "mbarrier.init", _action(Action.INIT)),
    BaseSet(
        "MBV1",
        "those that give the object .layout::v1",
        "mbarrier.init",
        lambda label: isinstance(label, Mbarrier) and label.layout is MbarrierLayout.V1,
    ),
    BaseSet("MBINVAL", "mbarrier.inval", "mbarrier.inval", _action(Action.INVAL)),
    BaseSet(
        "MBARRIVE",
        "mbarrier.arrive and arrive_drop, with or without expect_tx",
        "mbarrier.arrive",
        _action(Action.ARRIVE),
    ),
    BaseSet(
        "ARRIVEON",
        "arrive-on operations: of threads, and those that the hardware makes",
        "Arrive-on operation on mbarrier object",
        lambda label: isinstance(label, Mbarrier | Signal) and label.action is Action.ARRIVE,
    ),
    BaseSet(
        "MBTEST",
        "mbarrier.test_wait and try_wait",
        "mbarrier.test_wait, mbarrier.try_wait",
        _action(Action.TEST),
    ),
    BaseSet("MBDONE", "those of them that returned true", "mbarrier.test_wait, mbarrier.try_wait", None),
    BaseSet("MBREPORT", "those that returned true and said that something was reported", "mbarrier.test_wait", None),
    BaseSet("MBCLEAR", "those that returned true and said that nothing was reported", "mbarrier.test_wait", None),
    BaseSet("FAILED", "signals of fabric operations that failed", "Fabric Reporting Mechanism", None),
    BaseSet(
        "MBBAD",
        "operations that break an mbarrier object's counts, or work on memory that holds none",
        "mbarrier",
        None,
    ),
    BaseSet(
        "MBSTALE",
        "tests of a state older than the phase before the current one, that of an earlier life among them",
        "mbarrier.test_wait",
        None,
    ),
    BaseSet("MBLATER", "operations on an mbarrier object in a phase after its first", "Primary phase", None),
    BaseSet(
        "UNSCOPED",
        "mbarrier operations that name no scope",
        "mbarrier",
        lambda label: isinstance(label, Mbarrier) and label.unscoped,
    ),
    BaseSet(
        "MBOBJECT",
        "accesses to the memory of a variable that is declared as mbarrier objects",
        "mbarrier",
        _is(Access, InitialWrite),
        objects=True,
    ),
    BaseSet("SMEM", "accesses to shared memory", "State Spaces", _is(Access, InitialWrite), (Space.SHARED,)),
    BaseSet(
        "GMEM",
        "accesses to global memory",
        "State Spaces",
        _is(Access, InitialWrite),
        (Space.GLOBAL, Space.GENERIC),
    ),
    BaseSet("TMEM", "accesses to tensor memory", "Tensor Memory", _is(Access, InitialWrite), (Space.TENSOR,)),
    BaseSet("TCGEN", "tcgen05 operations of any kind", "TensorCore 5th Generation", _is_tcgen),
    BaseSet("MMA", "accesses and issue of tcgen05.mma", "tcgen05.mma", _tensor_core(Family.MMA)),
    BaseSet("CP", "accesses and issue of tcgen05.cp", "tcgen05.cp", _tensor_core(Family.TCGEN_CP)),
    BaseSet(
        "CP4",
        "those of tcgen05.cp.4x256b",
        "tcgen05.cp",
        lambda label: isinstance(label, Access | Issue) and label.family is Family.TCGEN_CP and label.form == "4x256b",
    ),
    BaseSet("SHIFT", "accesses and issue of tcgen05.shift", "tcgen05.shift", _tensor_core(Family.SHIFT)),
    BaseSet("TLD", "accesses and issue of tcgen05.ld", "tcgen05.ld", _tensor_core(Family.TCGEN_LD)),
    BaseSet("TST", "accesses and issue of tcgen05.st", "tcgen05.st", _tensor_core(Family.TCGEN_ST)),
    BaseSet(
        "COMMIT",
        "tcgen05.commit and its signals",
        "tcgen05.commit",
        lambda label: isinstance(label, Issue | Signal) and label.family is Family.COMMIT,
    ),
    BaseSet("TWAIT", "tcgen05.wait::ld and wait::st", "tcgen05.wait", _waits_for(Family.TCGEN_LD, Family.TCGEN_ST)),
    BaseSet("BEFORE", "tcgen05.fence::before_thread_sync", "tcgen05.fence", _marker(Marker.BEFORE)),
    BaseSet("AFTER", "tcgen05.fence::after_thread_sync", "tcgen05.fence", _marker(Marker.AFTER)),
    BaseSet("TALLOC", "tcgen05.alloc", "tcgen05.alloc", _allocation(Allocation.ALLOC)),
    BaseSet("TDEALLOC", "tcgen05.dealloc", "tcgen05.dealloc", _allocation(Allocation.DEALLOC)),
    BaseSet(
        "TRELINQUISH",
        "tcgen05.relinquish_alloc_permit",
        "tcgen05.relinquish_alloc_permit",
        _allocation(Allocation.RELINQUISH),
    ),
    BaseSet("EXIT", "explicit ends of threads: ret and exit", "exit", _marker(Marker.EXIT)),
    BaseSet("FAULT", "instructions whose address is bad; their thread ends there", "Addresses as Operands", _is(Fault)),
    BaseSet(
        "UNDEFINED", "instructions that are undefined by what their own thread did", "instruction pages", _is(Undefined)
    ),
)


@lru_cache(maxsize=4096)
def names_of(label: Label) -> frozenset[str]:
    """The base sets that events with a label are in, if they are in memory that the set asks for."""
    return frozenset(row.name for row in SETS if row.holds is not None and row.holds(label))


DECIDED = tuple(row.name for row in SETS if row.holds is None)
"""The sets that an execution decides."""

SET_ROWS = {row.name: row for row in SETS}
