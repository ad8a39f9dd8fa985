"""Rows of the table: asking for the launch of another cluster to be cancelled, and reading the response.

In: a Call. Out: an instruction with a write of the response and a complete-tx in each CTA that receives it; queries are
arithmetic. Settled here: the encoding of a response. It is a number: 0 if the request failed, n + 1 if the cluster
whose first CTA has the x-coordinate n was cancelled. Whether a request succeeds is the execution's choice; the k-th
request in the text of the test then gets n = k. In a compiled module the launch decides the response."""

from __future__ import annotations

from functools import partial

from memmodel.base.labels import Access, Family, Issue, Side
from memmodel.isa.call import Call
from memmodel.isa.copying import signal
from memmodel.isa.place import address_in, cluster_ranks, in_cta, in_shared, mbarrier
from memmodel.isa.rows.row import Effect, Row
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import needed, optional
from memmodel.litmus.constants import all_instructions
from memmodel.program.expressions import Apply, Const, Expr
from memmodel.program.ops import IssueAsync, Op, Part, Respond, SignalPart, UndefinedIf
from memmodel.program.regions import Chunk, Object
from memmodel.program.warp_ops import Forget, SeeRefusal, WarpOp
from memmodel.ptx.operands import Vector, describe
from memmodel.ptx.targets import FAMILIES
from memmodel.ptx.vocabulary import U32, DataType, Proxy, Space, Window

FIRST_CTAID = "clusterlaunchcontrol.query_cancel.get_first_ctaid"
RESPONSE_BYTES = 16
REFUSED = "get_first_ctaid is for a response that says canceled"
U128 = DataType("b", 128)

_PAGE = "Parallel Synchronization and Communication Instructions: "


def try_cancel(call: Call) -> tuple[Op, ...]:
    """clusterlaunchcontrol.try_cancel.async: the response is written later, through the async proxy.

    In every receiver a complete-tx follows the write there.
    """
    address = address_in(call, call.operands[0], Space.SHARED)
    barrier = mbarrier(call, call.operands[1], Window.SHARED_CTA)
    label = Access(Side.WRITE, proxy=Proxy.ASYNC, family=Family.TRY_CANCEL, asynchronous=True)
    size, success = Const(RESPONSE_BYTES), 1 if call.in_module else _number(call) + 1
    receivers = _receivers(call, address, barrier)
    parts: list[Part] = []
    for target, _, window in receivers:
        region = Chunk(target, window, size, RESPONSE_BYTES)
        parts.append(Respond(label, region, success, 0 if parts else None))
    for number, (_, receiver, _) in enumerate(receivers):
        parts.append(SignalPart(signal(Family.TRY_CANCEL), receiver, size, of=(number,)))
    places = (address, barrier.address) if call.word("multicast") else ()
    checks = tuple(step for place in places for step in in_shared(call, place, own=True))
    return (*checks, IssueAsync(Issue(Family.TRY_CANCEL), tuple(parts)))


def _receivers(call: Call, address: Expr, barrier: Object) -> list[tuple[Expr, Object, Window]]:
    """The own CTA, or with .multicast::cluster::all every CTA of the cluster."""
    if not call.word("multicast"):
        return [(address, barrier, Window.SHARED_CTA)]
    window = Window.SHARED_CLUSTER
    return [
        (in_cta(call, address, rank), Object(in_cta(call, barrier.address, rank), window), window)
        for rank in cluster_ranks(call)
    ]


def _number(call: Call) -> int:
    """A number for this request that no other of the test has: successful responses differ."""
    requests = [
        instruction
        for instruction in all_instructions(call.context.test)
        if instruction.mnemonic.startswith("clusterlaunchcontrol.try_cancel")
    ]
    return next(k for k, instruction in enumerate(requests) if instruction is call.instruction)


def is_canceled(call: Call) -> tuple[Op, ...]:
    """query_cancel.is_canceled: 1 if the request succeeded, else 0."""
    value = Apply("ne", (call.value(call.operands[1]), Const(0)), DataType("b", 64))
    return call.assign(call.operands[0], value)


