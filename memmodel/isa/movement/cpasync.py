"""Rows of the table: cp.async, and the mbarrier operation that tracks it.

In: a Call. Out: a read of global and a write of shared memory, weak and in the generic proxy. Settled here: which of
the operands after the size is a source size and which a predicate that ignores the source: bytes that are not copied
are zeros. An mbarrier tracks all earlier cp.async of the thread; without .noinc it expects one arrival more first.
"""

from __future__ import annotations

from functools import partial

from memmodel.base.labels import Access, Action, Family, Issue, Mbarrier, Role, Side, Signal
from memmodel.isa.caching import CACHE_HINT
from memmodel.isa.call import Call
from memmodel.isa.place import address_in
from memmodel.isa.rows.row import Effect, Row
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import needed, optional
from memmodel.isa.synchronization.mbarrier import B64, OWN, own
from memmodel.program.expressions import Apply, Const, Expr
from memmodel.program.ops import Gather, IssueAsync, OnObject, Op, Scatter, SignalPart, Track, UndefinedIf
from memmodel.program.regions import Chunk
from memmodel.ptx.operands import Imm, Negated, Reg
from memmodel.ptx.vocabulary import U32, Scope, Sem, Space, Window

TRACKS = frozenset({Track.CP_ASYNC})
SIZES = (4, 8, 16)

_PAGE = "Data Movement and Conversion Instructions: "


def copy(call: Call) -> tuple[Op, ...]:
    """cp.async: 4, 8 or 16 bytes."""
    target = address_in(call, call.operands[0], Space.SHARED)
    source = address_in(call, call.operands[1], Space.GLOBAL)
    size = call.constant(call.operands[2])
    if size not in SIZES or (call.word("cop") == "cg" and size != SIZES[-1]):
        sizes = "16" if call.word("cop") == "cg" else "4, 8 or 16"
        call.fail(f"{call.head}.{call.word('cop')} copies {sizes} bytes", call.operands[2])
    whole, kept = Const(size), _kept(call, size)
    read = Access(Side.READ, family=Family.CP_ASYNC, asynchronous=True, role=Role.SOURCE)
    write = Access(Side.WRITE, family=Family.CP_ASYNC, asynchronous=True)
    issue = IssueAsync(
        Issue(Family.CP_ASYNC),
        (
            Gather(read, Chunk(source, Window.GLOBAL, whole, size, kept=kept), TRACKS),
            Scatter(write, Chunk(target, Window.SHARED_CTA, whole, size), 0, TRACKS),
        ),
    )
    if kept is None or isinstance(kept, Const):
        return (issue,)
    return (UndefinedIf(f"src-size of cp.async is above cp-size {size}", Apply("gt", (kept, whole), U32)), issue)


def _kept(call: Call, size: int) -> Expr | None:
    """How many bytes of the source are copied; None: all. An integer operand is src-size, a predicate ignore-src."""
    operand = call.operand("src-size")
    if operand is None:
        return None
    if isinstance(operand, Negated) or (isinstance(operand, Reg) and call.is_predicate(operand)):
        return Apply("selp", (Const(0), Const(size), call.predicate(operand)), U32)
    if isinstance(operand, Imm) and not 0 <= operand.value <= size:
        call.fail(f"src-size is from 0 to {size}, not {operand.value}", operand)
    return call.integer(operand)


def arrive(call: Call) -> tuple[Op, ...]:
    """cp.async.mbarrier.arrive: an arrive-on when all earlier cp.async of the thread are done."""
    region = own(call, call.operands[0])
    label = Signal(Action.ARRIVE, Scope.CTA, Family.CP_ASYNC)
    issue = IssueAsync(Issue(Family.CP_ASYNC), (SignalPart(label, region, tracks=Track.CP_ASYNC),))
    if call.word("noinc"):
        return (issue,)
    return (OnObject(Mbarrier(Action.PENDING, Sem.RELAXED, Scope.CTA), region, Const(1)), issue)


_row = partial(Row, since=Since(80, "7.0"), effect=Effect.ASYNCHRONOUS)

ROWS = (
    _row(
        ("cp.async",),
        (
            needed("cop", "ca", "cg"),
            needed("dst", "shared", "shared::cta"),
            needed("src", "global"),
            CACHE_HINT,
            optional("prefetch", "L2::64B", "L2::128B", "L2::256B"),
        ),
        ("[dst]", "[src]", "cp-size", "src-size?", "cache_policy"),
        copy,
        "an issue; outside of program order weak reads of global and weak writes of shared memory (generic proxy)",
        _PAGE + "cp.async",
        later=dict.fromkeys(("prefetch", "hint"), Since(80, "7.4")),
        written="[dst], [src], cp-size{, src-size or ignore-src}{, cache_policy}",
    ),
    _row(
        ("cp.async.mbarrier.arrive",),
        (optional("noinc"), OWN, B64),
        ("[addr]",),
        arrive,
        "an issue; when all earlier cp.async of the thread are done an arrive-on, which releases at .cta scope; "
        "without .noinc an operation on the object before it, which expects one arrival more",
        "Parallel Synchronization and Communication Instructions: cp.async.mbarrier.arrive",
        later={"space=shared::cta": Since(80, "7.8")},
    ),
)
