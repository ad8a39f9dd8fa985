"""Rows of the table: cp.async, and the mbarrier operation that tracks it.

In: a Call. Out: an Issue with reads of global and writes of shared memory, weak and in the generic proxy. Settled here:
what is copied when src-size or ignore-src leave zeros. An mbarrier tracks all earlier cp.async of the thread; without
.noinc it expects one arrival more first.
"""

from __future__ import annotations

from memmodel.isa.caching import CACHE_HINT
from memmodel.isa.call import Call
from memmodel.isa.mbarrier import B64, OWN
from memmodel.isa.memory import element_bytes
from memmodel.isa.ops import Apply, Const, Event, Expr, Get, Issue, Mbarrier, Op, Part, Signal
from memmodel.isa.place import Base, mbarrier, memory_base, shifted
from memmodel.isa.row import Need, Row, Slot, flag
from memmodel.litmus.syntax import Negated, Operand, Reg
from memmodel.ptx import UNTYPED, Scope, Space

TRACK = frozenset({"cp.async"})
SIZES = (4, 8, 16)

_PAGE = "Data Movement and Conversion Instructions: "


def copy(call: Call) -> tuple[Op, ...]:
    """cp.async: a read and a write for each element of 4, 8 or 16 bytes."""
    target = memory_base(call, call.operands[0], Space.SHARED)
    source = memory_base(call, call.operands[1], Space.GLOBAL)
    size = call.constant(call.operands[2])
    if size not in SIZES or (call.word("cop") == "cg" and size != SIZES[-1]):
        sizes = "16" if call.word("cop") == "cg" else "4, 8 or 16"
        call.fail(f"{call.head}.{call.word('cop')} copies {sizes} bytes", call.operands[2])
    ignore, kept = _rest(call, size)
    unit = min(_unit(call, target, call.operands[0], size), _unit(call, source, call.operands[1], size))
    parts: list[Part | Signal] = []
    for at in range(0, size, unit):
        value: Expr = Const(0)
        if at < kept:
            read = call.event("R", "M", "WEAK", "ASYNC", "CPASYNC", "SRC")
            parts.append(Part("read", shifted(source[0], at), read, f"$s{at}", track=TRACK))
            value = Get(f"$s{at}")
            if ignore is not None:
                value = Apply("selp", (Const(0), value, ignore), UNTYPED)
        write = call.event("W", "M", "WEAK", "ASYNC", "CPASYNC", "SMEM")
        parts.append(Part("write", shifted(target[0], at), write, value=value, track=TRACK))
    return (Issue(Event(frozenset({"ISSUE"})), tuple(parts)),)


def _rest(call: Call, size: int) -> tuple[Expr | None, int]:
    """The predicate that ignores the source, and how many bytes of it are copied."""
    rest: list[Operand] = list(call.operands[3:])
    hinted = call.word("hint") is not None
    if len(rest) > 1 + hinted or (hinted and not rest):
        call.fail(f"{call.head} takes [dst], [src], cp-size{{, src-size or ignore-src}}{{, cache_policy}}")
    if hinted:
        rest.pop()
    if not rest:
        return None, size
    given = call.constant(rest[0])
    if given is not None:
        if not 0 <= given <= size:
            call.fail(f"src-size is from 0 to {size}, not {given}", rest[0])
        return None, given
    if isinstance(rest[0], Reg | Negated):
        return call.predicate(rest[0]), size
    return call.fail("this is neither a source size nor a predicate", rest[0])


def _unit(call: Call, base: Base, operand: Operand, size: int) -> int:
    """Bytes of an element on one side; the copy has to lie within the variable, aligned to its size."""
    _, variable, offset, _ = base
    if variable is None:
        return size
    root = call.root(variable)
    unit = element_bytes(root)
    if offset % size or not 0 <= offset <= unit * len(root.init) - size:
        room = unit * len(root.init)
        call.fail(f"{call.head} copies {size} aligned bytes, and '{root.name}' has {room} from byte 0", operand)
    if unit > size:
        call.fail(f"{call.head} copies {size} bytes of an element of {unit}", operand)
    return unit


def arrive(call: Call) -> tuple[Op, ...]:
    """cp.async.mbarrier.arrive: an arrive-on when all earlier cp.async of the thread are done."""
    address = mbarrier(call, call.operands[0], own=True)
    event = call.event("MBAR", "SIGNAL", "ASYNC", "REL", scope=Scope.CTA)
    issue = Issue(Event(frozenset({"ISSUE"})), (Signal(address, event, tracks="cp.async"),))
    if call.word("noinc"):
        return (issue,)
    more = call.event("MBAR", "RLX", scope=Scope.CTA)
    return (Mbarrier("pending", address, more, Const(1)), issue)


ROWS = (
    Row(
        ("cp.async",),
        (
            Slot("cop", ("ca", "cg"), "cache operator", Need.ALWAYS),
            Slot("dst", ("shared", "shared::cta"), "destination", Need.ALWAYS),
            Slot("src", ("global",), "source", Need.ALWAYS),
            CACHE_HINT,
            Slot("prefetch", ("L2::64B", "L2::128B", "L2::256B"), "prefetch size"),
        ),
        ("[dst]", "[src]", "cp-size", "src-size?", "cache_policy?"),
        copy,
        "an issue; outside of program order weak reads of global and weak writes of shared memory (generic proxy)",
        _PAGE + "cp.async",
        since=80,
        written="[dst], [src], cp-size{, src-size or ignore-src}{, cache_policy}",
    ),
    Row(
        ("cp.async.mbarrier.arrive",),
        (flag("noinc"), OWN, B64),
        ("[addr]",),
        arrive,
        "an issue; when all earlier cp.async of the thread are done an arrive-on, which releases at .cta scope; "
        "without .noinc an operation on the object before it, which expects one arrival more",
        "Parallel Synchronization and Communication Instructions: cp.async.mbarrier.arrive",
        since=80,
    ),
)
