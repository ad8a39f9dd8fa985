"""What instructions of the generic half lower to: accesses with their labels and bytes, fences, barriers, jumps.

The steps are worked out by hand from the pages of the ISA; `isa_samples.brief` says how they are written.
"""

from __future__ import annotations

import pytest
from helpers.isa_samples import blocks, columns, ops, read, shown, value, warnings

from memmodel.errors import InputError
from memmodel.isa.lower import lower_test
from memmodel.program.ops import Assign

X, X_GLOBAL = "Elements(&x generic size=4)", "Elements(&x global size=4)"
X_DATA = X.replace("generic", "data")
FULL = 0xFFFFFFFF

ACCESSES = {
    "ld.u32 %r0, [x];": [f"Read([r0] {X} Access(read) type=u32)"],
    "ld.weak.s32 %r0, [n];": ["Read([r0] Elements(&n generic size=4) Access(read) type=s32)"],
    "ld.relaxed.cta.u32 %r0, [x];": [f"Read([r0] {X_DATA} Access(read relaxed cta) type=u32)"],
    "ld.acquire.cluster.u32 %r0, [x];": [f"Read([r0] {X_DATA} Access(read acquire cluster) type=u32)"],
    "ld.volatile.u32 %r0, [x];": [f"Read([r0] {X_DATA} Access(read relaxed sys spelt=volatile) type=u32)"],
    "ld.mmio.relaxed.sys.global.u32 %r0, [x];": [f"Read([r0] {X_GLOBAL} Access(read relaxed sys spelt=mmio) type=u32)"],
    "ld.proxy::readonly.global.u32 %r0, [x];": [f"Read([r0] {X_GLOBAL} Access(read read_only) type=u32)"],
    "ld.proxy::readonly.u32 %r0, [x];": [
        f"Read([r0] {X_GLOBAL.replace('global', 'read_only')} Access(read read_only) type=u32)"
    ],
    "ld.global.nc.u32 %r0, [x];": [f"Read([r0] {X_GLOBAL} Access(read read_only) type=u32)"],
    "ld.global.L2::cache_hint.u32 %r0, [x], %rd9;": [f"Read([r0] {X_GLOBAL} Access(read) type=u32)"],
    "ld.shared.u64 %rd0, [s];": ["Read([rd0] Elements(&s shared_cta size=8) Access(read) type=u64)"],
    "ld.shared::cta.u64 %rd0, [s];": ["Read([rd0] Elements(&s shared_cta size=8) Access(read) type=u64)"],
    "ld.shared::cluster.u64 %rd0, [s@cta1];": [
        "Read([rd0] Elements(&s@1 shared_cluster size=8) Access(read) type=u64)"
    ],
    "ld.const.u32 %r0, [k];": ["Read([r0] Elements(&k const size=4) Access(read) type=u32)"],
    "ld.u8 %r0, [x+3];": ["Read([r0] Elements(&x+3 generic size=1) Access(read) type=u8)"],
    "ld.b128 %q0, [response];": ["Read([q0] Elements(&response generic size=16) Access(read) type=b128)"],
    "ld.u32 %r0, [%rd0+4];": ["Read([r0] Elements(add.u64(%rd0, 4) generic size=4) Access(read) type=u32)"],
    "ld.v2.u32 {%rd0, _}, [%rd0];": ["Read([rd0 -] Elements(%rd0 generic size=4 count=2) Access(read) type=u32)"],
    "ld.acquire.gpu.v4.u32 {%r0, %r1, %r2, %r3}, [a];": [
        "Read([r0 r1 r2 r3] Elements(&a data size=4 count=4) Access(read acquire gpu) type=u32)"
    ],
    "ld.global.v8.b32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [src];": [
        "Read([r0 r1 r2 r3 r4 r5 r6 r7] Elements(&src global size=4 count=8) Access(read) type=b32)"
    ],
    "st.u32 [x], -1;": [f"Write([{FULL}] {X} Access(write))"],
    "st.release.gpu.u32 [x], %r0;": [f"Write([cvt.u32(%r0)] {X_DATA} Access(write release gpu))"],
    "st.volatile.u32 [x], 1;": [f"Write([1] {X_DATA} Access(write relaxed sys spelt=volatile))"],
    "st.mmio.release.sys.global.u32 [x], 1;": [f"Write([1] {X_GLOBAL} Access(write release sys spelt=mmio))"],
    "st.shared::cluster.u64 [s@cta1], 7;": ["Write([7] Elements(&s@1 shared_cluster size=8) Access(write))"],
    "st.v4.u32 [a], {%r0, 1, 2, 3};": ["Write([cvt.u32(%r0) 1 2 3] Elements(&a generic size=4 count=4) Access(write))"],
    "st.bulk.weak.shared::cta [tile], 32, 0;": [
        "Write([0] Chunk(&tile shared_cta 32 align=8 multiple=8) Access(write) when=ne.s64(32, 0))"
    ],
    "st.u16 [x+2], 65537;": ["Write([1] Elements(&x+2 generic size=2) Access(write))"],
}


