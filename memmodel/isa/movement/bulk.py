"""Rows of the table: bulk copies and bulk reductions, cp.async.bulk and cp.reduce.async.bulk.

In: a Call. Out: one instruction: a read of the source, a write (for a reduction, atomic updates) of each destination,
and a complete-tx for each destination, unless a bulk group tells of the end. Settled here: which directions exist.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from memmodel.base.labels import Family, Role, Side
from memmodel.isa.caching import CACHE_HINT
from memmodel.isa.call import Call
from memmodel.isa.copying import (
    CopyEnd,
    access,
    checked_size,
    chunk,
    destinations_in,
    end,
    gather,
    group_tracks,
    issue,
    multimem_word,
    signal,
    signalled_copy,
)
from memmodel.isa.place import MULTICAST, WIDE_MASKS, mask, mbarrier
from memmodel.isa.rows.cases import Rule, either
from memmodel.isa.rows.row import Effect, OperandRange, Row
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import NO_SUCH_SCOPE, needed, optional
from memmodel.isa.rows.types import data_type, types_by_operation
from memmodel.isa.synchronization.atomic import MODIFYING_TYPES, NO_FLOATS
from memmodel.program.ops import Gather, Op, Scatter, SignalPart, Update
from memmodel.program.regions import Chunk, Region
from memmodel.ptx.targets import FAMILY_100
from memmodel.ptx.vocabulary import DataType, Proxy, Scope, Sem, Window

_PAGE = "Data Movement and Conversion Instructions: "
_SEMANTICS_SINCE = Since(version="9.3", families=FAMILY_100, alone=frozenset({90}))
_TO_GLOBAL_SINCE = {"cp_mask": Since(100, "8.6"), "sem": _SEMANTICS_SINCE}
_COPY_SINCE = {"ignore_oob": Since(90, "9.2"), "dst=shared::cta": Since(90, "8.6"), **_TO_GLOBAL_SINCE}


def copy(call: Call) -> tuple[Op, ...]:
    """cp.async.bulk and multimem.cp.async.bulk."""
    target, source = both_ends(call)
    size, size_check = checked_size(call, call.operands[2])
    left, right, byte_mask = (
        None if (operand := call.operand(name)) is None else call.integer(operand)
        for name in ("ignoreBytesLeft", "ignoreBytesRight", "byteMask")
    )
    reads = replace(chunk(call, source.address, source.window, size), skip_left=left, skip_right=right)
    barrier_operand, cta_mask = call.operand("[mbar]"), call.operand("ctaMask")
    if barrier_operand is None:
        written = replace(chunk(call, target.address, target.window, size), mask=byte_mask)
        write = Scatter(access(call, Side.WRITE), written, 0, group_tracks(True))
        return (*size_check, issue(Family.BULK, gather(call, reads, in_group=True), write))
    barrier_window = Window.SHARED_CTA if target.window is Window.SHARED_CTA else Window.SHARED_CLUSTER
    barrier = mbarrier(call, barrier_operand, barrier_window)
    mask_checks, ctas = ((), ()) if cta_mask is None else mask(call, cta_mask, target.address, barrier.address)
    destinations = destinations_in(call, target.address, barrier, ctas, None)
    window = Window.SHARED_CLUSTER if ctas else target.window
    first = (gather(call, reads, in_group=False),)
    copy = signalled_copy(call, first, 0, destinations, lambda address: chunk(call, address, window, size), size)
    return (*size_check, *mask_checks, *copy)


def reduce(call: Call) -> tuple[Op, ...]:
    """cp.reduce.async.bulk and multimem.cp.reduce.async.bulk: an atomic update of every element of the destination."""
    barrier_operand = call.operand("[mbar]")
    in_group = barrier_operand is None
    target, source = both_ends(call)
    size, size_check = checked_size(call, call.operands[2])
    type = _element_type(call.word("type") or "")
    # The source is read weakly, whatever the semantics of the updates.
    weak = replace(access(call, Side.READ), sem=Sem.WEAK, scope=None, family=Family.BULK_REDUCTION)
    read = Gather(replace(weak, role=Role.SOURCE), Chunk(source.address, source.window, size), group_tracks(in_group))
    region = Chunk(target.address, target.window, size, scalar=type.width // 8)
    updates = update(call, region, 0, call.scope or Scope.SYS, type, in_group=in_group)
    if barrier_operand is None:
        return (*size_check, issue(Family.BULK_REDUCTION, read, updates))
    barrier = mbarrier(call, barrier_operand, Window.SHARED_CLUSTER)
    signalled = SignalPart(signal(Family.BULK_REDUCTION), barrier, size, of=(0, 1))
    return (*size_check, issue(Family.BULK_REDUCTION, read, updates, signalled))


def _element_type(word: str) -> DataType:
    """The type of the elements of a reduction; of 16 bits, both floating-point formats are alike here."""
    return data_type(word) or DataType("f", 16)


def update(call: Call, region: Region, source: int, scope: Scope, type: DataType, *, in_group: bool) -> Update:
    """An atomic read and write of each element of the destination, relaxed."""
    read, write = (
        replace(
            call.access(side, Sem.RELAXED, scope, Proxy.ASYNC, Family.BULK_REDUCTION, rmw=True),
            asynchronous=True,
            spelt=multimem_word(call, Side.WRITE),
        )
        for side in (Side.READ, Side.WRITE)
    )
    return Update(read, write, region, source, call.word("op") or "", type, group_tracks(in_group))


def both_ends(call: Call) -> tuple[CopyEnd, CopyEnd]:
    """Destination and source of a copy between two addresses, its first operands."""
    target, source = (
        end(call, operand, call.word(slot) or "") for operand, slot in zip(call.operands, ("dst", "src"), strict=False)
    )
    named = target.symbol
    if call.head == "cp.async.bulk" and (call.word("src"), call.word("dst")) == ("shared::cta", "shared::cluster"):
        if named is not None and named.cta in (None, call.place.cta):
            hint = f"write [{named.name}@cta1] for the instance in CTA 1"
            call.fail(f"{call.head} from .shared::cta to .shared::cluster goes to another CTA", call.operands[0], hint)
        target = target._replace(window=Window.SHARED_OTHER)
    return target, source


COMPLETION = needed("completion", "mbarrier::complete_tx::bytes", "bulk_group")
REPORT = optional(
    "report",
    "mbarrier::report::disabled",
    what="report mechanism",
    refused={
        f"mbarrier::report::validity::{word}": (
            "{head}.mbarrier::report::validity::" + word + " is not modelled: it reports what the bytes are",
            "write .mbarrier::report::disabled",
        )
        for word in (*(f"per_16bytes::8{'0' * zeros}" for zeros in (7, 3, 1, 0)), "per_element::ff")
    },
)
REPORTS = {"report": Since(families=frozenset({107}), version="9.4")}
NO_REPORT = Rule("only a copy from .global to shared memory reports", "drop .{report}", "src=shared::cta report")
SCOPE = optional("scope", "cta", "cluster", "gpu", "sys", refused=NO_SUCH_SCOPE)
_PLAIN_SHARED = {"shared": ("{head} has no plain .shared", "write .shared::cta or .shared::cluster")}
TARGET = needed("dst", "shared::cta", "shared::cluster", "global", refused=_PLAIN_SHARED)
SOURCE = needed("src", "global", "shared::cta", refused=_PLAIN_SHARED)

MECHANISM = (
    Rule(
        "a copy to .global completes by bulk group",
        "write .bulk_group, and wait with cp.async.bulk.commit_group and wait_group",
        "dst=global completion=mbarrier::complete_tx::bytes",
    ),
    Rule(
        "a copy to .{dst} completes on an mbarrier",
        "write .mbarrier::complete_tx::bytes and name the mbarrier",
        "dst!=global completion=bulk_group",
    ),
    Rule("{head} does not copy from .global to .global", "go through shared memory", "dst=global src=global"),
    Rule(
        ".multicast::cluster needs .shared::cluster as destination",
        "write .shared::cluster.global",
        "dst!=shared::cluster multicast",
    ),
    Rule(
        ".multicast::cluster copies from .global",
        "drop .multicast::cluster, or copy from .global",
        "src=shared::cta multicast",
    ),
    Rule(
        "{head} does not copy from .shared::cta to .shared::cta",
        "write .shared::cluster for another CTA, or ld and st within one",
        "dst=shared::cta src=shared::cta",
    ),
)
_NO_HINT = Rule(
    ".L2::cache_hint is for copies from or to .global", "drop it", "dst=shared::cluster src=shared::cta hint"
)
_COPY = ("[dstMem]", "[srcMem]", "size")
ON_MBARRIER = "completion=mbarrier::complete_tx::bytes"
_RANGES = (
    *(OperandRange(name, 0, 15, name) for name in ("ignoreBytesLeft", "ignoreBytesRight")),
    OperandRange("byteMask", 0, (1 << 16) - 1, "a byte mask"),
)

REDUCTIONS = ("and", "or", "xor", "add", "inc", "dec", "min", "max")
_SHARED_TYPES = {"add": "u32|s32|u64", "min|max": "u32|s32", "inc|dec": "u32", "and|or|xor": "b32"}
_TYPES = ("b32", "u32", "s32", "b64", "u64", "s64")
_FLOATS = ("f16", "bf16", "f32", "f64")
"""In modules only, and to .global."""

_REFUSED_FLOATS = {**NO_FLOATS, "f16": NO_FLOATS["f32"], "bf16": NO_FLOATS["f32"]}


_NO_TYPE = "{head}.{op} to .{dst} has no type .{type}"
_GLOBAL_TYPES = types_by_operation(MODIFYING_TYPES, _TYPES, "dst=global", _NO_TYPE)
_NOT_OF_FLOATS = ("{head}.{op} has no type .{type}", "write an integer type, or another operation")
_FLOAT_RULES = (
    Rule(*_NOT_OF_FLOATS, "op=min|max type=f32|f64"),
    Rule(*_NOT_OF_FLOATS, f"op=inc|dec|and|or|xor type={either(_FLOATS)}"),
    Rule("{head}.add.{type} is .noftz", "write .add.noftz.{type}", "op=add !noftz type=f16|bf16"),
    Rule(".noftz is for .add", "drop it", "op!=add noftz"),
    Rule(".noftz is for .f16 and .bf16", "drop it", "type!=f16|bf16 noftz"),
)
_TYPE = needed("type", *_TYPES, refused=_REFUSED_FLOATS, modules=_FLOATS)
_NOFTZ = optional("noftz", modules=("noftz",))
_SEMANTICS = optional("sem", "weak", "relaxed")
_TO_GLOBAL = needed("dst", "global")
_FROM_SHARED = needed("src", "shared::cta", refused=_PLAIN_SHARED)
_IN_GROUP = needed("completion", "bulk_group")

_COPY_SEMANTICS = (
    Rule("{head}.relaxed needs a scope", "write .relaxed.gpu or another scope", "sem=relaxed !scope"),
    Rule("{head}.relaxed needs .b128", "add .b128 after all other qualifiers", "sem=relaxed !type"),
    Rule("{head}.weak takes no scope", "drop .{scope}", "sem=weak scope"),
    Rule(
        "{head} without semantics is weak, and takes no scope",
        "write {head}.relaxed.{scope}, or drop .{scope}",
        "!sem scope",
    ),
    Rule("{head}.weak has no type", "drop .{type}", "sem=weak type"),
    Rule("{head} without semantics has no type", "write {head}.relaxed.gpu, or drop .{type}", "!sem type"),
)
_REDUCTION_SEMANTICS = (
    Rule("{head}.relaxed needs a scope", "write .relaxed.sys or another scope", "sem !scope"),
    Rule("{head} with a scope names its semantics", "write .relaxed.{scope}", "!sem scope"),
)

_row = partial(Row, since=Since(90, "8.0"), effect=Effect.ASYNCHRONOUS)

ROWS = (
    _row(
        ("cp.async.bulk",),
        (
            _SEMANTICS,
            SCOPE,
            TARGET,
            SOURCE,
            COMPLETION,
            REPORT,
            MULTICAST,
            CACHE_HINT,
            optional("ignore_oob"),
            optional("cp_mask"),
            optional("type", "b128"),
        ),
        (*_COPY, "ignoreBytesLeft", "ignoreBytesRight", "[mbar]", "ctaMask", "cache_policy", "byteMask"),
        copy,
        "an issue; outside of program order a read of the source and a write of each destination (async proxy, weak "
        "unless .relaxed), and for each destination in shared memory a complete-tx that releases at .cluster scope",
        _PAGE + "cp.async.bulk",
        rules=(
            *MECHANISM,
            NO_REPORT,
            _NO_HINT,
            *_COPY_SEMANTICS,
            Rule(
                "a copy within a cluster has .cta or .cluster scope",
                "write .cluster",
                "dst=shared::cluster src=shared::cta scope=gpu|sys",
            ),
            Rule(".ignore_oob is for copies from .global to .shared::cta", "drop it", "dst!=shared::cta ignore_oob"),
            Rule(".cp_mask is for copies to .global", "drop it", "dst!=global cp_mask"),
        ),
        later=_COPY_SINCE | WIDE_MASKS | REPORTS,
        when={
            **dict.fromkeys(("ignoreBytesLeft", "ignoreBytesRight"), "ignore_oob"),
            "[mbar]": ON_MBARRIER,
            "ctaMask": "multicast",
            "byteMask": "cp_mask",
        },
        ranges=_RANGES,
    ),
    _row(
        ("cp.reduce.async.bulk",),
        (
            optional("sem", "relaxed"),
            SCOPE,
            needed("dst", "shared::cluster", "global", refused=_PLAIN_SHARED),
            _FROM_SHARED,
            COMPLETION,
            CACHE_HINT,
            needed("op", *REDUCTIONS),
            _NOFTZ,
            _TYPE,
        ),
        (*_COPY, "[mbar]", "cache_policy"),
        reduce,
        "an issue; outside of program order a weak read of the source, and a relaxed atomic read and write of each "
        "element of the destination, at .sys scope unless another is written (async proxy); complete-tx as above",
        _PAGE + "cp.reduce.async.bulk",
        rules=(
            *MECHANISM[:2],
            _NO_HINT,
            *_REDUCTION_SEMANTICS,
            Rule(
                "a reduction within a cluster has .cta or .cluster scope",
                "write .cluster",
                "dst=shared::cluster scope=gpu|sys",
            ),
            *types_by_operation(_SHARED_TYPES, _TYPES, "dst=shared::cluster", _NO_TYPE),
            *_GLOBAL_TYPES,
            Rule(
                "{head} to .{dst} has no type .{type}",
                "write an integer type",
                f"dst=shared::cluster type={either(_FLOATS)}",
            ),
            *_FLOAT_RULES,
        ),
        later={"sem": Since(90, "9.3")},
        when={"[mbar]": ON_MBARRIER},
    ),
    _row(
        ("multimem.cp.async.bulk",),
        (_SEMANTICS, SCOPE, _TO_GLOBAL, _FROM_SHARED, _IN_GROUP, optional("cp_mask"), optional("type", "b128")),
        (*_COPY, "byteMask"),
        None,
        "as cp.async.bulk to .global, with a write of all memory that the multimem address points to",
        _PAGE + "multimem.cp.async.bulk",
        rules=_COPY_SEMANTICS,
        since=Since(90, "9.1"),
        later=_TO_GLOBAL_SINCE,
        when={"byteMask": "cp_mask"},
        ranges=_RANGES[2:],
        lower_module=copy,
    ),
    _row(
        ("multimem.cp.reduce.async.bulk",),
        (
            optional("sem", "relaxed"),
            SCOPE,
            _TO_GLOBAL,
            _FROM_SHARED,
            _IN_GROUP,
            needed("op", *REDUCTIONS),
            _NOFTZ,
            _TYPE,
        ),
        _COPY,
        None,
        "as cp.reduce.async.bulk to .global, of all memory that the multimem address points to",
        _PAGE + "multimem.cp.reduce.async.bulk",
        rules=(*_REDUCTION_SEMANTICS, *_GLOBAL_TYPES, *_FLOAT_RULES),
        since=Since(90, "9.1"),
        later={"sem": Since(90, "9.3")},
        lower_module=reduce,
    ),
)
