"""Rows of the table: asking for the launch of another cluster to be cancelled, and reading the response.

In: a Call. Out: an instruction with a write of the response and a complete-tx in each CTA that receives it; queries are
arithmetic. Settled here: what a response is. It is a number: 0 says that the request failed, n + 1 that the cluster
whose first CTA has the x-coordinate n was cancelled. Whether a request succeeds is the execution's choice; the k-th
request in the text of the test then gets n = k.
"""

from __future__ import annotations

from memmodel.base.labels import Access, Family, Issue, Side
from memmodel.isa.call import Call, describe
from memmodel.isa.copying import signal
from memmodel.isa.place import cluster_ranks, in_cta, mbarrier, memory_base
from memmodel.isa.row import Need, Row, Slot
from memmodel.litmus.constants import instructions
from memmodel.program.expressions import Apply, Const, Expr
from memmodel.program.ops import Assign, IssueAsync, Op, Part, Respond, SignalPart, UndefinedIf
from memmodel.program.regions import Chunk, Object
from memmodel.ptx.operands import Vector
from memmodel.ptx.vocabulary import DataType, Proxy, Space, Window

FIRST_CTAID = "clusterlaunchcontrol.query_cancel.get_first_ctaid"
RESPONSE_BYTES = 16
U32 = DataType("u", 32)

_PAGE = "Parallel Synchronization and Communication Instructions: "


def try_cancel(call: Call) -> tuple[Op, ...]:
    """clusterlaunchcontrol.try_cancel.async: the response is written later, through the async proxy."""
    address = memory_base(call, call.operands[0], Space.SHARED)[0]
    barrier = mbarrier(call, call.operands[1], Window.SHARED_CTA)
    label = Access(Side.WRITE, proxy=Proxy.ASYNC, family=Family.TRY_CANCEL, asynchronous=True)
    size = Const(RESPONSE_BYTES)
    receivers = _receivers(call, address, barrier)
    regions = tuple(Chunk(there, window, size, RESPONSE_BYTES) for there, _, window in receivers)
    parts: list[Part] = [Respond(label, regions, _number(call) + 1)]
    for _, bar, _ in receivers:
        parts.append(SignalPart(signal(Family.TRY_CANCEL), bar, size, of=(0,)))
    return (IssueAsync(Issue(Family.TRY_CANCEL), tuple(parts)),)


def _receivers(call: Call, address: Expr, barrier: Object) -> list[tuple[Expr, Object, Window]]:
    """The own CTA, or with .multicast::cluster::all every CTA of the cluster."""
    if not call.word("multicast"):
        return [(address, barrier, Window.SHARED_CTA)]
    there = Window.SHARED_CLUSTER
    return [
        (in_cta(call, address, rank), Object(in_cta(call, barrier.address, rank), there), there)
        for rank in cluster_ranks(call)
    ]


def _number(call: Call) -> int:
    """A number for this request that no other of the test has: successful responses differ."""
    requests = [
        item
        for thread in call.context.test.threads
        for item in instructions(thread)
        if item.mnemonic.startswith("clusterlaunchcontrol.try_cancel")
    ]
    return next(k for k, item in enumerate(requests) if item is call.instruction)


def is_canceled(call: Call) -> tuple[Op, ...]:
    """query_cancel.is_canceled: did the request succeed?"""
    value = Apply("ne", (call.value(call.operands[1]), Const(0)), DataType("b", 64))
    return (Assign(call.register(call.operands[0]), value),)


def first_ctaid(call: Call) -> tuple[Op, ...]:
    """query_cancel.get_first_ctaid: the first CTA of the cancelled cluster; coordinates but x are 0."""
    response = call.value(call.operands[1])
    number = Apply("sub", (response, Const(1)), U32)
    refused = UndefinedIf(
        "get_first_ctaid is for a response that says canceled", Apply("eq", (response, Const(0)), U32)
    )
    if call.head != FIRST_CTAID:
        return (refused, Assign(call.register(call.operands[0]), number if call.head.endswith("::x") else Const(0)))
    target = call.operands[0]
    if not isinstance(target, Vector) or len(target.items) != 4:
        call.fail(f"{call.head}.v4 writes a vector of 4 registers, and this is {describe(target)}", target)
    names = [call.destination(item, sink=True) for item in target.items]
    assigned = (Assign(name, number if k == 0 else Const(0)) for k, name in enumerate(names) if name is not None)
    return (refused, *assigned)


ROWS = (
    Row(
        ("clusterlaunchcontrol.try_cancel.async",),
        (
            Slot("space", ("shared::cta",), "state space"),
            Slot("completion", ("mbarrier::complete_tx::bytes",), "completion mechanism", Need.ALWAYS),
            Slot("multicast", ("multicast::cluster::all",), "qualifier"),
            Slot("type", ("b128",), "type", Need.ALWAYS),
        ),
        ("[addr]", "[mbar]"),
        try_cancel,
        "an issue; outside of program order a weak write of the response (async proxy) and a complete-tx of 16 bytes "
        "that releases at .cluster scope, in every CTA of the cluster with .multicast::cluster::all",
        _PAGE + "clusterlaunchcontrol.try_cancel",
        since=100,
        word_families={"multicast::cluster::all": frozenset({100, 103, 110, 120})},
    ),
    Row(
        ("clusterlaunchcontrol.query_cancel.is_canceled",),
        (
            Slot("target", ("pred",), "type of the result", Need.ALWAYS),
            Slot("source", ("b128",), "type of the response", Need.ALWAYS),
        ),
        ("pred", "response"),
        is_canceled,
        "none",
        _PAGE + "clusterlaunchcontrol.query_cancel",
        since=100,
    ),
    Row(
        (FIRST_CTAID,),
        (
            Slot("vec", ("v4",), "vector size", Need.ALWAYS),
            Slot("target", ("b32",), "type of the result", Need.ALWAYS),
            Slot("source", ("b128",), "type of the response", Need.ALWAYS),
        ),
        ("{x, y, z, _}", "response"),
        first_ctaid,
        "none",
        _PAGE + "clusterlaunchcontrol.query_cancel",
        since=100,
    ),
    Row(
        tuple(f"{FIRST_CTAID}::{axis}" for axis in "xyz"),
        (
            Slot("target", ("b32",), "type of the result", Need.ALWAYS),
            Slot("source", ("b128",), "type of the response", Need.ALWAYS),
        ),
        ("d", "response"),
        first_ctaid,
        "none",
        _PAGE + "clusterlaunchcontrol.query_cancel",
        since=100,
    ),
)