def modified(write: str, read: str = "relaxed", sem: str = "relaxed", where: str = "gpu atom") -> list[str]:
    """A read and a write of x that are one operation."""
    return [
        f"Read([$0] {X} Access(read {read} {where} rmw) type=u32)",
        f"Write([{write}] {X} Access(write {sem} {where} rmw) rmw)",
    ]


ADDED, OLD = "add.u32(%$0, 1)", "Assign(r0 cvt.u32(%$0))"
ATOMICS = {
    "atom.add.u32 %r0, [x], 1;": [*modified(ADDED), OLD],
    "atom.relaxed.cta.add.u32 %r0, [x], %r1;": [*modified("add.u32(%$0, cvt.u32(%r1))", where="cta atom"), OLD],
    "atom.acquire.cta.add.u32 %r0, [x], 1;": [*modified(ADDED, "acquire", where="cta atom"), OLD],
    "atom.release.cta.add.u32 %r0, [x], 1;": [*modified(ADDED, sem="release", where="cta atom"), OLD],
    "atom.acq_rel.sys.add.u32 %r0, [x], 1;": [*modified(ADDED, "acquire", "release", "sys atom"), OLD],
    "atom.inc.u32 %r0, [x], 3;": [*modified("inc.u32(%$0, 3)"), OLD],
    "atom.max.u32 _, [x], 3;": modified("max.u32(%$0, 3)"),
    "atom.add.u32 %r0, [x], %r0;": [*modified("add.u32(%$0, cvt.u32(%r0))"), OLD],
    "atom.shared.exch.b64 _, [s], 1;": [
        "Read([$0] Elements(&s shared_cta size=8) Access(read relaxed gpu atom rmw) type=b64)",
        "Write([1] Elements(&s shared_cta size=8) Access(write relaxed gpu atom rmw) rmw)",
    ],
    "atom.acq_rel.gpu.cas.b32 %r0, [x], 0, 7;": [
        f"Read([$0] {X} Access(read acquire gpu atom rmw) type=b32)",
        f"Write([7] {X} Access(write release gpu atom rmw) when=eq.b32(%$0, 0) rmw)",
        "Assign(r0 cvt.b32(%$0))",
    ],
    "red.add.u32 [x], 1;": modified(ADDED, where="gpu red"),
    "red.release.gpu.add.u32 [x], 1;": modified(ADDED, sem="release", where="gpu red"),
}

FENCES = {
    "fence.sc.gpu;": "Fence(sc gpu)",
    "fence.acq_rel.sys;": "Fence(acq_rel sys)",
    "fence.sys;": "Fence(acq_rel sys)",
    "fence.acquire.cta;": "Fence(acquire cta)",
    "fence.release.cluster;": "Fence(release cluster)",
    "membar.cta;": "Fence(sc cta)",
    "membar.gl;": "Fence(sc gpu)",
    "membar.sys;": "Fence(sc sys)",
    "fence.proxy.alias;": "ProxyFence(-)",
    "membar.proxy.alias;": "ProxyFence(-)",
}


def halves(key: str, count: object = "-", domain: str = "cta") -> list[str]:
    """Both halves of a barrier."""
    return [f"AtBarrier(Barrier({half} {domain}) [{key}] {count})" for half in ("arrive", "wait")]