def first_ctaid(call: Call) -> tuple[Op, ...]:
    """query_cancel.get_first_ctaid: the first CTA of the cancelled cluster; coordinates but x are 0."""
    response = call.value(call.operands[1])
    number = Apply("sub", (response, Const(1)), U32)
    refused = UndefinedIf(REFUSED, Apply("eq", (response, Const(0)), U32))
    return (refused, *_coordinates(call, (number, *(Const(0),) * 3)))


def _coordinates(call: Call, coordinates: tuple[Expr, ...]) -> tuple[Op, ...]:
    """The coordinate that the head names, or all of them, in the registers of the first operand."""
    target = call.operands[0]
    if call.head != FIRST_CTAID:
        return call.assign(target, coordinates["xyz".index(call.head[-1])])
    if not isinstance(target, Vector) or len(target.items) != 4:
        call.fail(f"{call.head}.v4 writes a vector of 4 registers, and this is {describe(target)}", target)
    return call.assign(Vector(target.items[: len(coordinates)], target.span), *coordinates)


# ---- compiled modules: a response has the coordinates of the first CTA, 32 bits each, after the 32 bits of a 1 ------


def is_canceled_in_module(call: Call) -> tuple[Op | WarpOp, ...]:
    """query_cancel.is_canceled; a thread that sees a refusal must not ask again."""
    canceled = _canceled(call)
    refusal = SeeRefusal(Apply("eq", (canceled, Const(0)), U32))
    return (refusal, *call.assign(call.operands[0], Apply("ne", (canceled, Const(0)), U32)))


def first_ctaid_in_module(call: Call) -> tuple[Op | WarpOp, ...]:
    """query_cancel.get_first_ctaid; "the contents of the 4th element are unspecified"."""
    refused = UndefinedIf(REFUSED, Apply("eq", (_canceled(call), Const(0)), U32))
    response, target = call.value(call.operands[1]), call.operands[0]
    moved = (Apply("shr", (response, Const(32 * axis)), U128) for axis in (1, 2, 3))
    assigns = _coordinates(call, tuple(Apply("and", (word, Const(0xFFFFFFFF)), U128) for word in moved))
    last = call.destination(target.items[3], sink=True) if isinstance(target, Vector) else None
    return (refused, *assigns, *((Forget((last,)),) if last is not None else ()))


def _canceled(call: Call) -> Expr:
    """1 if the response says that a cluster was cancelled, else 0."""
    return Apply("and", (call.value(call.operands[1]), Const(1)), U128)


# ---- rows ------------------------------------------------------------------------------------------------------------


_row = partial(Row, since=Since(100, "8.6"), effect=Effect.COMPUTES)

ROWS = (
    _row(
        ("clusterlaunchcontrol.try_cancel.async",),
        (
            optional("space", "shared::cta"),
            needed("completion", "mbarrier::complete_tx::bytes"),
            optional("multicast", "multicast::cluster::all"),
            needed("type", "b128"),
        ),
        ("[addr]", "[mbar]"),
        try_cancel,
        "an issue; outside of program order a weak write of the response (async proxy) and a complete-tx of 16 bytes "
        "that releases at .cluster scope, in every CTA of the cluster with .multicast::cluster::all",
        _PAGE + "clusterlaunchcontrol.try_cancel",
        later={"multicast": Since(version="8.6", families=FAMILIES)},
        effect=Effect.ASYNCHRONOUS,
    ),
    _row(
        ("clusterlaunchcontrol.query_cancel.is_canceled",),
        (needed("target", "pred"), needed("source", "b128", what="type of the response")),
        ("pred", "response"),
        is_canceled,
        "none",
        _PAGE + "clusterlaunchcontrol.query_cancel",
        lower_module=is_canceled_in_module,
    ),
    _row(
        (FIRST_CTAID,),
        (
            needed("vec", "v4", what="vector size"),
            needed("target", "b32"),
            needed("source", "b128", what="type of the response"),
        ),
        ("{x, y, z, _}", "response"),
        first_ctaid,
        "none",
        _PAGE + "clusterlaunchcontrol.query_cancel",
        lower_module=first_ctaid_in_module,
    ),
    _row(
        tuple(f"{FIRST_CTAID}::{axis}" for axis in "xyz"),
        (needed("target", "b32"), needed("source", "b128", what="type of the response")),
        ("d", "response"),
        first_ctaid,
        "none",
        _PAGE + "clusterlaunchcontrol.query_cancel",
        lower_module=first_ctaid_in_module,
    ),
)
