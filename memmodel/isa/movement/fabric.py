"""Rows of the table: fabric operations, which access the memory of logical endpoints, and what submits and awaits them.

In: a Call. Out: one instruction: accesses to the endpoint through the fabric proxy, relaxed at .sys scope, accesses to
shared memory through the async proxy, and a complete-tx at .cta scope. Settled here: a litmus test names an endpoint by
an alias, `e @ fabric aliases x`, whose offset 0 is x. An operation may fail: then each 16 bytes were moved or not.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product

from memmodel.base.labels import Access, Action, Family, GroupWait, Issue, Mark, Marker, Role, Side, Signal
from memmodel.isa.caching import CACHE_HINT
from memmodel.isa.call import ADDRESS, Call
from memmodel.isa.copying import CHUNK, end
from memmodel.isa.place import FULL_MASK, mbarrier, shifted
from memmodel.isa.refused import refusing
from memmodel.isa.rows.row import Effect, OperandRange, Row, Together
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import Slot, needed, optional
from memmodel.isa.rows.types import types_by_operation
from memmodel.isa.synchronization.atomic import NO_FLOATS
from memmodel.litmus.syntax import Variable
from memmodel.program.expressions import AddressOf, Apply, Const, Expr, Get
from memmodel.program.ops import (
    AsyncRead,
    AsyncWrite,
    CommitGroup,
    Decide,
    Emit,
    Gather,
    IssueAsync,
    Op,
    Part,
    Scatter,
    SignalPart,
    Track,
    UndefinedIf,
    Update,
    WaitForGroups,
)
from memmodel.program.regions import Chunk
from memmodel.ptx.operands import Imm, Operand, Sym, TensorOperand, describe
from memmodel.ptx.vocabulary import U32, Proxy, Scope, Sem, Window

MOST_PIECES = 4
"""The most units of 16 bytes that a litmus test moves at once. If the operation fails, each is moved or not."""

FAILS = "$fails"

_PAGE = "Fabric Instructions: "


def get(call: Call) -> tuple[Op, ...]:
    """fabric.try_get: from an endpoint to shared memory."""
    target, handle, size, bar = call.operands[:4]
    count = _pieces(call, size)
    address, checks = _handle(call, handle, count)
    into, _, _ = end(call, target, "shared::cta")
    read = _remote(Side.READ, Family.FABRIC_GET)
    write = _shared(Side.WRITE, Family.FABRIC_GET)
    parts: list[Part] = []
    for k in range(count):
        parts.append(Gather(read, _piece(address, k, Window.GLOBAL, CHUNK)))
        parts.append(Scatter(write, _piece(into, k, Window.SHARED_CTA), len(parts) - 1, when=_moved(k)))
    return (*checks, *_outcome(count), _issue(call, Family.FABRIC_GET, parts, bar, count * CHUNK))


def pull(call: Call) -> tuple[Op, ...]:
    """fabric.try_pullred: from all memory of an endpoint, combined, to shared memory. A litmus thread is a warp."""
    target, handle, size, bar, lanes = call.operands
    if call.constant(lanes) not in (FULL_MASK, -1) or not isinstance(lanes, Imm):
        call.fail(f"{call.head} is executed by all lanes of a warp", lanes, "write 0xffffffff")
    count, replicas = _pieces(call, size), _replicas(call)
    address, checks = _handle(call, handle, count)
    into, _, _ = end(call, target, "shared::cta")
    read = _remote(Side.READ, Family.FABRIC_GET)
    width, parts = call.type.width // 8, list[Part]()
    for k in range(count):
        values: list[Expr] = []
        for replica in replicas:
            names = tuple(f"${replica}.{n}" for n in range(CHUNK // width))
            parts.append(AsyncRead(read, _piece(address, k, Window.GLOBAL, width, replica=replica), names))
            more = [Get(name) for name in names]
            both = [Apply(call.word("op") or "", pair, call.type) for pair in zip(values, more, strict=False)]
            values = [*both] if values else [*more]
        region = _piece(into, k, Window.SHARED_CTA, width)
        parts.append(AsyncWrite(_shared(Side.WRITE, Family.FABRIC_GET), region, tuple(values), when=_moved(k)))
    return (*checks, *_outcome(count), _issue(call, Family.FABRIC_GET, parts, bar, count * CHUNK))


def put(call: Call) -> tuple[Op, ...]:
    """fabric.try_put: from shared memory to an endpoint, with .multimem to all of its memory."""
    handle, source, size, bar = call.operands[:4]
    count, replicas = _pieces(call, size), _replicas(call)
    address, checks = _handle(call, handle, count)
    byte_mask = None if (operand := call.operand("byteMask")) is None else call.integer(operand)
    if byte_mask is not None and call.word("multimem"):
        call.refuse("a byte mask is not modelled with .multimem", "cp_mask")
    write = _remote(Side.WRITE, Family.FABRIC_PUT)
    parts: list[Part] = []
    for k, replica in product(range(count), replicas):
        parts.append(_read(call, source, k))
        region = replace(_piece(address, k, Window.GLOBAL, replica=replica), mask=byte_mask)
        parts.append(Scatter(write, region, len(parts) - 1, when=_moved(len(parts) // 2)))
    return (*checks, *_outcome(len(parts) // 2), _issue(call, Family.FABRIC_PUT, parts, bar, count))


def reduce(call: Call) -> tuple[Op, ...]:
    """fabric.try_red: an atomic update of every element at an endpoint, with .multimem in all of its memory."""
    handle, source, size, bar = call.operands[:4]
    count, replicas = _pieces(call, size), _replicas(call)
    address, checks = _handle(call, handle, count)
    read, write = (replace(_remote(side, Family.FABRIC_PUT), rmw=True) for side in (Side.READ, Side.WRITE))
    parts: list[Part] = []
    for k, replica in product(range(count), replicas):
        parts.append(_read(call, source, k))
        region = _piece(address, k, Window.GLOBAL, call.type.width // 8, replica=replica)
        moved = _moved(len(parts) // 2)
        parts.append(Update(read, write, region, len(parts) - 1, call.word("op") or "", call.type, when=moved))
    return (*checks, *_outcome(len(parts) // 2), _issue(call, Family.FABRIC_PUT, parts, bar, count))


def exchange(call: Call) -> tuple[Op, ...]:
    """fabric.try_atom of 128 bits: an exchange or a compare-and-swap, whose old value goes to shared memory.

    Where it fails, the update and the old value were each made or not.
    """
    handle, target, source, bar = call.operands[:4]
    _no_module(call)
    address, checks = _handle(call, handle, 1)
    into, _, _ = end(call, target, "shared::cta")
    given, _, _ = end(call, source, "shared::cta")
    swaps = call.word("op") == "cas"
    read, write = (replace(_remote(side, Family.FABRIC_PUT), rmw=True) for side in (Side.READ, Side.WRITE))
    updated = _piece(address, 0, Window.GLOBAL, CHUNK)
    value, when = Get("$0"), _moved(0)
    if swaps:
        value, when = Get("$1"), Apply("and", (when, Apply("eq", (Get("$old"), Get("$0")), call.type)), U32)
    parts: list[Part] = [
        AsyncRead(
            _shared(Side.READ, Family.FABRIC_PUT),
            _piece(given, k, Window.SHARED_CTA, CHUNK),
            (f"${k}",),
            tracks=frozenset({Track.FABRIC_PUT}),
        )
        for k in range(1 + swaps)
    ]
    parts.append(AsyncRead(read, updated, ("$old",)))
    parts.append(AsyncWrite(write, updated, (value,), rmw=True, when=when))
    delivered = _piece(into, 0, Window.SHARED_CTA, CHUNK)
    parts.append(AsyncWrite(_shared(Side.WRITE, Family.FABRIC_PUT), delivered, (Get("$old"),), when=_moved(1)))
    return (*checks, *_outcome(2), _issue(call, Family.FABRIC_PUT, parts, bar, 1))


def submit(call: Call) -> tuple[Op, ...]:
    """fabric.submit: operations before it are on their way; with .op_restrict::fetching, those that fetch."""
    if call.word("restrict"):
        return (CommitGroup(Track.FABRIC_GET), Emit(Mark(Marker.SUBMIT_FETCHING)))
    return (CommitGroup(Track.FABRIC_GET), CommitGroup(Track.FABRIC_PUT), Emit(Mark(Marker.SUBMIT)))


def wait(call: Call) -> tuple[Op, ...]:
    """fabric.wait: the reads of shared memory by submitted operations are over."""
    return (WaitForGroups(GroupWait(Family.FABRIC_PUT), Track.FABRIC_PUT, Const(0), sources_only=True),)


def _piece(address: Expr, number: int, window: Window, scalar: int | None = None, replica: int | None = None) -> Chunk:
    """16 bytes of many."""
    return Chunk(shifted(address, number * CHUNK), window, Const(CHUNK), scalar=scalar, replica=replica)


def _replicas(call: Call) -> tuple[int | None, ...]:
    """The numbers of the variables that a multicast endpoint stands for; without .multimem the only one."""
    if not call.word("multimem"):
        return (None,)
    declared = next((variable for variable in call.context.variables.values() if variable.multimem), None)
    return tuple(range(len(declared.multimem) if declared else 1))


def _remote(side: Side, family: Family) -> Access:
    """An access to the memory of an endpoint."""
    return Access(side, Sem.RELAXED, Scope.SYS, Proxy.FABRIC, family, asynchronous=True)


def _shared(side: Side, family: Family) -> Access:
    """An access to the shared memory of the executing CTA."""
    role = Role.SOURCE if side is Side.READ else None
    return Access(side, proxy=Proxy.ASYNC, family=family, asynchronous=True, role=role)


def _read(call: Call, source: Operand, number: int) -> Gather:
    """The read of one piece of the source in shared memory."""
    address, _, _ = end(call, source, "shared::cta")
    region = _piece(address, number, Window.SHARED_CTA)
    return Gather(_shared(Side.READ, Family.FABRIC_PUT), region, frozenset({Track.FABRIC_PUT}))


def _no_module(call: Call) -> None:
    """Raise InputError in a module."""
    if call.in_module:
        call.fail(f"{call.head} is not modelled in kernels: no launch says which memory a logical endpoint is bound to")


def _pieces(call: Call, operand: Operand) -> int:
    """How many times 16 bytes are moved. Raises InputError if that is not known, or too many for a litmus test."""
    _no_module(call)
    size = call.constant(operand)
    if size is None:
        call.fail(f"{call.head} of a size that the run decides is not modelled", operand, "write the number of bytes")
    if size <= 0 or size % CHUNK:
        call.fail(f"{call.head} moves a positive multiple of {CHUNK} bytes, not {size}", operand)
    if size > MOST_PIECES * CHUNK:
        hint = "each 16 bytes may be moved or not where it fails; several operations move more"
        call.fail(f"a litmus test moves at most {MOST_PIECES * CHUNK} bytes by one fabric operation", operand, hint)
    return size // CHUNK


def endpoint(call: Call, operand: Operand) -> tuple[Variable, Operand]:
    """The logical endpoint and the offset of a handle of a litmus test. Raises InputError for any other operand."""
    base, offset = parts_of(call, operand)
    if not isinstance(base, Sym):
        hint = "declare one, `e @ fabric aliases x;`, and write [e, 0]"
        call.fail("a litmus test names the logical endpoint of a handle", operand, hint)
    variable = call.variable(base)
    if variable.proxy is not Proxy.FABRIC:
        hint = f"declare one: e @ fabric aliases {variable.name};"
        call.fail(f"'{variable.name}' is not a logical endpoint", operand, hint)
    several, asked = bool(call.root(variable).multimem), call.word("multimem") is not None
    if several is not asked and call.head.startswith("fabric."):
        hint = "write .multimem" if several else "let it alias a multimem address"
        kinds = ("several devices", "one device") if several else ("one device", "several devices")
        what = f"{call.head}.multimem" if asked else call.head
        call.fail(f"'{variable.name}' is of {kinds[0]}, and {what} is for endpoints of {kinds[1]}", operand, hint)
    return variable, offset


def parts_of(call: Call, operand: Operand) -> tuple[Operand, Operand]:
    """What stands in the brackets of a handle. Raises InputError if the operand is no handle."""
    if not isinstance(operand, TensorOperand) or len(operand.rest) != 1 or operand.offset:
        call.fail(f"{call.head} takes a handle here, and this is {describe(operand)}", operand, "write [e, 0]")
    return operand.base, operand.rest[0]


def _handle(call: Call, operand: Operand, pieces: int) -> tuple[Expr, tuple[Op, ...]]:
    """The address that a handle stands for, and the step that finds an offset beyond its endpoint."""
    variable, offset = endpoint(call, operand)
    if isinstance(offset, Imm):
        return AddressOf(variable.name, offset.value), ()
    number = call.integer(offset)
    last = call.context.space.size(variable.name) - pieces * CHUNK
    rule = "a handle is within the memory of its logical endpoint"
    beyond = Apply("gt", (number, Const(last)), ADDRESS) if last >= 0 else Const(1)
    return Apply("add", (AddressOf(variable.name), number), ADDRESS), (UndefinedIf(rule, beyond),)


def _outcome(pieces: int) -> tuple[Op, ...]:
    """Steps that decide if the operation fails, and which pieces it leaves out then."""
    return (Decide(FAILS), *(Decide(_left_out(k), Get(FAILS)) for k in range(pieces)))


def _left_out(piece: int) -> str:
    return f"$left_out{piece}"


def _moved(piece: int) -> Expr:
    return Apply("eq", (Get(_left_out(piece)), Const(0)), U32)


def _issue(call: Call, family: Family, parts: list[Part], bar: Operand, count: int) -> Op:
    """The instruction, and the signal of its end, which reports whether it failed."""
    signal = SignalPart(
        Signal(Action.COMPLETE_TX, Scope.CTA, family),
        mbarrier(call, bar, Window.SHARED_CTA),
        Const(count),
        of=tuple(range(len(parts))),
        failed=Get(FAILS),
    )
    return IssueAsync(Issue(family), (*parts, signal))


_ASYNC = needed("async", "async")
_REPORT = needed("report", "mbarrier::report::fabric", what="report mechanism")
_SEM = needed("sem", "relaxed")
_SCOPE = needed("scope", "sys")
_B128 = needed("type", "b128")
_IN_SHARED = needed("space", "shared::cta")
_MULTIMEM = optional("multimem", "multimem")
_COUNTED = replace(refusing("PTX does not say in which steps the counter is raised", "counted::bytes"), name="counted")
_BY_BYTES = needed("completion", "mbarrier::complete_tx::bytes")
_BY_16 = needed("completion", "mbarrier::complete_tx::16B")
_FLOATS = {word: NO_FLOATS["f32"] for word in ("f16", "bf16", "f32", "f64")}
_BY_OPERATION = {"and|or|xor": "b32|b64", "min|max": "u32|s32|u64|s64", "add": "u32|u64"}
_TYPES = ("b32", "b64", "u32", "s32", "u64", "s64")


def _slots(*slots: Slot) -> tuple[Slot, ...]:
    return (_ASYNC, _IN_SHARED, *slots, _REPORT, CACHE_HINT, _SEM, _SCOPE)


_row = partial(Row, since=Since(100, "9.3"), effect=Effect.ASYNCHRONOUS)
_HINT = {"hint": Since(100, "9.4")}
_BESIDE = (
    "{head} is modelled with .b128 only: else it writes unspecified values beside its element",
    "write .exch.b128",
)
_FAILS = "; if it fails, each 16 bytes were moved or not, and the complete-tx reports it"

ROWS = (
    _row(
        ("fabric.try_get",),
        (*_slots(_BY_BYTES), _B128),
        ("[dst]", "[handle]", "size", "[bar]", "cache_policy"),
        get,
        "an issue; outside of program order, for each 16 bytes, a relaxed read at .sys scope through the fabric proxy "
        "and a weak write of shared memory through the async proxy, and a complete-tx of the bytes that releases at "
        ".cta scope" + _FAILS,
        _PAGE + "fabric.try_get",
        later=_HINT,
    ),
    _row(
        ("fabric.try_put",),
        (*_slots(_BY_16, _MULTIMEM, _COUNTED), optional("cp_mask"), _B128),
        ("[handle]", "[src]", "size", "[bar]", "byteMask", "cache_policy"),
        put,
        "an issue; outside of program order a weak read of shared memory through the async proxy, a relaxed write at "
        ".sys scope through the fabric proxy, and a complete-tx of a sixteenth of the bytes" + _FAILS,
        _PAGE + "fabric.try_put",
        later=_HINT,
        when={"byteMask": "cp_mask"},
        ranges=(OperandRange("byteMask", 0, (1 << 16) - 1, "a byte mask"),),
    ),
    _row(
        ("fabric.try_red",),
        (
            *_slots(_BY_16, _MULTIMEM, _COUNTED),
            needed("op", "and", "or", "xor", "min", "max", "add"),
            needed("type", *_TYPES, refused=_FLOATS),
        ),
        ("[handle]", "[src]", "size", "[bar]", "cache_policy"),
        reduce,
        "the same with a relaxed atomic read and write of each element at the endpoint" + _FAILS,
        _PAGE + "fabric.try_red",
        rules=types_by_operation(_BY_OPERATION, _TYPES, "", "{head}.{op} has no type .{type}"),
        later=_HINT,
    ),
    _row(
        ("fabric.try_pullred",),
        (
            _ASYNC,
            needed("multimem", "multimem"),
            _IN_SHARED,
            _BY_BYTES,
            _REPORT,
            _SEM,
            _SCOPE,
            needed("op", "and", "or", "xor", "min", "max", "add"),
            refusing("floating-point reductions are not modelled", "acc::f16", "acc::f32"),
            needed("type", *_TYPES, refused={**_FLOATS, **dict.fromkeys(("e4m3", "e5m2"), NO_FLOATS["f32"])}),
            needed("sync", "sync"),
        ),
        ("[dst]", "[handle]", "size", "[bar]", "imm-membermask"),
        pull,
        "the same as fabric.try_get, with a read of each element in all memory of the endpoint, whose combination is "
        "written" + _FAILS,
        _PAGE + "fabric.try_pullred",
        rules=types_by_operation(_BY_OPERATION, _TYPES, "", "{head}.{op} has no type .{type}"),
        together=Together.WARP,
        live=True,
    ),
    _row(
        ("fabric.try_atom",),
        (
            *_slots(_BY_16),
            needed("op", "exch", "cas", refused=dict.fromkeys(("and", "or", "xor", "min", "max", "add"), _BESIDE)),
            needed(
                "type",
                "b128",
                refused=dict.fromkeys(("b32", "b64", "u32", "u64", "f16x2", "bf16x2", "f32", "f64"), _BESIDE),
            ),
        ),
        ("[handle]", "[smem-dst]", "[smem-src]", "[bar]", "cache_policy"),
        exchange,
        "an issue; outside of program order weak reads of the operands in shared memory, a relaxed atomic read and "
        "write of 128 bits at the endpoint, a weak write of the old value to shared memory, and a complete-tx of 1; if "
        "it fails, the atomic write and that of the old value were each made or not, and the complete-tx reports it",
        _PAGE + "fabric.try_atom",
        since=Since(100, "9.4"),
    ),
    _row(
        ("fabric.submit",),
        (optional("restrict", "op_restrict::fetching"),),
        (),
        submit,
        "a mark: earlier fabric operations of the thread are submitted; with .op_restrict::fetching those that fetch",
        _PAGE + "fabric.submit",
        effect=Effect.SYNCHRONIZES,
    ),
    _row(
        ("fabric.wait",),
        (needed("restrict", "sync_restrict::reads"),),
        (),
        wait,
        "an event that follows the reads of shared memory by submitted fabric operations",
        _PAGE + "fabric.wait",
        effect=Effect.SYNCHRONIZES,
    ),
)