BARRIERS = {
    "bar.sync 0;": halves("0 0"),
    "bar.cta.sync 3, 96;": halves("3 0", 3),  # three warps
    "barrier.sync.aligned %r0;": [
        "UndefinedIf(the number of a barrier is from 0 to 15 gt.u32(%r0, 15))",
        *halves("%r0 0"),
    ],
    "barrier.cta.sync 1, %r1;": [
        "UndefinedIf(the thread count of a barrier is a multiple of 32 rem.u32(%r1, 32))",
        *halves("1 0", "div.u32(%r1, 32)"),
    ],
    "bar.arrive 0, 64;": halves("0 0", 2)[:1],
    "bar.cta.arrive 1, 64;": halves("1 0", 2)[:1],
    "barrier.arrive 0, 32;": halves("0 0", 1)[:1],
    "barrier.cta.arrive.aligned 15, 32;": halves("15 0", 1)[:1],
    "bar.red.popc.u32 %r0, 0, %p;": [*halves("0 0", domain="cta reduces"), "Combine(r0 popc %p)"],
    "bar.cta.red.and.pred %p, 0, 64, !%q;": [
        *halves("0 0", 2, "cta reduces"),
        "Combine(p and eq.s64(%q, 0))",
    ],
    "barrier.red.or.pred %p, 1, %q;": [*halves("1 0", domain="cta reduces"), "Combine(p or %q)"],
    "barrier.cta.red.popc.u32 %r0, 0, %q;": [*halves("0 0", domain="cta reduces"), "Combine(r0 popc %q)"],
    "bar.warp.sync 0xffffffff;": halves(f"{FULL}", domain="warp"),
    "bar.warp.sync -1;": halves(f"{FULL}", domain="warp"),
    "bar.warp.sync 0x7;": halves("7", 3, "warp"),  # three lanes
    "barrier.cluster.arrive;": ["AtBarrier(Barrier(arrive cluster release cluster) [0] -)"],
    "barrier.cluster.arrive.relaxed.aligned;": ["AtBarrier(Barrier(arrive cluster relaxed cluster) [0] -)"],
    "barrier.cluster.wait;": ["AtBarrier(Barrier(wait cluster acquire cluster) [0] -)"],
}

DIVIDED = {
    "div.u32 %r0, %r1, %r2;": [
        "Unmodelled(div by zero gives an unspecified value eq.u32(%r2, 0))",
        "Assign(r0 div.u32(%r1, %r2))",
    ],
    "rem.s32 %r0, %r1, 0;": [
        "Unmodelled(rem by zero gives an unspecified value eq.s32(0, 0))",
        "Assign(r0 rem.s32(%r1, 0))",
    ],
}

