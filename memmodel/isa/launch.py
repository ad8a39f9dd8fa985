"""Rows of the table: asking for the launch of another cluster to be cancelled, and reading the response.

In: a Call. Out: an Issue with a write of the response and a complete-tx in each CTA that receives it; queries are
arithmetic. Settled here: what a response is. It is a number: 0 would say that the request failed, n + 1 that the
cluster whose first CTA has the x-coordinate n was cancelled. The k-th request in the text of the test succeeds with n
= k.
"""

from __future__ import annotations

from memmodel.isa.call import Call, describe
from memmodel.isa.copying import signal
from memmodel.isa.facts import instructions
from memmodel.isa.memory import cta_places, element_bytes
from memmodel.isa.ops import Apply, Assign, Const, Event, Expr, Issue, Op, Part, Signal
from memmodel.isa.place import in_cta, mbarrier, memory_base
from memmodel.isa.row import Need, Row, Slot
from memmodel.litmus.syntax import Group
from memmodel.ptx import DataType, Proxy, Space

FIRST_CTAID = "clusterlaunchcontrol.query_cancel.get_first_ctaid"
RESPONSE_BYTES = 16
U32 = DataType("u", 32)

_PAGE = "Parallel Synchronization and Communication Instructions: "


def try_cancel(call: Call) -> tuple[Op, ...]:
    """clusterlaunchcontrol.try_cancel.async: the response is written later, through the async proxy."""
    address, variable, offset, _ = memory_base(call, call.operands[0], Space.SHARED)
    if variable is not None:
        root = call.root(variable)
        room = element_bytes(root) * len(root.init)
        if offset % RESPONSE_BYTES or not 0 <= offset <= room - RESPONSE_BYTES:
            hint = f"declare it `.shared .align 16 .b128 {root.name};`"
            call.fail(f"a response is {RESPONSE_BYTES} aligned bytes of shared memory", call.operands[0], hint)
    barrier = mbarrier(call, call.operands[1], own=True)
    event = call.event("W", "M", "WEAK", "ASYNC", "CLC", "SMEM", proxy=Proxy.ASYNC)
    parts: list[Part | Signal] = []
    for there, bar in _receivers(call, address, barrier):
        parts.append(Part("write", there, event, value=Const(_number(call) + 1)))
        parts.append(signal(call, bar, RESPONSE_BYTES, (len(parts) - 1,)))
    return (Issue(Event(frozenset({"ISSUE"})), tuple(parts)),)


def _receivers(call: Call, address: Expr, barrier: Expr) -> list[tuple[Expr, Expr]]:
    """The own CTA, or with .multicast::cluster::all every CTA of the cluster."""
    if not call.word("multicast"):
        return [(address, barrier)]
    ctas = [p.cta for p in cta_places(call.context.test) if p.cluster_id == call.place.cluster_id]
    pairs = [(in_cta(call, address, cta), in_cta(call, barrier, cta)) for cta in ctas]
    return [(there, bar) for there, bar in pairs if there is not None and bar is not None]


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
    number = Apply("sub", (call.value(call.operands[1]), Const(1)), U32)
    if call.head != FIRST_CTAID:
        return (Assign(call.register(call.operands[0]), number if call.head.endswith("::x") else Const(0)),)
    target = call.operands[0]
    if not isinstance(target, Group) or len(target.items) != 4:
        call.fail(f"{call.head}.v4 writes a vector of 4 registers, and this is {describe(target)}", target)
    names = [call.destination(item, sink=True) for item in target.items]
    return tuple(Assign(name, number if k == 0 else Const(0)) for k, name in enumerate(names) if name is not None)


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
