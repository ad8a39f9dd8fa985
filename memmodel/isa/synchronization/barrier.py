"""Rows of the table: barriers of a CTA, a warp, a cluster.

In: a Call. Out: the arrive half, the wait half, and for .red the reduction. Settled here: which resource, how many
threads. The litmus reader gives every CTA barrier three operands: its number, the resource (only the column layout has
one) and the thread count, `_` for what is left out.

A litmus thread is a whole warp unless the test puts several into one, so a PTX thread count, which is a multiple of the
warp size, is counted in warps here. In the column layout a count is a number of litmus threads, as in published files.
In a compiled module it is what PTX says: a number of threads, and a warp arrives as all of its lanes.
"""

from __future__ import annotations

from functools import partial

from memmodel.base.labels import Barrier, Domain, Half
from memmodel.isa.call import Call
from memmodel.isa.place import FULL_MASK, in_range, lane, member_mask, own_lane_in, warp_members
from memmodel.isa.refused import NO_OVERLAP, SPELLING, refusing
from memmodel.isa.rows.cases import Rule
from memmodel.isa.rows.row import Effect, OperandRange, Row, Together
from memmodel.isa.rows.since import FIRST, Since
from memmodel.isa.rows.slots import Slot, in_blocks, needed, optional
from memmodel.litmus.constants import instructions
from memmodel.program.expressions import Apply, Const, Expr
from memmodel.program.ops import AtBarrier, Combine, Op, UndefinedIf, Unmodelled
from memmodel.ptx.operands import Blank, Imm, Operand
from memmodel.ptx.vocabulary import U32, Scope, Sem

WARP_SIZE = 32
RESOURCES = 16
_NUMBERS = OperandRange("a", 0, RESOURCES - 1, "the number of a barrier")

HOWEVER_MANY = Const(-1)
"""A barrier of the column layout belongs to the threads that name it: without a count, those that arrive meet."""

_PAGE = "Parallel Synchronization and Communication Instructions: "


def _named(call: Call, first: int, halves: tuple[Half, ...], *, reduces: bool = False) -> tuple[Op, ...]:
    """The halves of a CTA barrier whose number stands at operand `first`."""
    number, resource, count = call.operands[first], call.optional(first + 1), call.optional(first + 2)
    key = (call.integer(number), call.integer(resource) if resource else Const(0))
    litmus = not call.in_columns and not call.in_module
    if litmus and isinstance(number, Imm) and not 0 <= number.value < RESOURCES:
        call.fail(f"a CTA has barriers 0 to {RESOURCES - 1}, not {number.value}", number)
    if not call.in_columns and resource is not None:
        call.fail("a barrier of PTX is a number alone", resource, "the column layout has resources; number them here")
    threads = _threads(call, count) if count else HOWEVER_MANY if resource else None
    if threads is None and halves == (Half.ARRIVE,) and not call.in_columns:
        call.fail(f"{call.head} needs a thread count", hint=f"write {call.head} a, b; with b threads taking part")
    arrived = tuple(AtBarrier(Barrier(half, Domain.CTA, reduces=reduces), key, threads) for half in halves)
    return (*_valid(call, number, count, halves), *_whole_warps(call, threads), *arrived)


def _whole_warps(call: Call, threads: Expr | None) -> tuple[Op, ...]:
    """Lanes that arrive one by one are not modelled: counts are of whole warps, and how lanes add up is open."""
    if call.in_columns or call.in_module or threads is None or lane(call) is None:
        return ()
    return (Unmodelled("a barrier with a thread count, at which the lanes of one warp arrive one by one", Const(1)),)


def _valid(call: Call, number: Operand, count: Operand | None, halves: tuple[Half, ...]) -> tuple[Op, ...]:
    """Steps that find what registers must not hold: a number that no barrier has, a count of no whole warps."""
    named_by_number = call.in_columns and isinstance(number, Imm)
    steps = [] if named_by_number else list(in_range(call, number, _NUMBERS))
    if call.in_columns or count is None or (isinstance(count, Imm) and not call.in_module):
        return tuple(steps)
    threads = call.integer(count)
    if not isinstance(count, Imm) or count.value % WARP_SIZE:
        part = Apply("rem", (threads, Const(WARP_SIZE)), U32)
        steps.append(UndefinedIf(f"the thread count of a barrier is a multiple of {WARP_SIZE}", part))
    if halves == (Half.ARRIVE,) and (not isinstance(count, Imm) or count.value == 0):
        none = Apply("eq", (threads, Const(0)), U32)
        steps.append(UndefinedIf("bar.arrive has a thread count that is not zero", none))
    return tuple(steps)