COMPUTED = {
    "add.u32 %r0, %r1, 1;": "r0 add.u32(%r1, 1)",
    "sub.s64 %rd0, %rd1, %rd2;": "rd0 sub.s64(%rd1, %rd2)",
    "div.u32 %r0, %r1, 3;": "r0 div.u32(%r1, 3)",
    "rem.s32 %r0, %r1, -3;": "r0 rem.s32(%r1, -3)",
    "min.u32 %r0, %r1, %r2;": "r0 min.u32(%r1, %r2)",
    "max.s32 %r0, %r1, -1;": "r0 max.s32(%r1, -1)",
    "mul.lo.u32 %r0, %r1, %r2;": "r0 mul.u32(%r1, %r2)",
    "mul.hi.s32 %r0, %r1, %r2;": "r0 mul.hi.s32(%r1, %r2)",
    "mul.wide.u32 %rd0, %r1, 4;": "rd0 mul.wide.u32(%r1, 4)",
    "mad.lo.u32 %r0, %r1, %r2, 3;": "r0 add.u32(mul.u32(%r1, %r2), 3)",
    "mad.wide.u32 %rd0, %r1, 128, -128;": "rd0 add.u64(mul.wide.u32(%r1, 128), 18446744073709551488)",
    "mad.wide.s32 %rd0, %r1, 4, %rd1;": "rd0 add.s64(mul.wide.s32(%r1, 4), %rd1)",
    "abs.s32 %r0, %r1;": "r0 abs.s32(%r1)",
    "neg.s32 %r0, %r1;": "r0 neg.s32(%r1)",
    "and.b32 %r0, %r1, 255;": "r0 and.b32(%r1, 255)",
    "or.pred %p, %p, !%q;": "p or.pred(%p, eq.s64(%q, 0))",
    "xor.b64 %rd0, %rd1, %rd2;": "rd0 xor.b64(%rd1, %rd2)",
    "not.b32 %r0, %r1;": "r0 not.b32(%r1)",
    "cnot.b32 %r0, %r1;": "r0 cnot.b32(%r1)",
    "sad.s32 %r0, %r1, %r2, 3;": "r0 sad.s32(%r1, %r2, 3)",
    "popc.b64 %r0, %rd1;": "r0 cvt.u32(popc.b64(%rd1))",
    "clz.b32 %r0, %r1;": "r0 cvt.u32(clz.b32(%r1))",
    "bfind.shiftamt.u32 %r0, %r1;": "r0 cvt.u32(bfind.shiftamt.u32(%r1))",
    "brev.b32 %r0, %r1;": "r0 brev.b32(%r1)",
    "bfe.s32 %r0, %r1, 4, 8;": "r0 bfe.s32(%r1, 4, 8)",
    "bfi.b32 %r0, %r1, %r2, 4, 8;": "r0 bfi.b32(%r1, %r2, 4, 8)",
    "lop3.b32 %r0, %r1, %r2, %r3, 0x96;": "r0 lop3.b32(%r1, %r2, %r3, 150)",
    "prmt.b32 %r0, %r1, %r2, 0x5410;": "r0 prmt.b32(%r1, %r2, 21520)",
    "shf.r.clamp.b32 %r0, %r1, %r2, %r3;": "r0 shf.r.clamp.b32(%r1, %r2, %r3)",
    "shf.l.wrap.b32 %r0, %r1, %r2, 8;": "r0 shf.l.wrap.b32(%r1, %r2, 8)",
    "shl.b32 %r0, %r1, 2;": "r0 shl.b32(%r1, 2)",
    "shr.s32 %r0, %r1, 2;": "r0 shr.s32(%r1, 2)",
    "setp.lt.u32 %p, %r0, 1;": "p lt.u32(%r0, 1)",
    "setp.hi.xor.u32 %p, %r0, 1, !%q;": "p xor.s64(gt.u32(%r0, 1), eq.s64(%q, 0))",
    "set.lo.u32.u16 %r0, %r1, 1;": "r0 selp.u32(-1, 0, lt.u16(%r1, 1))",
    "slct.u32.s32 %r0, %r1, 2, %r3;": "r0 selp.u32(%r1, 2, ge.s32(%r3, 0))",
    "add.sat.s32 %r0, %r1, 2;": "r0 cvt.s32(min.s64(max.s64(add.s64(cvt.s32(%r1), cvt.s32(2)), "
    "-2147483648), 2147483647))",
    "cvt.sat.u8.s32 %r0, %r1;": "r0 cvt.u8(min.s32(max.s32(cvt.s32(%r1), 0), 255))",
    "cvt.sat.s8.u16 %r0, %r1;": "r0 cvt.s8(min.u16(cvt.u16(%r1), 127))",
    "cvt.sat.u64.s8 %r0, %r1;": "r0 cvt.u64(max.s8(cvt.s8(%r1), 0))",
    "selp.b32 %r0, 1, 2, %p;": "r0 selp.b32(1, 2, %p)",
    "mov.u32 %r0, -1;": f"r0 {FULL}",
    "mov.pred %p, 1;": "p 1",
    "mov.u64 %rd0, x;": "rd0 &x",
    "mov.u64 %rd0, a+20;": "rd0 &a+20",
    "mov.u32 %r0, s;": "r0 &s",  # 32 bits: an address of shared memory
    "mov.u32 %r0, %cluster_ctarank;": "r0 0",
    "mov.u32 %r0, %cluster_nctarank;": "r0 2",
    "cvt.u64.s32 %rd0, %r1;": "rd0 cvt.u64(cvt.s32(%r1))",
}

FLOW = {
    "bra.uni L0;": ["Jump(L0)"],
    "ret;": ["Emit(Mark(exit))", "Jump(-)"],
    "exit;": ["Emit(Mark(exit))", "Jump(-)"],
    "nanosleep.u32 100;": [],
    "setmaxnreg.inc.sync.aligned.u32 96;": [],
    "griddepcontrol.wait;": [],  # in a test of one grid
    "griddepcontrol.launch_dependents;": [],
}

HINTS = (
    "prefetch.global.L2 [x];",
    "prefetchu.L1 [x];",
    "applypriority.global.L2::evict_normal [a], 128;",
    "applypriority.async.bulk.global.bulk_group.L2::evict_normal [a], 256;",
    "createpolicy.fractional.L2::evict_last.b64 %policy, 1.0;",
    "createpolicy.range.global.L2::evict_last.b64 %policy, [a], 16, 32;",
    "createpolicy.range.fabric.L2::evict_last.b64 %policy, [le, 0], 16, 32;",
    "createpolicy.cvt.L2.b64 %policy, %rd1;",
)

