"""The steps of synchronizing instructions in compiled modules, each worked out by hand from its page."""

from __future__ import annotations

import pytest

from isa.test_module_lowering import shared, steps_of
from memmodel.base.labels import Action, Barrier, Domain, Half, Mbarrier
from memmodel.program.expressions import AddressOf, Apply, Const, Expr, Get
from memmodel.program.ops import Assign, AtBarrier, Combine, OnObject, Op, UndefinedIf
from memmodel.program.regions import Object
from memmodel.program.warp_ops import ActiveLanes, AmongLanes, Exchange, Forget, Note, SeeRefusal, TakeRegisters, WarpOp
from memmodel.ptx.vocabulary import DataType, Scope, Sem, Window

U32, U64, PREDICATE = DataType("u", 32), DataType("u", 64), DataType("pred", 1)
FULL = Const(0xFFFFFFFF)
LANE = Get("%lanemask_eq")
OBJECT = Object(shared(AddressOf("s")), Window.SHARED_CTA)
TEST = Mbarrier(Action.TEST, Sem.ACQUIRE, Scope.CTA, unscoped=True)
ARRIVE = Mbarrier(Action.ARRIVE, Sem.RELEASE, Scope.CTA, unscoped=True)


def halves(domain: Domain, *, reduces: bool = False) -> list[Barrier]:
    return [Barrier(half, domain, reduces=reduces) for half in (Half.ARRIVE, Half.WAIT)]


def at(domain: Domain, key: tuple[Expr, ...], count: Expr | None, *, reduces: bool = False) -> list[Op | WarpOp]:
    return [AtBarrier(half, key, count) for half in halves(domain, reduces=reduces)]


def outside(head: str, mask: Expr) -> UndefinedIf:
    own = Apply("eq", (Apply("and", (mask, LANE), U32), Const(0)), U32)
    return UndefinedIf(f"a thread executes {head} with a mask that does not have its own lane", own)


def number_of(address: Expr) -> Apply:
    """What a state says of its object: the low 32 bits of the address, but for the three that are 0."""
    return Apply("and", (Apply("shr", (address, Const(3)), U64), Const((1 << 29) - 1)), U64)


PHASE_BITS, QUERIED, OBJECT_AT = 34, 34, 35
STATE = Get("6")
U128 = DataType("b", 128)
CANCELED = Apply("and", (Get("9"), Const(1)), U128)
REFUSED = "get_first_ctaid is for a response that says canceled"


def coordinate(bits: int) -> Apply:
    return Apply("and", (Apply("shr", (Get("9"), Const(bits)), U128), Const(0xFFFFFFFF)), U128)