def _threads(call: Call, count: Operand) -> Expr:
    threads = call.integer(count)
    if call.in_columns:
        return threads
    if call.in_module:  # as many threads as there are whole warps
        whole = ~(WARP_SIZE - 1) & FULL_MASK
        return (
            Const(threads.value & whole) if isinstance(threads, Const) else Apply("and", (threads, Const(whole)), U32)
        )
    if not isinstance(count, Imm):
        return Apply("div", (threads, Const(WARP_SIZE)), U32)
    if count.value < 0 or count.value % WARP_SIZE or (count.value == 0 and call.head.endswith("arrive")):
        hint = f"{WARP_SIZE} for each warp that takes part; a litmus thread is a warp of its own"
        call.fail(f"the thread count of {call.head} is a multiple of {WARP_SIZE}, not {count.value}", count, hint)
    return Const(count.value // WARP_SIZE)


def sync(call: Call) -> tuple[Op, ...]:
    """bar.sync: arrive, then wait for the generation to be complete."""
    return _named(call, 0, (Half.ARRIVE, Half.WAIT))


def arrive(call: Call) -> tuple[Op, ...]:
    """bar.arrive: arrive, and go on."""
    return _named(call, 0, (Half.ARRIVE,))


def reduce(call: Call) -> tuple[Op, ...]:
    """bar.red: as bar.sync, then the combined predicate of all threads."""
    steps = _named(call, 1, (Half.ARRIVE, Half.WAIT), reduces=True)
    value = call.predicate(call.operands[-1])
    return (*steps, Combine(call.register(call.operands[0]), call.word("op") or "", value))


def warp(call: Call) -> tuple[Op, ...]:
    """bar.warp.sync: equal masks meet. The lanes that are in a mask and have not exited are all that meet (D20).

    In a litmus test a mask of all threads of the warp that the test has is a full one; another one says how many lanes
    take part, of which none may exit.
    """
    operand = call.operands[0]
    written, mask = call.integer(operand), member_mask(call, operand)
    count: Expr | None = None
    members = () if call.in_module or lane(call) is None else warp_members(call)
    everyone = (1 << len(members)) - 1
    if not call.in_module and isinstance(written, Const) and isinstance(mask, Const):
        if not -1 <= written.value <= FULL_MASK or not mask.value:
            call.fail(
                "a member mask is a 32-bit number with a bit for each lane that takes part", operand, "write 0xffffffff"
            )
        count = None if mask.value in (FULL_MASK, everyone) else Const(mask.value.bit_count())
    elif not call.in_module and lane(call) is not None:
        # A full mask means the threads of the warp that the test has, which a count of 0 stands for.
        full = Apply("or", tuple(Apply("eq", (mask, Const(all)), U32) for all in (FULL_MASK, everyone)), U32)
        count = Apply("selp", (Const(0), Apply("popc", (mask,), U32), full), U32)
    halves = (Barrier(half, Domain.WARP) for half in (Half.ARRIVE, Half.WAIT))
    return (
        *own_lane_in(call, mask),
        *_exits_beside(call, members, count),
        *(AtBarrier(half, (mask,), count) for half in halves),
    )


def _exits_beside(call: Call, members: tuple[str, ...], count: Expr | None) -> tuple[Op, ...]:
    """The step at which a barrier of some lanes of a warp, one of which may exit, is not modelled."""
    if count is None or not members:
        return ()
    threads = [thread for thread in call.context.test.threads if thread.name in members]
    if not any(instruction.parts[0] in ("exit", "ret") for thread in threads for instruction in instructions(thread)):
        return ()
    any_lane = Apply("ne", (count, Const(0)), U32)
    return (Unmodelled("bar.warp.sync of some lanes of a warp, of which a lane exits", any_lane),)


def cluster_arrive(call: Call) -> tuple[Op, ...]:
    """barrier.cluster.arrive: releases unless .relaxed."""
    return (_cluster(Half.ARRIVE, Sem.RELAXED if call.word("sem") == "relaxed" else Sem.RELEASE),)


def cluster_wait(call: Call) -> tuple[Op, ...]:
    """barrier.cluster.wait: acquires."""
    return (_cluster(Half.WAIT, Sem.ACQUIRE),)


def _cluster(half: Half, sem: Sem) -> AtBarrier:
    return AtBarrier(Barrier(half, Domain.CLUSTER, sem, Scope.CLUSTER), (Const(0),), None)


def _in_litmus_order(operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """`a{, b}` with the operand for a resource, and `_` for a count that is left out."""
    return (operands[0], Blank(), *(operands[1:] or (Blank(),))) if 1 <= len(operands) <= 2 else operands


def _reduction_in_litmus_order(operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """`d, a{, b}, c` likewise."""
    if not 3 <= len(operands) <= 4:
        return operands
    return (operands[0], *_in_litmus_order(operands[1:-1]), operands[-1])


_row = partial(Row, effect=Effect.SYNCHRONIZES, since=Since(90, "7.8"))


def _cta_rows(word: str, slots: tuple[Slot, ...], since: Since, aligned: bool | None) -> tuple[Row, ...]:
    def row(action: str, before: tuple[Slot, ...] = (), after: tuple[Slot, ...] = (), **more: object) -> Row:
        return _row(
            (f"{word}.{action}", f"{word}.cta.{action}"),
            (*before, *slots, *after),
            source=_PAGE + "bar, barrier",
            since=Since(since.sm, "2.0") if word == "bar" and action != "sync" else since,
            later={f"head={word}.cta.{action}": Since(since.sm, "7.8")},
            together=Together.WARP,
            aligned=aligned,
            **more,  # type: ignore[arg-type]
        )

    operands = ("a", "resource", "b")
    plain = partial(row, operands=operands, module_operands=_in_litmus_order, results=0)
    return (
        plain("sync", lower=sync, events="an arrive and a wait", written="a{, b}"),
        plain("arrive", lower=arrive, events="an arrive", written="a, b"),
        row(
            "red",
            (needed("op", "popc", "and", "or", what="reduction"),),
            (in_blocks("type", "u32", "pred"),),
            operands=("d", *operands, "c"),
            lower=reduce,
            events="an arrive and a wait; d combines c over the threads of the generation",
            rules=(
                Rule("{head}.popc gives a .u32", "write .u32", "op=popc type=pred"),
                Rule("{head}.{op} gives a .pred", "write .pred", "op=and|or type=u32"),
            ),
            written="d, a{, b}, {!}c",
            module_operands=_reduction_in_litmus_order,
            sizes={**dict.fromkeys(operands, 32), "c": 1},
        ),
    )


_CLUSTER_ONLY = {
    word: ("a cluster barrier has .cluster scope by itself", "drop it") for word in ("cta", "cluster", "gpu", "sys")
}

ROWS = (
    *_cta_rows("bar", (), FIRST, aligned=True),
    *_cta_rows("barrier", (optional("aligned"),), Since(30, "6.0"), aligned=None),
    _row(
        heads=("bar.warp.sync",),
        slots=(refusing(SPELLING, NO_OVERLAP),),
        operands=("membermask",),
        lower=warp,
        events="an arrive and a wait that order memory among the lanes of the mask",
        source=_PAGE + "bar.warp.sync",
        since=Since(30, "6.0"),
        results=0,
    ),
    _row(
        heads=("barrier.cluster.arrive",),
        slots=(
            optional(
                "sem",
                "release",
                "relaxed",
                refused={"acquire": ("an arrive cannot acquire", "barrier.cluster.wait acquires"), **_CLUSTER_ONLY},
            ),
            optional("aligned"),
        ),
        operands=(),
        lower=cluster_arrive,
        events="an arrive, which releases unless .relaxed",
        source=_PAGE + "barrier.cluster",
        later={"sem": Since(90, "8.0")},
        together=Together.WARP,
    ),
    _row(
        heads=("barrier.cluster.wait",),
        slots=(
            optional(
                "sem",
                "acquire",
                refused={
                    "release": ("a wait cannot release", "barrier.cluster.arrive releases"),
                    "relaxed": ("barrier.cluster.wait always acquires", "drop .relaxed"),
                    **_CLUSTER_ONLY,
                },
            ),
            optional("aligned"),
        ),
        operands=(),
        lower=cluster_wait,
        events="a wait for every thread of the cluster, which acquires",
        later={"sem": Since(90, "8.0")},
        source=_PAGE + "barrier.cluster",
        together=Together.WARP,
    ),
)
