"""Rows of the table: bulk copies and bulk reductions, cp.async.bulk and cp.reduce.async.bulk.

In: a Call. Out: one Issue: reads of the source, writes (for a reduction, atomic reads and writes) of each destination,
and a complete-tx for each destination, unless a bulk group tells of the end. Settled here: which directions exist.
"""

from __future__ import annotations

from memmodel.isa.atomic import NO_FLOATS
from memmodel.isa.caching import CACHE_HINT
from memmodel.isa.call import Call
from memmodel.isa.copying import (
    BULK_GROUP,
    CHUNK,
    End,
    check_barrier,
    check_extent,
    completed,
    destinations,
    elements,
    end,
    grouped,
    size_of,
    sources,
    unit_of,
    writes,
)
from memmodel.isa.ops import Apply, Expr, Get, Op, Part
from memmodel.isa.place import mask, mbarrier, shifted
from memmodel.isa.row import NO_SUCH_SCOPE, Need, Row, Rule, Slot, data_type, flag
from memmodel.litmus.syntax import Operand
from memmodel.ptx import DataType, Proxy, Scope

_PAGE = "Data Movement and Conversion Instructions: "
RELAXED_FAMILIES = frozenset({90, 100, 103, 110})
"""sm_90a, and the sm_100 and sm_110 families, have the strong forms of copies."""