WORKED_OUT_IN_MODULES: dict[str, list[Op | WarpOp]] = {
    # A count is one of threads; a literal is checked by a step, as what a register holds is.
    "bar.sync 1;": at(Domain.CTA, (Const(1), Const(0)), None),
    "bar.sync 1, 64;": at(Domain.CTA, (Const(1), Const(0)), Const(64)),
    "bar.cta.arrive 16, 48;": [
        UndefinedIf(
            "the number of a barrier is from 0 to 15", Apply("gt", (Const(16), Const(15)), U32)
        ),
        UndefinedIf("the thread count of a barrier is a multiple of 32", Apply("rem", (Const(48), Const(32)), U32)),
        AtBarrier(Barrier(Half.ARRIVE, Domain.CTA), (Const(16), Const(0)), Const(32)),
    ],
    "barrier.red.popc.aligned.u32 %r0, 2, %p0;": [
        *at(Domain.CTA, (Const(2), Const(0)), None, reduces=True),
        Combine("0", "popc", Get("8")),
    ],
    "bar.warp.sync -1;": at(Domain.WARP, (FULL,), None),
    "bar.warp.sync %r0;": [outside("bar.warp.sync", Get("0")), *at(Domain.WARP, (Get("0"),), None)],
    "barrier.cluster.arrive.relaxed.aligned;": [
        AtBarrier(Barrier(Half.ARRIVE, Domain.CLUSTER, Sem.RELAXED, Scope.CLUSTER), (Const(0),), None)
    ],
    # A state: the life and phase in 34 bits, whether .noComplete made it, the object.
    "mbarrier.arrive.noComplete.shared::cta.b64 %d0, [s], 3;": [
        OnObject(ARRIVE, OBJECT, Const(3), register="$phase", no_complete=True),
        Assign(
            "6",
            Apply(
                "or",
                (
                    Apply(
                        "or",
                        (Get("$phase"), Apply("shl", (number_of(OBJECT.address), Const(OBJECT_AT)), U64)),
                        U64,
                    ),
                    Const(1 << QUERIED),
                ),
                U64,
            ),
        ),
    ],
    "mbarrier.try_wait.shared::cta.b64 %p0, [s], %d0;": [
        UndefinedIf(
            "the state was returned by no arrive on this object",
            Apply("ne", (Apply("shr", (STATE, Const(OBJECT_AT)), U64), number_of(OBJECT.address)), U64),
        ),
        OnObject(TEST, OBJECT, register="8", state=Apply("and", (STATE, Const((1 << PHASE_BITS) - 1)), U64)),
    ],
    "mbarrier.test_wait.parity.shared::cta.b64 %p0, [s], 1;": [
        OnObject(TEST, OBJECT, register="8", parity=Const(1)),
    ],
    "mbarrier.try_wait.parity.b64 %p0, [%d0], %r0;": [
        UndefinedIf(
            "a phase parity is from 0 to 1", Apply("gt", (Apply("add", (Get("0"), Const(1)), U32), Const(2)), U32)
        ),
        Note(
            "a phase parity of -1 counts as 1; PTX has only 0 and 1", Apply("eq", (Get("0"), FULL), U32)
        ),
        OnObject(TEST, Object(STATE, Window.SHARED_CTA), register="8", parity=Get("0")),
    ],
    "mbarrier.pending_count.b64 %r0, %d0;": [
        UndefinedIf(
            "mbarrier.pending_count takes the state of an arrive with .noComplete",
            Apply("eq", (Apply("and", (STATE, Const(1 << QUERIED)), U64), Const(0)), U64),
        ),
        Forget(("0",)),
    ],
    "vote.sync.ballot.b32 %r0, %p0, %r1;": [
        outside("vote.sync", Get("1")),
        AmongLanes(Exchange.BALLOT, ("0",), (Get("8"),), Get("1"), type=DataType("b", 32)),
    ],
    "vote.any.pred %p1, %p0;": [AmongLanes(Exchange.ANY, ("9",), (Get("8"),), None, type=PREDICATE)],
    "redux.sync.add.s32 %r0, %r1, 0xffffffff;": [
        AmongLanes(Exchange.REDUCE, ("0",), (Get("1"),), FULL, "add", DataType("s", 32))
    ],
    "redux.sync.min.abs.NaN.f32 %r0, %r1, 0xff;": [
        outside("redux.sync", Const(0xFF)),
        AmongLanes(Exchange.REDUCE, ("0",), (Get("1"),), Const(0xFF), "min.abs.NaN", DataType("f", 32)),
    ],
    "match.any.sync.b64 %r0, %d0, -1;": [
        AmongLanes(Exchange.MATCH_ANY, ("0",), (STATE,), FULL, type=DataType("b", 64))
    ],
    "match.all.sync.b32 %r0|%p0, %r1, -1;": [
        AmongLanes(Exchange.MATCH_ALL, ("0", "8"), (Get("1"),), FULL, type=DataType("b", 32))
    ],
    "shfl.sync.bfly.b32 %r0|%p0, %r1, 16, 31, -1;": [
        AmongLanes(Exchange.BUTTERFLY, ("0", "8"), (Get("1"), Const(16), Const(31)), FULL)
    ],
    "shfl.up.b32 %r0, %r1, %r2, 0;": [AmongLanes(Exchange.UP, ("0",), (Get("1"), Get("2"), Const(0)), None)],
    "elect.sync _|%p0, -1;": [AmongLanes(Exchange.ELECT, (None, "8"), (), FULL)],
    "activemask.b32 %r0;": [ActiveLanes("0")],
    # Bit 0 of a response says that a cluster was cancelled; the coordinates of its first CTA stand from bit 32 on.
    "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p0, %q0;": [
        SeeRefusal(Apply("eq", (CANCELED, Const(0)), U32)),
        Assign("8", Apply("ne", (CANCELED, Const(0)), U32)),
    ],
    "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r0, _, %r2, %r3}, %q0;": [
        UndefinedIf(REFUSED, Apply("eq", (CANCELED, Const(0)), U32)),
        Assign("0", coordinate(32)),
        Assign("2", coordinate(96)),
        Forget(("3",)),
    ],
    "clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r0, %q0;": [
        UndefinedIf(REFUSED, Apply("eq", (CANCELED, Const(0)), U32)),
        Assign("0", coordinate(64)),
    ],
    "griddepcontrol.launch_dependents;": [],
    "griddepcontrol.wait;": [
        Note(
            "what stands before this wait touches nothing that the launch before writes, "
            "and it writes what is read here",
            Const(1),
            "a litmus test of both grids",
        ),
    ],
    "setmaxnreg.inc.sync.aligned.u32 232;": [TakeRegisters(232, increases=True)],
    "nanosleep.u32 20;": [],
}  # fmt: skip


@pytest.mark.parametrize("line", WORKED_OUT_IN_MODULES)
def test_the_steps_are_those_worked_out(line: str) -> None:
    assert list(steps_of(line)) == WORKED_OUT_IN_MODULES[line]
