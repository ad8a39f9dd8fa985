"""Rows of the table: addresses in other CTAs, and electing a thread. None makes an event.

In: a Call. Out: Assigns. Settled here: which thread is elected. A litmus thread stands for its warp unless the test
puts several into one; which of them is elected is then open, unless the mask has one alone.
"""

from __future__ import annotations

from memmodel.isa.call import Call
from memmodel.isa.place import FULL_MASK, check_shared, in_cta, lane, mapped, rank_of, warp_members
from memmodel.isa.row import Row, Slot, type_slot
from memmodel.program.expressions import AddressOf, Apply, Const, Expr
from memmodel.program.ops import Assign, Op, UndefinedIf, Unmodelled
from memmodel.ptx.operands import Operand, Pair, Sym
from memmodel.ptx.vocabulary import DataType

U32 = DataType("u", 32)

_MOVE = "Data Movement and Conversion Instructions: "


def mapa(call: Call) -> tuple[Op, ...]:
    """mapa: the same address in another CTA of the cluster."""
    rank, address = call.constant(call.operands[2]), _mappable(call, call.operands[1])
    found = check_shared(call, address)
    if isinstance(address, AddressOf) and address.cta not in (None, rank):
        wanted = call.integer(call.operands[2]) if rank is None else Const(rank)
        return (*found, Assign(call.register(call.operands[0]), mapped(call, address, wanted)))
    if rank is None:
        wanted = call.integer(call.operands[2])
        return (*found, Assign(call.register(call.operands[0]), mapped(call, address, wanted)))
    if isinstance(address, AddressOf) and call.context.space.cta_of_rank(rank, call.place) is None:
        call.fail(f"no thread of the test is in CTA {rank} of this cluster", call.operands[2])
    return (*found, Assign(call.register(call.operands[0]), in_cta(call, address, rank)))


def _mappable(call: Call, operand: Operand) -> Expr:
    """An address to be mapped: of a name, it need not be declared in the executing CTA, only the offset counts."""
    if isinstance(operand, Sym) and operand.cta is None:
        root = call.root(call.variable(operand))
        if root.cta not in (None, call.place.cta) and call.context.space.cta_of_rank(root.cta, call.place):
            return AddressOf(operand.name, operand.offset, root.cta)
    return call.value(operand)


def getctarank(call: Call) -> tuple[Op, ...]:
    """getctarank: the rank of the CTA that owns a shared-memory address."""
    address = call.value(call.operands[1])
    return (*check_shared(call, address), Assign(call.register(call.operands[0]), rank_of(call, address)))


def elect(call: Call) -> tuple[Op, ...]:
    """elect.sync: true in a thread that is a whole warp, or in the only thread of the mask that the test has.

    The page does not say which of several threads is elected.
    """
    target = call.operands[0]
    if not isinstance(target, Pair):
        call.fail(f"{call.head} writes d|p: the elected lane and a predicate", target, "write _|%p")
    mask, own = call.integer(call.operands[1]), lane(call)
    given = call.constant(call.operands[1])
    lanes = _masked(call, given)
    steps: list[Op] = []
    if own is not None:
        outside = Apply("eq", (Apply("and", (mask, Const(1 << own)), U32), Const(0)), U32)
        steps.append(UndefinedIf("a thread executes elect.sync with a mask that does not have its own lane", outside))
    if own is not None and (given is None or len(lanes) > 1):
        steps.append(Unmodelled("elect.sync elects one of several threads of a warp, PTX does not say which", Const(1)))
    elected = lanes[0] if lanes else 0
    chosen = own is None or own == elected
    register, predicate = (call.destination(item, sink=True) for item in (target.first, target.second))
    steps += [Assign(register, Const(elected))] if register is not None else []
    return (*steps, *([Assign(predicate, Const(int(chosen)))] if predicate is not None else []))


def _masked(call: Call, given: int | None) -> list[int]:
    """The lanes in a mask that the test has."""
    bits = FULL_MASK if given is None else given
    return [number for number in range(len(warp_members(call))) if bits >> number & 1]


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
        "none; p is true in a thread that stands for its warp, and in the only thread of the mask that the test has; "
        "which of several threads is elected is open, and the test undecided",
        "Parallel Synchronization and Communication Instructions: elect.sync",
        since=90,
    ),
)