def copy(call: Call) -> tuple[Op, ...]:
    """cp.async.bulk."""
    names = ["[dstMem]", "[srcMem]", "size"]
    names += ["ignoreBytesLeft", "ignoreBytesRight"] if call.word("ignore_oob") else []
    names += ["[mbar]"] if call.word("completion") != "bulk_group" else []
    names += ["ctaMask"] if call.word("multicast") else []
    names += ["cache_policy"] if call.word("hint") else []
    names += ["byteMask"] if call.word("cp_mask") else []
    given = take(call, names)
    target, source, size = both_ends(call, given)
    unit = unit_of(call, target, source)
    offsets = [k * unit for k in elements(call, target, source, size // unit)]
    offsets = [at for at in offsets if _copied(call, given, at, unit, size)]
    in_group = "[mbar]" not in given
    reads = sources(call, call.word("src") or "", source.address, offsets, grouped=in_group)
    space = call.word("dst") or ""
    if in_group:
        return (grouped(reads, writes(call, space, target.address, offsets, grouped=True)),)
    barrier = mbarrier(call, given["[mbar]"])
    check_barrier(call, target, given["[mbar]"])
    ctas = mask(call, given["ctaMask"]) if "ctaMask" in given else ()
    made = [
        (bar, writes(call, space, there, offsets, grouped=False))
        for there, bar in destinations(call, target.address, barrier, ctas)
    ]
    return (completed(call, reads, made, size),)


def reduce(call: Call) -> tuple[Op, ...]:
    """cp.reduce.async.bulk: an atomic update of every element of the destination."""
    in_group = call.word("completion") == "bulk_group"
    names = ["[dstMem]", "[srcMem]", "size"] + ([] if in_group else ["[mbar]"])
    given = take(call, names + (["cache_policy"] if call.word("hint") else []))
    target, source, size = both_ends(call, given)
    unit = (data_type(call.word("type") or "") or call.type).width // 8
    for side in (target, source):
        check_unit(call, side, unit)
    offsets = [k * unit for k in elements(call, target, source, size // unit)]
    reads = sources(call, call.word("src") or "", source.address, offsets, grouped=in_group)
    space, scope = call.word("dst") or "", call.scope or Scope.SYS
    its = updates(call, space, target.address, offsets, scope, call.type, grouped=in_group)
    if in_group:
        return (grouped(reads, its),)
    check_barrier(call, target, given["[mbar]"])
    return (completed(call, reads, [(mbarrier(call, given["[mbar]"]), its)], size),)


def take(call: Call, names: list[str]) -> dict[str, Operand]:
    """The operands by name. Raises InputError if there are more or fewer than names."""
    if len(call.operands) != len(names):
        call.fail(f"this {call.head} takes {', '.join(names)}; {len(call.operands)} operands are given")
    return dict(zip(names, call.operands, strict=True))


def both_ends(call: Call, given: dict[str, Operand]) -> tuple[End, End, int]:
    """Destination, source and size of a copy between two addresses."""
    target, source = (
        end(call, given["[dstMem]"], call.word("dst") or ""),
        end(call, given["[srcMem]"], call.word("src") or ""),
    )
    size = size_of(call, given["size"])
    check_extent(call, target, size)
    check_extent(call, source, size)
    remote = call.word("src") == "shared::cta" and call.word("dst") == "shared::cluster"
    if remote and target.variable is not None and target.cta in (None, call.place.cta):
        hint = f"write [{target.variable.name}@cta1] for the instance in CTA 1"
        call.fail(f"{call.head} from .shared::cta to .shared::cluster goes to another CTA", target.operand, hint)
    return target, source, size


def check_unit(call: Call, side: End, unit: int) -> None:
    """A reduction works on elements of its type."""
    if side.variable is not None and unit_of(call, side, side) != unit:
        hint = f"declare '{side.variable.name}' with elements of {unit} bytes"
        call.fail(f"{call.head} works on elements of {unit} bytes", side.operand, hint)


def updates(
    call: Call, space: str, address: Expr, offsets: list[int], scope: Scope, type: DataType, *, grouped: bool
) -> list[Part]:
    """An atomic read and write of each element of the destination, relaxed."""
    shared = ("SMEM",) if space.startswith("shared") else ()
    tags = ("M", "RLX", "RMW", "ASYNC", "BULK", *shared)
    read, write = (call.event(side, *tags, scope=scope, proxy=Proxy.ASYNC) for side in ("R", "W"))
    track = BULK_GROUP if grouped else frozenset()
    parts = []
    for k, at in enumerate(offsets):
        where = shifted(address, at)
        value = Apply(call.word("op") or "", (Get(f"$d{k}"), Get(f"$s{k}")), type)
        parts.append(Part("read", where, read, f"$d{k}", track=track))
        parts.append(Part("write", where, write, value=value, rmw=True, track=track))
    return parts


def _copied(call: Call, given: dict[str, Operand], at: int, unit: int, size: int) -> bool:
    """Does the copy move the element at that offset? .cp_mask and .ignore_oob leave bytes out."""
    if "byteMask" in given:
        bits = call.constant(given["byteMask"])
        if bits is None or not 0 <= bits < 1 << CHUNK:
            call.fail("a byte mask is a 16-bit number that is known before the test runs", given["byteMask"])
        inside = {bits >> (at + byte) % CHUNK & 1 for byte in range(unit)}
        if len(inside) > 1:
            call.fail(f"the byte mask divides an element of {unit} bytes", given["byteMask"])
        return inside == {1}
    left, right = (_ignored(call, given, name) for name in ("ignoreBytesLeft", "ignoreBytesRight"))
    return at >= left and at + unit <= size - right


def _ignored(call: Call, given: dict[str, Operand], name: str) -> int:
    if name not in given:
        return 0
    number = call.constant(given[name])
    if number is None or not 0 <= number < CHUNK:
        call.fail(f"{name} is a number from 0 to 15 that is known before the test runs", given[name])
    return number


COMPLETION = Slot("completion", ("mbarrier::complete_tx::bytes", "bulk_group"), "completion mechanism", Need.ALWAYS)
MULTICAST = Slot("multicast", ("multicast::cluster",), "qualifier")
SCOPE = Slot("scope", ("cta", "cluster", "gpu", "sys"), "scope", refused=NO_SUCH_SCOPE)
_PLAIN_SHARED = {
    "shared": ("{head} has no plain .shared", "write .shared::cta or .shared::cluster"),
}
TARGET = Slot("dst", ("shared::cta", "shared::cluster", "global"), "destination", Need.ALWAYS, _PLAIN_SHARED)
SOURCE = Slot("src", ("global", "shared::cta"), "source", Need.ALWAYS, _PLAIN_SHARED)
SHARED_TARGETS = ("shared::cta", "shared::cluster")

MECHANISM = (
    Rule(
        "a copy to .global completes by bulk group",
        "write .bulk_group, and wait with cp.async.bulk.commit_group and wait_group",
        {"dst": ("global",), "completion": ("mbarrier::complete_tx::bytes",)},
        at="completion",
    ),
    Rule(
        "a copy to .{dst} completes on an mbarrier",
        "write .mbarrier::complete_tx::bytes and name the mbarrier",
        {"dst": SHARED_TARGETS, "completion": ("bulk_group",)},
        at="completion",
    ),
    Rule(
        "{head} does not copy from .global to .global",
        "go through shared memory",
        {"dst": ("global",), "src": ("global",)},
        at="src",
    ),
    Rule(
        ".multicast::cluster needs .shared::cluster as destination",
        "write .shared::cluster.global",
        {"multicast": (), "dst": ("shared::cta", "global")},
        at="multicast",
    ),
    Rule(
        ".multicast::cluster copies from .global",
        "drop .multicast::cluster, or copy from .global",
        {"multicast": (), "src": ("shared::cta",)},
        at="multicast",
    ),
    Rule(
        "{head} does not copy from .shared::cta to .shared::cta",
        "write .shared::cluster for another CTA, or ld and st within one",
        {"dst": ("shared::cta",), "src": ("shared::cta",)},
        at="src",
    ),
)
_NO_HINT = Rule(
    ".L2::cache_hint is for copies from or to .global",
    "drop it",
    {"hint": (), "dst": ("shared::cluster",), "src": ("shared::cta",)},
    at="hint",
)
_OPERANDS = ("[dstMem]", "[srcMem]", "size", "a?", "b?", "c?", "d?", "e?")

REDUCTIONS = ("and", "or", "xor", "add", "inc", "dec", "min", "max")
_SHARED_TYPES = {
    ("add",): ("u32", "s32", "u64"),
    ("min", "max"): ("u32", "s32"),
    ("inc", "dec"): ("u32",),
    ("and", "or", "xor"): ("b32",),
}
_GLOBAL_TYPES = {
    ("add",): ("u32", "s32", "u64"),
    ("min", "max"): ("u32", "s32", "u64", "s64"),
    ("inc", "dec"): ("u32",),
    ("and", "or", "xor"): ("b32", "b64"),
}
_TYPES = ("b32", "u32", "s32", "b64", "u64", "s64")
_FLOATS = {**NO_FLOATS, "f16": NO_FLOATS["f32"], "bf16": NO_FLOATS["f32"]}


def _type_rules() -> tuple[Rule, ...]:
    return tuple(
        Rule(
            "{head}.{op} to .{dst} has no type .{type}",
            "it has " + " ".join(f".{word}" for word in types),
            {"dst": (space,), "op": ops, "type": tuple(word for word in _TYPES if word not in types)},
            at="type",
        )
        for space, table in (("shared::cluster", _SHARED_TYPES), ("global", _GLOBAL_TYPES))
        for ops, types in table.items()
    )


ROWS = (
    Row(
        ("cp.async.bulk",),
        (
            Slot("sem", ("weak", "relaxed"), "memory semantics"),
            SCOPE,
            TARGET,
            SOURCE,
            COMPLETION,
            MULTICAST,
            CACHE_HINT,
            flag("ignore_oob"),
            flag("cp_mask"),
            Slot("type", ("b128",), "type"),
        ),
        _OPERANDS,
        copy,
        "an issue; outside of program order reads of the source and writes of each destination (async proxy, weak "
        "unless .relaxed), and for each destination in shared memory a complete-tx that releases at .cluster scope",
        _PAGE + "cp.async.bulk",
        rules=(
            *MECHANISM,
            _NO_HINT,
            Rule(
                "{head}.relaxed needs a scope", "write .relaxed.gpu or another scope", {"sem": ("relaxed",)}, ("scope",)
            ),
            Rule(
                "{head}.relaxed needs .b128", "add .b128 behind all other qualifiers", {"sem": ("relaxed",)}, ("type",)
            ),
            Rule("{head}.weak takes no scope", "drop .{scope}", {"sem": ("weak",), "scope": ()}, at="scope"),
            Rule(
                "{head} without semantics is weak, and takes no scope",
                "write {head}.relaxed.{scope}, or drop .{scope}",
                {"scope": ()},
                ("sem",),
                at="scope",
            ),
            Rule(
                "a copy within a cluster has .cta or .cluster scope",
                "write .cluster",
                {"scope": ("gpu", "sys"), "dst": ("shared::cluster",), "src": ("shared::cta",)},
                at="scope",
            ),
            Rule(
                ".ignore_oob is for copies from .global to .shared::cta",
                "drop it",
                {"ignore_oob": (), "dst": ("shared::cluster", "global")},
                at="ignore_oob",
            ),
            Rule(".cp_mask is for copies to .global", "drop it", {"cp_mask": (), "dst": SHARED_TARGETS}, at="cp_mask"),
        ),
        since=90,
        needs={"cp_mask": 100},
        word_families={"weak": RELAXED_FAMILIES, "relaxed": RELAXED_FAMILIES},
        written="[dstMem], [srcMem], size{, ignoreBytesLeft, ignoreBytesRight}{, [mbar]}{, ctaMask}{, cache_policy}"
        "{, byteMask}",
    ),
    Row(
        ("cp.reduce.async.bulk",),
        (
            Slot("sem", ("relaxed",), "memory semantics"),
            SCOPE,
            Slot("dst", ("shared::cluster", "global"), "destination", Need.ALWAYS, _PLAIN_SHARED),
            Slot("src", ("shared::cta",), "source", Need.ALWAYS, _PLAIN_SHARED),
            COMPLETION,
            CACHE_HINT,
            Slot("op", REDUCTIONS, "operation", Need.ALWAYS),
            Slot("type", _TYPES, "type", Need.ALWAYS, _FLOATS),
        ),
        ("[dstMem]", "[srcMem]", "size", "mbar?", "policy?"),
        reduce,
        "an issue; outside of program order weak reads of the source, and a relaxed atomic read and write of each "
        "element of the destination, at .sys scope unless another is written (async proxy); complete-tx as above",
        _PAGE + "cp.reduce.async.bulk",
        rules=(
            *MECHANISM[:2],
            _NO_HINT,
            Rule("{head}.relaxed needs a scope", "write .relaxed.sys or another scope", {"sem": ()}, ("scope",)),
            Rule(
                "{head} with a scope names its semantics", "write .relaxed.{scope}", {"scope": ()}, ("sem",), at="scope"
            ),
            Rule(
                "a reduction within a cluster has .cta or .cluster scope",
                "write .cluster",
                {"scope": ("gpu", "sys"), "dst": ("shared::cluster",)},
                at="scope",
            ),
            *_type_rules(),
        ),
        since=90,
        written="[dstMem], [srcMem], size{, [mbar]}{, cache_policy}",
    ),
)