WORKED_OUT: dict[str, list[str]] = {
    **{line: [] for line in HINTS},
    **ACCESSES,
    **ATOMICS,
    **{line: [f"Emit({label})"] for line, label in FENCES.items()},
    **BARRIERS,
    **{line: [f"Assign({assigned})"] for line, assigned in COMPUTED.items()},
    **DIVIDED,
    **FLOW,
}

CELL = "Elements(&x generic)"
"""A whole element, of whatever type it is declared with."""

WORKED_OUT_IN_COLUMNS = {
    "ld r0, 7": ["Assign(r0 7)"],
    "ld r0, r1": ["Assign(r0 %r1)"],
    "ld r0, x": [f"Read([r0] {CELL} Access(read))"],
    "ld.acquire.gpu r0, x": ["Read([r0] Elements(&x data) Access(read acquire gpu))"],
    "st x, r0": [f"Write([%r0] {CELL} Access(write))"],
    "atom.acq_rel.gpu.add r1, x, 1": [
        f"Read([$0] {CELL} Access(read acquire gpu atom rmw))",
        f"Write([add.s64(%$0, 1)] {CELL} Access(write release gpu atom rmw) rmw)",
        "Assign(r1 %$0)",
    ],
    "atom.relaxed.gpu.cas r0, x, 0, 1": [
        f"Read([$0] {CELL} Access(read relaxed gpu atom rmw))",
        f"Write([1] {CELL} Access(write relaxed gpu atom rmw) when=eq.s64(%$0, 0) rmw)",
        "Assign(r0 %$0)",
    ],
    "red.acq_rel.gpu.add x, 1": [
        f"Read([$0] {CELL} Access(read acquire gpu red rmw))",
        f"Write([add.s64(%$0, 1)] {CELL} Access(write release gpu red rmw) rmw)",
    ],
    "sust.weak s, 1": ["Write([1] Elements(&s generic) Access(write surface))"],
    "suld.weak r0, s": ["Read([r0] Elements(&s generic) Access(read surface))"],
    "tld.weak r0, t": ["Read([r0] Elements(&t generic) Access(read texture))"],
    "cold.weak r0, c": ["Read([r0] Elements(&c generic) Access(read constant))"],
    "fence.proxy.surface": ["Emit(ProxyFence(surface))"],
    "fence.proxy.texture": ["Emit(ProxyFence(texture))"],
    "fence.proxy.constant": ["Emit(ProxyFence(constant))"],
    "bar.cta.sync 1, _, 2": halves("1 0", 2),  # a count of threads here
    "bar.cta.sync 1, r2, 2": halves("1 %r2", 2),
    "bar.cta.sync 1, r2": halves("1 %r2", -1),  # whoever names the resource
    "bar.cta.arrive 1": halves("1 0")[:1],
    "mul r0, r1, 3": ["Assign(r0 mul.s64(%r1, 3))"],
    "goto LC00": ["Jump(LC00)"],
    **{
        f"b{relation} r0, 1, LC00": [f"Jump(LC00 when={relation}.s64(%r0, 1))"]
        for relation in ("eq", "ne", "lt", "le", "gt", "ge")
    },
}


@pytest.mark.parametrize("line", WORKED_OUT)
def test_steps(line: str) -> None:
    assert shown(ops(blocks(line))) == WORKED_OUT[line]


@pytest.mark.parametrize("cell", WORKED_OUT_IN_COLUMNS)
def test_steps_of_the_column_layout(cell: str) -> None:
    assert shown(ops(columns(cell))) == WORKED_OUT_IN_COLUMNS[cell]


# ---- vectors in mov ------------------------------------------------------------------------------------------------


def run(line: str, **registers: int) -> dict[str, int]:
    """The registers after a line of assignments."""
    after = dict(registers)
    for op in ops(blocks(line)):
        assert isinstance(op, Assign)
        after[op.register] = value(op.value, after)
    return {name: number for name, number in after.items() if name not in registers and not name.startswith("$")}


