"""Rows of the table: addresses in other CTAs, and electing a thread. None makes an event.

In: a Call. Out: Assigns. Settled here: which thread is elected. A litmus thread stands for its warp unless the test
puts several into one: the first of them is elected.
"""

from __future__ import annotations

from memmodel.isa.call import Call
from memmodel.isa.place import in_cta, mapped, rank_of
from memmodel.isa.row import Row, Slot, type_slot
from memmodel.litmus.syntax import Operand, Pair, Sym
from memmodel.program.expressions import AddressOf, Const, Expr
from memmodel.program.ops import Assign, Op
from memmodel.ptx import DataType

U64 = DataType("u", 64)

_MOVE = "Data Movement and Conversion Instructions: "


def mapa(call: Call) -> tuple[Op, ...]:
    """mapa: the same address in another CTA of the cluster."""
    rank, address = call.constant(call.operands[2]), _mappable(call, call.operands[1])
    if isinstance(address, AddressOf) and address.cta not in (None, rank):
        wanted = call.integer(call.operands[2]) if rank is None else Const(rank)
        return (Assign(call.register(call.operands[0]), mapped(call, address, wanted)),)
    if rank is None:
        return (Assign(call.register(call.operands[0]), mapped(call, address, call.integer(call.operands[2]))),)
    if isinstance(address, AddressOf) and call.context.space.cta_of_rank(rank, call.place) is None:
        call.fail(f"no thread of the test is in CTA {rank} of this cluster", call.operands[2])
    return (Assign(call.register(call.operands[0]), in_cta(call, address, rank)),)


def _mappable(call: Call, operand: Operand) -> Expr:
    """An address to be mapped: of a name, it need not be declared in the executing CTA, only the offset counts."""
    if isinstance(operand, Sym) and operand.cta is None:
        root = call.root(call.variable(operand))
        if root.cta not in (None, call.place.cta) and call.context.space.cta_of_rank(root.cta, call.place):
            return AddressOf(operand.name, operand.offset, root.cta)
    return call.value(operand)


def getctarank(call: Call) -> tuple[Op, ...]:
    """getctarank: the rank of the CTA that owns a shared-memory address."""
    return (Assign(call.register(call.operands[0]), rank_of(call, call.value(call.operands[1]))),)


def elect(call: Call) -> tuple[Op, ...]:
    """elect.sync: true in the first thread of the warp that the test has."""
    target = call.operands[0]
    if not isinstance(target, Pair):
        call.fail(f"{call.head} writes d|p: the elected lane and a predicate", target, "write _|%p")
    warp = (call.place.cta_id, call.place.warp)
    members = [t.name for t in call.context.test.threads if (t.place.cta_id, t.place.warp) == warp]
    chosen = call.place.warp is None or members[0] == call.context.thread.name
    lane, predicate = (call.destination(item, sink=True) for item in (target.first, target.second))
    call.integer(call.operands[1])
    steps = [Assign(lane, Const(0))] if lane is not None else []
    return (*steps, *([Assign(predicate, Const(int(chosen)))] if predicate is not None else []))


ROWS = (
    Row(
        ("mapa",),
        (Slot("space", ("shared::cluster",), "state space"), type_slot(("u32", "u64"))),
        ("d", "a", "b"),
        mapa,
        "none; the address of a in the CTA of rank b",
        _MOVE + "mapa",
        since=90,
    ),
    Row(
        ("getctarank",),
        (Slot("space", ("shared::cluster",), "state space"), type_slot(("u32", "u64"))),
        ("d", "a"),
        getctarank,
        "none; the rank of the CTA that owns a",
        _MOVE + "getctarank",
        since=90,
    ),
    Row(
        ("elect.sync",),
        (),
        ("d|p", "membermask"),
        elect,
        "none; p is true in the first thread of the warp that the test has",
        "Parallel Synchronization and Communication Instructions: elect.sync",
        since=90,
    ),
)
