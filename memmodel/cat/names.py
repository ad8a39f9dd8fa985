"""The base vocabulary of every model: each set and relation that an engine provides, with what it means.

In: nothing. Out: BASE_NAMES. The resolver, `memmodel names` and the documentation read this one table, so adding a
name is adding a line here (and events or pairs for it in `memmodel.events`).
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.cat.syntax import Kind


@dataclass(frozen=True, slots=True)
class BaseName:
    """A name that no model has to define. `source` is the title of the PTX section it renders, or `herd`."""

    name: str
    kind: Kind
    meaning: str
    source: str


_SETS: tuple[tuple[str, str, str], ...] = (
    ("_", "all events", "herd"),
    ("emptyset", "no event; another spelling of `0`", "herd"),
    ("M", "memory events: reads and writes", "Memory Operations"),
    ("R", "reads; an atomic operation has one", "Operation Types"),
    ("W", "writes, initial writes included", "Operation Types"),
    ("F", "fences of any kind, memory fences and proxy fences", "Operation Types"),
    ("B", "halves of execution barriers", "Memory synchronization"),
    ("IW", "initial writes, one for each location", "Initialization"),
    ("WEAK", "weak reads and writes", "Operation Types"),
    ("RLX", "strong accesses that are neither acquire nor release", "Operation Types"),
    ("ACQ", "acquire reads and acquire fences", "Operation Types"),
    ("REL", "release writes and release fences", "Operation Types"),
    ("ACQ_REL", "fences that both acquire and release; fence.sc is one", "Operation Types"),
    ("SC", "fence.sc", "Operation Types"),
    ("CTA", "events that specify scope .cta", "Scope"),
    ("CLUSTER", "events that specify scope .cluster", "Scope"),
    ("GPU", "events that specify scope .gpu", "Scope"),
    ("SYS", "events that specify scope .sys", "Scope"),
    ("GEN", "events of the generic proxy: plain accesses, memory fences, initial writes", "Proxies"),
    ("SUR", "surface accesses and fence.proxy.surface", "Proxies"),
    ("TEX", "texture accesses and fence.proxy.texture", "Proxies"),
    ("CON", "constant accesses and fence.proxy.constant", "Proxies"),
    ("ALIAS", "fence.proxy.alias", "Proxies"),
    ("ATOM", "both events of an atom", "Operation Types"),
    ("RED", "both events of a red, whose read no one sees", "Reductions do not form Acquire Patterns"),
    ("RMW", "both events of any atomic read-modify-write", "Operation Types"),
    ("VOLATILE", "accesses spelt .volatile", "Volatile Operation"),
    ("MMIO", "accesses spelt .mmio", "MMIO Operation"),
    ("ARRIVE", "arrive halves of barriers", "Memory synchronization"),
    ("WAIT", "wait halves of barriers", "Memory synchronization"),
    ("ASYNC", "events outside program order: what asynchronous instructions do", "Asynchronous Operations"),
    ("ISSUE", "asynchronous instructions as their thread executes them", "Asynchronous Operations"),
    ("SIGNAL", "complete-tx and arrive-on operations that the hardware makes", "mbarrier"),
    ("ASY", "async-proxy accesses and fence.proxy.async", "Async proxy"),
    ("TMP", "tensormap-proxy accesses and fence.proxy.tensormap", "Proxies"),
    ("UNI", "uni-directional proxy fences; REL or ACQ says which half", "membar, fence"),
    ("RESTRICTED", "fences with .sync_restrict, and fence.mbarrier_init", "membar, fence"),
    ("BULK", "accesses of bulk copies and bulk reductions", "cp.async.bulk"),
    ("CPASYNC", "accesses of cp.async", "cp.async"),
    ("STASYNC", "accesses of st.async and red.async", "st.async"),
    ("WGMMA", "accesses of wgmma.mma_async", "wgmma"),
    ("WGFENCE", "wgmma.fence", "wgmma.fence"),
    ("CLC", "accesses of clusterlaunchcontrol.try_cancel", "clusterlaunchcontrol.try_cancel"),
    ("SRC", "reads of the source of a bulk copy, and of the tensor map", "cp.async.bulk.wait_group"),
    ("DESC", "reads of a tensor map by a tensor copy", "cp.async.bulk.tensor"),
    ("WAITGROUP", "events that wait for groups of asynchronous operations", "Async groups"),
    ("MBAR", "operations on mbarrier objects, signals included", "mbarrier"),
    ("MBINIT", "mbarrier.init", "mbarrier.init"),
    ("MBINVAL", "mbarrier.inval", "mbarrier.inval"),
    ("MBARRIVE", "mbarrier.arrive and arrive_drop, with or without expect_tx", "mbarrier.arrive"),
    ("MBTEST", "mbarrier.test_wait and try_wait", "mbarrier.test_wait, mbarrier.try_wait"),
    ("MBDONE", "those of them that returned true", "mbarrier.test_wait, mbarrier.try_wait"),
    ("MBBAD", "operations that break an mbarrier object's counts, or come before it is initialised", "mbarrier"),
    ("SMEM", "accesses to shared memory", "State Spaces"),
    ("TMEM", "accesses to tensor memory", "Tensor Memory"),
    ("TCGEN", "tcgen05 operations of any kind", "TensorCore 5th Generation"),
    ("MMA", "accesses and issue of tcgen05.mma", "tcgen05.mma"),
    ("CP", "accesses and issue of tcgen05.cp", "tcgen05.cp"),
    ("CP4", "those of tcgen05.cp.4x256b", "tcgen05.cp"),
    ("SHIFT", "accesses and issue of tcgen05.shift", "tcgen05.shift"),
    ("TLD", "accesses and issue of tcgen05.ld", "tcgen05.ld"),
    ("TST", "accesses and issue of tcgen05.st", "tcgen05.st"),
    ("COMMIT", "tcgen05.commit and its signals", "tcgen05.commit"),
    ("TWAIT", "tcgen05.wait::ld and wait::st", "tcgen05.wait"),
    ("BEFORE", "tcgen05.fence::before_thread_sync", "tcgen05.fence"),
    ("AFTER", "tcgen05.fence::after_thread_sync", "tcgen05.fence"),
    ("TALLOC", "tcgen05.alloc", "tcgen05.alloc"),
    ("TDEALLOC", "tcgen05.dealloc", "tcgen05.dealloc"),
)

_RELATIONS: tuple[tuple[str, str, str], ...] = (
    ("id", "each event with itself", "herd"),
    ("int", "events of one thread, an event with itself included", "herd"),
    ("ext", "events of different threads", "herd"),
    ("po", "program order: earlier to later event of one thread", "Program Order"),
    ("loc", "memory events on one location", "Overlap"),
    ("vloc", "memory events through one virtual address; a surface or texture name of x counts as x", "Aliases"),
    ("rf", "reads-from: each read has exactly one write, of the same location and value", "Communication Order"),
    ("co", "an acyclic relation on the writes to one location, the initial write first", "Coherence Order"),
    ("rmw", "the read of an atomic operation to its write, if it writes", "Operation Types"),
    ("addr", "address dependency: a read to a later event whose address uses its value", "No Thin Air"),
    ("data", "data dependency: a read to a later event that uses its value as data", "No Thin Air"),
    ("ctrl", "control dependency: a read to every later event that its value may skip", "No Thin Air"),
    ("sr", "both events specify a scope, and each scope includes the thread of the other", "Morally strong operations"),
    ("scta", "events of threads in one CTA", "Scope"),
    ("scluster", "events of threads in one cluster", "Scope"),
    ("sgpu", "events of threads on one GPU", "Scope"),
    ("syncbar", "arrive half to wait half of one barrier generation, of any threads", "Memory synchronization"),
    (
        "sync_fence",
        "Fence-SC order: a strict partial order on fence.sc that relates every pair whose scopes include each other",
        "Fence-SC Order",
    ),
    ("iss", "an asynchronous instruction to its asynchronous events", "Asynchronous Operations"),
    ("compl", "an asynchronous event to the signal or wait that tells of its end", "Asynchronous Operations"),
    ("mbar", "the total order of the updates of one mbarrier object", "mbarrier"),
    ("mbarobs", "an update of an mbarrier object to a test that saw its phase end", "mbarrier"),
    ("mbarfr", "a test of an mbarrier object to an update made after it", "mbarrier"),
    ("samebar", "operations on one mbarrier object, and accesses to its memory with them", "mbarrier"),
    ("covers", "a fence to the memory events in its state space or range; without one, all", "membar, fence"),
    ("spcta", "performed in one CTA; accesses to shared memory in the CTA that owns it", "Async proxy"),
    ("sri", "as sr, with every signal taken to be at the thread that issued it", "Scope"),
    ("scg", "tcgen05 operations of one cta_group", "tcgen05"),
    ("smma", "tcgen05.mma with the same accumulator, shape and kind", "Pipelined tcgen05 Instructions"),
)

BASE_NAMES: tuple[BaseName, ...] = tuple(
    BaseName(name, kind, meaning, source)
    for kind, rows in ((Kind.SET, _SETS), (Kind.RELATION, _RELATIONS))
    for name, meaning, source in rows
)
"""Every base name, sets first."""