@pytest.mark.parametrize(
    ("line", "before", "after"),
    [
        ("mov.b16 %d, {%a, %b};", {"a": 0x12, "b": 0x34}, 0x3412),
        ("mov.b32 %d, {%a, %b};", {"a": 0x1234, "b": 0x5678}, 0x5678_1234),
        ("mov.b32 %d, {%a, %b, %c, 255};", {"a": 1, "b": 2, "c": 3}, 0xFF03_0201),
        ("mov.b64 %d, {%a, %b};", {"a": 0x8000_0001, "b": 2}, 0x2_8000_0001),
        ("mov.b64 %d, {%a, 0, -1, 1};", {"a": 7}, 0x0001_FFFF_0000_0007),
        ("mov.b128 %d, {%a, %b};", {"a": 2**64 - 1, "b": 3}, 3 << 64 | 2**64 - 1),
        ("mov.b128 %d, {%a, %b, %c, %e};", {"a": 1, "b": 2, "c": 3, "e": 4}, 4 << 96 | 3 << 64 | 2 << 32 | 1),
        # a register of a signed type holds a negative number; only its low bits count
        ("mov.b64 %d, {%a, %b};", {"a": -1, "b": -2}, 0xFFFF_FFFE_FFFF_FFFF),
        ("mov.b32 %d, {%a, %b};", {"a": 0x1_0002, "b": 1}, 0x1_0002),
    ],
)
def test_packing_puts_the_first_element_lowest(line: str, before: dict[str, int], after: int) -> None:
    assert run(line, **before) == {"d": after}


@pytest.mark.parametrize(
    ("line", "before", "after"),
    [
        ("mov.b16 {%a, %b}, %d;", 0x3412, {"a": 0x12, "b": 0x34}),
        ("mov.b32 {%a, %b, %c, %e}, %d;", 0xFF03_0201, {"a": 1, "b": 2, "c": 3, "e": 255}),
        ("mov.b32 {%a, %b}, %d;", -2, {"a": 0xFFFE, "b": 0xFFFF}),
        ("mov.b64 {%a, _}, %d;", 0x2_8000_0001, {"a": 0x8000_0001}),
        ("mov.b64 {_, %b, _, %e}, %d;", 0x0001_FFFF_0000_0007, {"b": 0, "e": 1}),
        ("mov.b128 {%a, %b}, %d;", 3 << 64 | 2**64 - 1, {"a": 2**64 - 1, "b": 3}),
        ("mov.b128 {_, _, %c, %e}, %d;", 4 << 96 | 3 << 64 | 1, {"c": 3, "e": 4}),
    ],
)
def test_unpacking_takes_the_bits_of_each_element(line: str, before: int, after: dict[str, int]) -> None:
    assert run(line, d=before) == after


def test_unpacking_reads_its_source_before_it_writes() -> None:
    steps = ops(blocks("mov.b64 {%d, %b}, %d;"))
    after = {"d": 0x2_0000_0001}
    for op in steps:
        assert isinstance(op, Assign)
        after[op.register] = value(op.value, after)
    assert (after["d"], after["b"]) == (1, 2)


@pytest.mark.parametrize(
    "line",
    [
        "mov.u32 %d, {%a, %b};",  # bit-size types only
        "mov.b16 %d, {%a, %b, %c, %e};",  # no type has 4 bits
        "mov.b64 %d, {%a, %b, %c};",
        "mov.b128 {%a}, %d;",
    ],
)
def test_what_no_vector_fills_is_refused(line: str) -> None:
    with pytest.raises(InputError, match="a vector of 2 or 4 elements fills"):
        ops(blocks(line))


def test_a_vector_of_sinks_is_refused() -> None:
    with pytest.raises(InputError, match="at least one element goes to a register"):
        ops(blocks("mov.b64 {_, _}, %d;"))


# ---- a thread, a test ----------------------------------------------------------------------------------------------


def test_a_program_keeps_guards_labels_and_instruction_numbers() -> None:
    program = lower_test(blocks("@%p st.u32 [x], 1; @!%p atom.add.u32 %r0, [x], 1; bra END; END:")).programs[0]
    assert program.labels == {"L0": 0, "END": 5}
    assert (program.target("END"), program.target(None)) == (5, 5)
    assert [step.index for step in program.steps] == [0, 1, 1, 1, 2]
    guards = [step.guard.negated if step.guard else None for step in program.steps]
    assert guards == [False, True, True, True, None]


