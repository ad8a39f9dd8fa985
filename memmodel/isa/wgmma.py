"""Rows of the table: wgmma, the asynchronous matrix instructions of sm_90a.

In: a Call. Out: for wgmma.fence an event, for wgmma.mma_async an Issue and the assignment of its result registers: each
receives D + A * B, or A * B if scale-d is false. A matrix in shared memory is its first element, read through the async
proxy; a matrix A in registers is its first register. Settled here: how many operands each form has.
"""

from __future__ import annotations

from memmodel.isa.call import Call, describe
from memmodel.isa.groups import commit as commit_group
from memmodel.isa.groups import wait as wait_group
from memmodel.isa.ops import Apply, Assign, Event, Expr, Fence, Get, Issue, Op, Part
from memmodel.isa.row import Need, Row, Rule, Slot, flag
from memmodel.isa.tensor_memory import BOTH_ALIGNED, SYNC, descriptor
from memmodel.litmus.syntax import Group, Imm, Operand
from memmodel.ptx import UNTYPED, DataType, Proxy

HOPPER = frozenset({90})
U32 = DataType("u", 32)

_PAGE = "Asynchronous Warpgroup Level Matrix Instructions: "


def fence(call: Call) -> tuple[Op, ...]:
    """wgmma.fence: an event of its own, no memory fence."""
    return (Fence(Event(frozenset({"WGFENCE"}))),)


def mma(call: Call) -> tuple[Op, ...]:
    """wgmma.mma_async: D is in registers, A in shared memory or registers, B in shared memory."""
    half = call.word("atype") in ("f16", "bf16")
    integer = call.word("atype") in ("s8", "u8", "b1")
    result, left, right, scale_d, *rest = call.operands
    if not isinstance(result, Group) or result.bracketed:
        call.fail(f"{call.head} puts its result into a vector of registers, and this is {describe(result)}", result)
    in_registers = isinstance(left, Group)
    wanted = 0 if integer else 2 if not half else 3 if in_registers else 4
    if len(rest) != wanted + ("sp-meta" in call.head):
        call.fail(f"this {call.head} takes {wanted} numbers behind scale-d, and {len(rest)} are given", hint=_FORMS)
    for operand in rest:
        if not isinstance(operand, Imm) or operand.value not in (-1, 0, 1):
            call.fail("imm-scale is 1 or -1, imm-trans 0 or 1", operand)
    event = call.event("R", "M", "WEAK", "ASYNC", "WGMMA", "SMEM", proxy=Proxy.ASYNC)
    parts: list[Part] = []
    first: Expr
    if isinstance(left, Group):
        first = call.value(left.items[0])
    else:
        parts.append(Part("read", descriptor(call, left), event, "$a", track=frozenset({"wgmma"})))
        first = Get("$a")
    parts.append(Part("read", descriptor(call, right), event, "$b", track=frozenset({"wgmma"})))
    product = Apply("mul", (first, Get("$b")), UNTYPED)
    # The registers keep their old values until all parts have read: A may be one of them.
    steps: list[Op] = [Issue(Event(frozenset({"ISSUE"})), tuple(parts)), Assign("$p", product)]
    for item in result.items:
        name = call.register(item)
        steps.append(Assign(name, Apply("cvt", (_sum(call, name, scale_d),), U32)))
    return tuple(steps)


def _sum(call: Call, name: str, scale_d: Operand) -> Expr:
    """D + A * B, or A * B, as scale-d says: a predicate, or the number 0 or 1."""
    total = Apply("add", (Get(name), Get("$p")), UNTYPED)
    if isinstance(scale_d, Imm):
        return total if scale_d.value else Get("$p")
    return Apply("selp", (total, Get("$p"), call.predicate(scale_d)), UNTYPED)


_FORMS = (
    "f16 and bf16: scale-a, scale-b, trans-a, trans-b (no trans-a if A is in registers); tf32 and fp8: scale-a, "
    "scale-b; integers: none"
)
_K = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32, "b1": 256}
_SHAPES = tuple(f"m64n{n}k{k}" for k in (16, 8, 32, 256) for n in range(8, 257, 8))
_ATYPE = tuple(_K)

ROWS = (
    Row(
        ("wgmma.fence",),
        (SYNC, flag("aligned")),
        (),
        fence,
        "an event: the wgmma.mma_async behind it come after what is in front of it",
        _PAGE + "wgmma.fence",
        rules=BOTH_ALIGNED,
        since=90,
        families=HOPPER,
    ),
    Row(
        ("wgmma.mma_async",),
        (
            SYNC,
            flag("aligned"),
            Slot("shape", _SHAPES, "shape", Need.ALWAYS),
            Slot("dtype", ("f16", "f32", "s32"), "type of D", Need.ALWAYS),
            Slot("atype", _ATYPE, "type of A", Need.ALWAYS),
            Slot("btype", _ATYPE, "type of B", Need.ALWAYS),
            flag("satfinite"),
            Slot("op", ("and",), "operation"),
            flag("popc"),
        ),
        ("d", "a", "b-desc", "scale-d", *(f"imm{k}?" for k in range(4))),
        mma,
        "an issue; outside of program order a weak read of each operand in shared memory (async proxy)",
        _PAGE + "wgmma.mma_async",
        rules=(
            *BOTH_ALIGNED,
            *(
                Rule(
                    "{head} has no shape .{shape} for .{atype}",
                    f"its k is {k}: write .m64nNk{k}",
                    {"atype": (kind,), "shape": tuple(s for s in _SHAPES if not s.endswith(f"k{k}"))},
                    at="shape",
                )
                for kind, k in _K.items()
            ),
        ),
        since=90,
        families=HOPPER,
        written="d, a-desc or a, b-desc, scale-d{, imm-scale-a, imm-scale-b{, imm-trans-a}{, imm-trans-b}}",
    ),
    Row(
        ("wgmma.commit_group",),
        (SYNC, flag("aligned")),
        (),
        commit_group,
        "none; the wgmma.mma_async issued since the last one become a group",
        _PAGE + "wgmma.commit_group",
        rules=BOTH_ALIGNED,
        since=90,
        families=HOPPER,
    ),
    Row(
        ("wgmma.wait_group",),
        (SYNC, flag("aligned")),
        ("N",),
        wait_group,
        "an event that follows the end of every wgmma.mma_async in all but the last N groups",
        _PAGE + "wgmma.wait_group",
        rules=BOTH_ALIGNED,
        since=90,
        families=HOPPER,
    ),
)
