"""Rows of the table: proxy fences of the async, tensormap and fabric proxies, and fence.mbarrier_init.

In: a Call. Out: one event. Settled here: what each fence is about (`covers`). A uni-directional proxy fence orders
accesses through one proxy before those through another, its release half on one side and its acquire half on the other.
"""

from __future__ import annotations

from functools import partial

from memmodel.base.labels import Across, Covers, Fence, ProxyFence
from memmodel.isa.call import Call
from memmodel.isa.place import address_in, check_global
from memmodel.isa.rows.cases import Rule
from memmodel.isa.rows.row import Effect, Row
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import needed, optional, scope_slot
from memmodel.isa.synchronization.fence import RESTRICTED, RESTRICTIONS, SEMANTICS
from memmodel.memory.tensormap import TENSORMAP_BYTES
from memmodel.program.ops import Emit, Op
from memmodel.ptx.operands import Imm, Operand
from memmodel.ptx.vocabulary import Proxy, Scope, Sem, Space

SPACES = {"global": Covers.GLOBAL, "shared::cta": Covers.OWN_SHARED, "shared::cluster": Covers.SHARED}

READS = "sync_restrict::shared::cluster::read"
"""The restriction of a release half to the reads that its own thread has made: it is not cumulative."""

HALVES = {**RESTRICTED, READS: Covers.OWN_READS}

_PAGE = "Parallel Synchronization and Communication Instructions: membar / fence"


def proxy_async(call: Call) -> tuple[Op, ...]:
    """fence.proxy.async: both ways between the generic and the async proxy, in one state space or all."""
    space = call.word("space")
    return (Emit(ProxyFence(Proxy.ASYNC, covers=SPACES[space] if space else None)),)


def tensormap(call: Call) -> tuple[Op, ...]:
    """fence.proxy.tensormap::generic: the acquire half is about the tensor map at its operand."""
    half = SEMANTICS[call.word("sem") or ""]
    if half is Sem.ACQUIRE:
        size_128(call, call.operands[1])
        label = ProxyFence(Proxy.TENSORMAP, half, call.scope, Covers.RANGE)
        where = address_in(call, call.operands[0], Space.GLOBAL)
        checks = check_global(call, call.operands[0], f"the map of {call.head}.acquire")
        return (*checks, Emit(label, where, TENSORMAP_BYTES))
    return (Emit(ProxyFence(Proxy.TENSORMAP, half, call.scope)),)


def size_128(call: Call, operand: Operand) -> None:
    """A tensor map is 128 bytes, which is the only size that the instructions about it take."""
    if not isinstance(operand, Imm) or operand.value != TENSORMAP_BYTES:
        call.fail(f"{call.head} takes the size {TENSORMAP_BYTES} only", operand, f"write {TENSORMAP_BYTES}")


def restricted(call: Call) -> tuple[Op, ...]:
    """fence.proxy.async::generic: one half, about shared memory."""
    covers = HALVES[call.word("restrict") or ""]
    half = SEMANTICS[call.word("sem") or ""]
    return (Emit(ProxyFence(Proxy.ASYNC, half, call.scope, covers, restricted=True)),)


def fabric(call: Call) -> tuple[Op, ...]:
    """fence.proxy.to::from.alias: one half, to or from the fabric proxy, whatever addresses and endpoints are used."""
    across = Across(call.head.removeprefix("fence.proxy."))
    return (Emit(ProxyFence(Proxy.FABRIC, SEMANTICS[call.word("sem") or ""], Scope.SYS, across=across)),)


def mbarrier_init(call: Call) -> tuple[Op, ...]:
    """fence.mbarrier_init: releases the thread's own earlier mbarrier.init, and nothing else."""
    return (Emit(Fence(Sem.RELEASE, Scope.CLUSTER, Covers.INIT)),)


_HALF = needed("sem", "acquire", "release")

_row = partial(Row, since=Since(90, "8.0"), effect=Effect.SYNCHRONIZES)

ROWS = (
    _row(
        ("fence.proxy.async",),
        (
            optional(
                "space",
                *SPACES,
                refused={"shared": ("{head} has no plain .shared", "write .shared::cta or .shared::cluster")},
            ),
        ),
        (),
        proxy_async,
        "a proxy fence between the generic and the async proxy, for one state space or for all; it takes no scope",
        _PAGE,
    ),
    _row(("membar.proxy.async",), (), (), proxy_async, "the same as fence.proxy.async without a state space", _PAGE),
    _row(
        ("fence.proxy.tensormap::generic",),
        (_HALF, scope_slot(needed)),
        ("[addr]", "size"),
        tensormap,
        "one half of a proxy fence from the generic to the tensormap proxy; .acquire is about 128 bytes at its address",
        _PAGE,
        when=dict.fromkeys(("[addr]", "size"), "sem=acquire"),
        since=Since(90, "8.3"),
    ),
    _row(
        ("fence.proxy.async::generic",),
        (_HALF, needed("restrict", *HALVES), scope_slot(needed)),
        (),
        restricted,
        "one half of a proxy fence from the generic to the async proxy, about shared memory as with fence; "
        f".release.{READS} is about the reads of shared memory that its own thread made before it, at .cluster scope "
        "(ptxas takes .cta, which no page has)",
        _PAGE,
        rules=(
            *RESTRICTIONS[:2],
            RESTRICTIONS[3],
            Rule(
                f".{READS} goes with .release",
                f"write {{head}}.release.{READS}.cluster",
                f"sem=acquire restrict={READS}",
            ),
        ),
        since=Since(90, "8.6"),
        later={f"restrict={READS}": Since(90, "9.4")},
    ),
    _row(
        tuple(f"fence.proxy.{across.value}" for across in Across),
        (needed("alias", "alias"), _HALF, needed("scope", "sys")),
        (),
        fabric,
        "one half of a proxy fence from the fabric proxy to the generic one (generic::fabric), from the generic proxy "
        "to it, or between accesses of the fabric proxy, at .sys scope",
        _PAGE,
        since=Since(100, "9.3"),
    ),
    _row(
        ("fence.mbarrier_init",),
        (needed("sem", "release"), needed("scope", "cluster")),
        (),
        mbarrier_init,
        "a release fence about the mbarrier.init of its own thread before it",
        _PAGE,
    ),
)