def test_registers_begin_with_numbers_or_addresses() -> None:
    lowered = lower_test(read("PTX t\nx = 0;\nP0:%r0 = 5; P0:%rd0 = x;\nthread P0 { ret; }\nexists (true)\n"))
    place = lowered.test.threads[0].place
    assert lowered.programs[0].initial == {"r0": 5, "rd0": lowered.space.address("x", 0, place)}


def test_a_thread_among_others_of_its_warp_belongs_to_its_mask() -> None:
    lanes = """PTX lanes
thread P0 @ cta 0, warp 0 { bar.warp.sync 2; }
thread P1 @ cta 0, warp 0 { bar.warp.sync %r0; }
exists (true)
"""
    rule = "UndefinedIf(a thread executes bar.warp.sync with a mask that does not have its own lane"
    assert shown(ops(read(lanes)))[0] == f"{rule} eq.u32(and.u32(2, 1), 0))"
    assert "UndefinedIf" not in str(shown(ops(read(lanes.replace("sync 2", "sync 1")))))
    assert shown(ops(read(lanes), 1))[0] == f"{rule} eq.u32(and.u32(%r0, 2), 0))"


def test_red_acquire_is_accepted_with_a_warning() -> None:
    (warning,) = warnings(columns("red.acq_rel.gpu.add x, 1"))
    assert "warning: PTX has no red.acq_rel" in warning


def test_a_cta_atomic_that_two_ctas_share_is_warned_about() -> None:
    (warning,) = warnings(blocks("atom.relaxed.cta.add.u32 %r0, [x], 1;"))
    assert "an atomic of .cta scope on 'x', which threads of 2 CTAs access" in warning
    assert warnings(blocks("atom.relaxed.cta.add.u32 %r0, [a], 1;")) == []


REMOTE = """PTX remote
.shared .u32 v;
thread P0 @ cta 0, cluster 0 { ld.shared::cluster.u32 %r0, [v@cta1]; }
thread P1 @ cta 1, cluster 0 { st.shared.u32 [v], 1; }
exists (P0:r0 == 0)
"""


def test_another_ctas_shared_memory_is_outside_the_window_of_shared() -> None:
    assert shown(ops(read(REMOTE))) == ["Read([r0] Elements(&v@1 shared_cluster size=4) Access(read) type=u32)"]
    assert warnings(read(REMOTE)) == []
    (warning,) = warnings(read(REMOTE.replace("shared::cluster", "shared")))
    assert "outside the window of the state space that the instruction names: the thread stops here" in warning


def test_a_name_that_one_cta_declares_is_an_error_elsewhere_unless_the_cta_is_named() -> None:
    text = REMOTE.replace(".shared .u32 v;", ".shared .u32 v @ cta 1 = 3;")
    assert shown(ops(read(text))) == ["Read([r0] Elements(&v@1 shared_cluster size=4) Access(read) type=u32)"]
    with pytest.raises(InputError) as caught:
        lower_test(read(text.replace("v@cta1", "v")))
    assert caught.value.message == "'v' is declared in CTA 1 alone"
    assert caught.value.hint == "write v@cta1, or map its address with mapa"


@pytest.mark.parametrize(
    ("plain", "hinted"),
    [
        *(("ld.global.u32 %r0, [x];", f"ld.global.{word}.u32 %r0, [x];") for word in ("ca", "cg", "cs", "lu", "cv")),
        *(("st.global.u32 [x], %r0;", f"st.global.{word}.u32 [x], %r0;") for word in ("wb", "cg", "cs", "wt")),
        ("ld.global.u32 %r0, [x];", "ld.global.L1::evict_last.u32 %r0, [x];"),
        ("ld.global.u32 %r0, [x];", "ld.global.L2::128B.u32 %r0, [x];"),
        ("ld.acquire.gpu.global.u32 %r0, [x];", "ld.acquire.gpu.global.L1::no_allocate.u32 %r0, [x];"),
        ("st.release.sys.global.u32 [x], %r0;", "st.release.sys.global.L1::evict_first.u32 [x], %r0;"),
    ],
)
def test_a_hint_to_the_caches_changes_nothing(plain: str, hinted: str) -> None:
    """ "The use of a cache operator on an ld or st instruction does not change the memory consistency behavior of the
    program" ("Cache Operators").
    """
    assert shown(ops(blocks(hinted))) == shown(ops(blocks(plain)))
