"""Hypothesis strategies for programs of more kinds of instructions: atomics of all types, vectors, named barriers,
grids, tensor maps, wgmma, remote mbarrier operations, arithmetic on what was read, tcgen05.

In: nothing. Out: `Program`s as in `helpers.strategies.wide`, whose notation the lines have.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from helpers.strategies.wide import Program, bodies_of

DECLARATIONS = """PTX kinds
.global .align 32 .u32 g[8] = {1, 2, 3, 4};
.global .align 16 .u32 f[4] = {0};
.global .align 16 .u32 h[4] = {0};
.shared .align 32 .u32 s[8] = {5, 6};
.shared .align 16 .u32 u[4] = {1, 2, 3, 4};
.shared .align 16 .u32 o[4] = {1};
.shared .align 8 .b64 bar = mbarrier(COUNT);
.shared .align 8 .b64 baz = mbarrier(1);
.const .align 64 .b8 map[128] = tensormap(g, {4, 1}, {4, 2});
.global .align 128 .b8 gmap[256] = {tensormap(g, {4, 1}, {4, 2}), tensormap(f, {4, 1}, {4, 1})};
.shared .align 128 .b8 smap[128] = tensormap(f, {4, 1}, {4, 1});
.tensor .b32 t[4] = {7, 8};
"""
SET_UP = "mov.u64 %da, s; mov.u64 %db, u; mov.u64 %gg, g; mov.pred %yes, 1; mov.pred %no, 0; mov.b16 %mask, 3;"

LOAD = "ld.<weak|relaxed.cta|acquire.gpu|volatile>.<shared.u32 %r#, [<s|s+4|u>]|global.u32 %r#, [<g|f>]>;"
STORE = "st.<weak|relaxed.cta|release.gpu|volatile>.<shared.u32 [<s|s+4|u>]|global.u32 [<g|f>]>, <1|2|3>;"
FENCE = (
    "fence.<acq_rel.gpu|sc.gpu|sc.cta|acquire.cluster|release.cta|proxy.async|proxy.async.shared::cta|proxy.async.global"
    "|proxy.async.shared::cluster>;"
)
WAIT = (
    "W#: mbarrier.try_wait.parity<|.acquire.cluster|.relaxed.cluster>.b64 %w#, [<bar|bar|baz>], <0|0|1>; @!%w# bra W#;"
)
EXPECT = "mbarrier.arrive.expect_tx<|.relaxed.cluster>.shared::cta.b64 _, [bar], <4|16|16>;"
SPIN = "S#: ld.<acquire|relaxed>.gpu.global.u32 %x#, [f]; setp.eq.u32 %p, %x#, 0; @%p bra S#;"

KINDS: dict[str, tuple[str, ...]] = {
    "atomics": (
        (
            "atom.<relaxed|acquire|release|acq_rel>.<cta|gpu|sys>.global.<add.u32|min.s32|max.u32|inc.u32|"
            "dec.u32|and.b32|xor.b32|exch.b32> %r#, [<f|f|g>], <1|2|7>;"
        ),
        ("atom.<relaxed|acq_rel>.gpu.global.<add.u64|min.s64|max.u64|or.b64|exch.b64> %r#, [<f|g>], <1|0x100000002>;"),
        "atom.<relaxed|acquire>.gpu.global.cas.<b16|b32|b64> %r#, [<f|f|g>], <0|1>, <1|9>;",
        (
            "mov.b128 %b#, {<0|1>, <0|2>}; mov.b128 %n#, {8, 9}; atom.<relaxed|acq_rel>.gpu.global.cas.b128 "
            "%o#, [f], %b#, %n#; mov.b128 {%l#, %h#}, %o#;"
        ),
        "red.<relaxed|release>.<cta|gpu>.global.<add.u32|min.u32|or.b32|dec.u32> [f], <1|2>;",
        "ld.<weak|acquire.gpu|volatile>.global.<u8|u16|u32|u64> %r#, [<f|g>];",
        "st.<weak|release.gpu|volatile>.global.<u8|u16|u32|u64> [<f|g>], 3;",
        "mov.b128 %b#, {3, 4}; st.<weak|release.gpu>.global.b128 [f], %b#;",
        "ld.<weak|acquire.gpu>.global.b128 %b#, [f]; mov.b128 {%l#, %h#}, %b#;",
        "membar.<cta|gl|sys>;",
        "fence.<acq_rel|acquire|release>.<cta|gpu>;",
        "ld.mmio.<relaxed|acquire>.sys.global.u32 %r#, [f];",
        "st.mmio.<relaxed|release>.sys.global.u32 [f], 6;",
    ),
    "vectors": (
        (
            "ld.<weak|relaxed.gpu|acquire.gpu|volatile>.global.<v2.u32 {%a#, %b#}|v4.u32 {%a#, %b#, %c#, %d#}|"
            "v2.u64 {%a#, %b#}|v4.u16 {%a#, %b#, _, _}>, [<g|g|f>];"
        ),
        "ld.weak.global.<v8.b32 {%a#, %b#, _, _, _, _, _, %c#}|v4.b64 {%a#, _, _, %d#}>, [g];",
        (
            "st.<weak|relaxed.gpu|release.gpu>.global.<v2.u32 [<g|g+8|f>], {1, 2}|v4.u32 [<g|f>], {1, 2, 3, 4}|"
            "v2.u64 [<g|f>], {1, 2}|v2.u16 [<g|g+4|f>], {7, 8}>;"
        ),
        "st.weak.global.v8.b32 [g], {1, 2, 3, 4, 5, 6, 7, 8};",
        "atom.relaxed.gpu.global.<add.u32|exch.b64> %r#, [<g|f>], 5;",
        LOAD,
        STORE,
        FENCE,
        SPIN,
        "cp.async.<ca.shared.global [s], [g], 8<|, 4>|cg.shared.global [s], [g], 16>; cp.async.wait_all;",
        "st.release.gpu.global.v2.u32 [f], {1, %x0};",
    ),
    "named": (
        LOAD,
        STORE,
        "bar.sync <1|2>, <64|96>;",
        "bar.arrive 1, <64|96>;",
        "barrier.sync 1, 64;",
        "bar.sync 0;",
        "ld.weak.shared.u32 %k#, [u]; setp.eq.u32 %q#, %k#, 1; bar.red.<and|or>.pred %z#, 1, 64, <|!>%q#;",
        "bar.red.popc.u32 %n#, 1, 64, <%yes|%no|!%no>;",
        "mov.u32 %i#, <1|2>; bar.sync %i#, 64;",
        "ld.weak.shared.u32 %k#, [u]; setp.eq.u32 %q#, %k#, 1; @%q# bar.sync 1, 64;",
        "setp.eq.u32 %q#, %r0, 0; @%q# exit;",
        "barrier.cluster.arrive<|.relaxed|.aligned>; barrier.cluster.wait<|.acquire>;",
        FENCE,
    ),
    "grids": (
        "ld.<weak|acquire.gpu>.global.u32 %r#, [<g|f>];",
        "st.<weak|relaxed.gpu|release.gpu>.global.u32 [<g|f>], <1|2>;",
        "griddepcontrol.launch_dependents;",
        "griddepcontrol.wait;",
        "fence.<acq_rel|release>.<cta|gpu>;",
        (
            "cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16;<| cp.async.bulk.commit_group; "
            "cp.async.bulk.wait_group<|.read> 0;>"
        ),
        (
            "mbarrier.arrive.expect_tx<|.relaxed.cluster>.shared::cta.b64 _, [bar], <4|16|16>; "
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [bar]; W#: "
            "mbarrier.try_wait.parity<|.acquire.cluster|.relaxed.cluster>.b64 %w#, [<bar|bar|baz>], <0|0|1>; "
            "@!%w# bra W#;"
        ),
        "ld.weak.shared.u32 %r#, [s];",
        "exit;",
        "fence.proxy.async;",
        "bar.sync 0;",
    ),
    "tensors": (
        LOAD,
        STORE,
        FENCE,
        (
            "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [<s|u>], [<map|"
            "gmap>, {<0|1|-2>, <0|1|3>}], [bar];"
        ),
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [<map|gmap>, {<0|2>, <0|1>}], [<s|u>];",
        (
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.<add|min|xor|inc>.tile.bulk_group [map, {<0|2>, "
            "0}], [<s|u>];"
        ),
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group<|.read> <0|1>;",
        "mov.u64 %ga#, f; tensormap.replace.tile.global_address.global.b1024.b64 [gmap], %ga#;",
        "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [smap], 0, 4;",
        (
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.<gpu|cta>.sync.aligned "
            "[gmap], [smap], 128;"
        ),
        ("fence.proxy.tensormap::generic.<release.gpu|release.cta|acquire.gpu [gmap], 128|acquire.cta [gmap], 128>;"),
        "st.relaxed.gpu.global.u32 [f], 1;",
        SPIN,
        EXPECT,
        WAIT,
        "bar.sync 0;",
    ),
    "wgmma": (
        LOAD,
        STORE,
        FENCE,
        "wgmma.fence.sync.aligned;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%a0, %a1, %a2, %a3}, %da, %db, <0|1>, 1, 1, 0, 0;",
        (
            "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%a0, %a1, %a2, %a3}, "
            "%da, %db, <0|1>, 1, 1, 0, 0; wgmma.commit_group.sync.aligned;"
        ),
        "wgmma.commit_group.sync.aligned;",
        "wgmma.wait_group.sync.aligned <0|1>;",
        "mov.u32 %m#, %a0;",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r#}, [s];",
        "bar.sync 0;",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [<s|u>], [g], 16, [bar];",
        EXPECT,
        WAIT,
        "mbarrier.arrive<|.relaxed.cta>.b64 _, [bar];",
    ),
    "remote": (
        "mbarrier.arrive<|.release.cluster|.relaxed.cluster>.shared::cluster.b64 _, [<bar|baz>@peer];",
        "mbarrier.arrive.expect_tx<|.release.cluster>.shared::cluster.b64 _, [bar@peer], 4;",
        "mbarrier.arrive_drop<|.relaxed.cluster>.shared::cluster.b64 _, [bar@peer];",
        (
            "mbarrier.arrive<|.release.cluster|.relaxed.cluster>.shared::cluster.multicast::cluster::32b.b64 _, "
            "[<bar|baz>], <1|2|3|3>;"
        ),
        "mbarrier.<expect_tx|complete_tx>.shared::cluster.multicast::cluster::32b.b64 [bar], <4|8>, 3;",
        "mbarrier.<expect_tx|complete_tx>.relaxed.cluster.shared::cluster.b64 [bar@peer], <4|8>;",
        (
            "mbarrier.<test_wait|try_wait>.parity<|.relaxed.cluster>.b64 %w#, [<bar|baz>], <0|1>; @%w# "
            "ld.shared.u32 %r#, [s];"
        ),
        "mbarrier.arrive.b64 %t0, [bar];",
        "mbarrier.arrive.b64 _, [baz];",
        "mbarrier.test_wait.acquire.cluster.b64 %w#, [bar], %t0;",
        "mbarrier.inval.shared.b64 [baz]; mbarrier.init.shared.b64 [baz], <1|2>;",
        "fence.mbarrier_init.release.cluster;",
        "st.weak.shared::cluster.u32 [s@peer], 4;",
        "st.weak.shared.u32 [u], 3;",
        "ld.weak.shared.u32 %r#, [<s|u>];",
        "ld.weak.shared::cluster.u32 %r#, [u@peer];",
        (
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.<add.u32|inc.u32|or.b32|"
            "add.u64> [s@peer], 3, [bar@peer];"
        ),
        "fence.<release|acquire|acq_rel>.<cta|cluster>;",
        "fence.release.sync_restrict::shared::cta.cluster;",
        "fence.acquire.sync_restrict::shared::cluster.cluster;",
        "barrier.cluster.arrive<|.relaxed>; barrier.cluster.wait;",
        WAIT,
        WAIT,
        "cp.async.ca.shared.global [s], [g], 4; cp.async.mbarrier.arrive<|.noinc>.shared.b64 [bar];",
    ),
    "compute": (
        (
            "ld.<weak|relaxed.gpu>.global.u32 %r#, [<f|g>]; <add.u32|sub.s32|min.s32|max.u32|mul.lo.u32|"
            "mul.hi.u32|xor.b32|and.b32|shl.b32|shr.s32> %y#, %r#, <1|3>; st.<weak|relaxed.gpu>.global.u32 [<f|"
            "g>], %y#;"
        ),
        (
            "ld.relaxed.gpu.global.u32 %r#, [f]; setp.<lt.s32|ge.u32|ne.b32> %q#, %r#, <1|2>; selp.b32 %y#, <1|"
            "%r#>, 7, %q#; st.relaxed.gpu.global.u32 [f], %y#;"
        ),
        "ld.relaxed.gpu.global.s8 %r#, [f]; cvt.<u32.s8|u16.s32> %y#, %r#; st.relaxed.gpu.global.u32 [g], %y#;",
        (
            "ld.weak.global.u32 %r#, [f]; <popc.b32|clz.b32|bfind.u32|brev.b32|cnot.b32|neg.s32|abs.s32|"
            "not.b32> %y#, %r#; st.weak.global.u32 [g], %y#;"
        ),
        (
            "ld.weak.global.u32 %r#, [f]; <bfe.u32 %y#, %r#, 1, 3|bfi.b32 %y#, %r#, 5, 2, 3|prmt.b32 %y#, %r#, "
            "5, 0x2140|lop3.b32 %y#, %r#, 5, 3, 0x96|sad.u32 %y#, %r#, 5, 1|shf.l.wrap.b32 %y#, %r#, 5, 3|"
            "mad.lo.u32 %y#, %r#, 3, 1|rem.u32 %y#, %r#, 3|div.s32 %y#, %r#, 2>; st.weak.global.u32 [g], %y#;"
        ),
        (
            "atom.relaxed.gpu.global.<add.u32|inc.u32|xor.b32> %t#, [f], <1|3>; and.b32 %o#, %t#, 1; "
            "mul.wide.u32 %o#, %o#, 4; add.u64 %o#, %o#, %gg; st.relaxed.gpu.global.u32 [%o#], 7;"
        ),
        "st.relaxed.gpu.global.u32 [<f|g>], <0xffffffff|5>;",
        "ld.acquire.gpu.global.<s32|u16|s16> %r#, [f];",
        "fence.<acq_rel|sc>.gpu;",
        (
            "mov.u32 %i, 0; L#: atom.relaxed.gpu.global.add.u32 %t#, [f], 1; add.u32 %i, %i, 1; setp.lt.u32 "
            "%q#, %i, 2; @%q# bra L#;"
        ),
    ),
    "tcgen": (
        "tcgen05.mma.cta_group::1.kind::<f16|tf32|i8> [<t|t+2>], <%da|[t+2]>, %db, %idesc, <%no|%yes>;",
        "tcgen05.mma.sp.cta_group::1.kind::f16 [t], %da, %db, [t+2], %idesc, <%no|%yes>;",
        "tcgen05.cp.cta_group::1.<4x256b|128x128b|32x128b.warpx4> [<t|t+2>], %d<a|b>;",
        "tcgen05.shift.cta_group::1.down [t];",
        (
            "tcgen05.ld.sync.aligned.<32x32b.x2.b32 {%r#, %q#}|16x64b.x1.b32 {%r#}>, [t];<| "
            "tcgen05.wait::ld.sync.aligned;>"
        ),
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r#}, [<t|t+2>];<| tcgen05.wait::ld.sync.aligned;>",
        "tcgen05.st.sync.aligned.32x32b.x1.b32 [<t|t+1|t+2>], {%v};<| tcgen05.wait::st.sync.aligned;>",
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [<bar|baz>];",
        "tcgen05.fence::before_thread_sync;",
        "tcgen05.fence::after_thread_sync;",
        "mbarrier.arrive<|.relaxed.cta>.b64 _, [bar];",
        WAIT,
        WAIT,
        "bar.sync 0;",
        "st.weak.shared.u32 [s], 9;",
        "fence.proxy.async;",
        "ld.weak.shared.u32 %r#, [s];",
        "st.<relaxed.cta|weak>.global.u32 [f], 1;",
        SPIN,
    ),
}
PAIRED = ("remote",)
"""Kinds whose threads are always in two CTAs."""


@st.composite
def kinds(draw: st.DrawFn, themes: Sequence[str] = tuple(KINDS)) -> Program:
    """Two or three threads with up to four lines each."""
    theme = draw(st.sampled_from(themes))
    ctas = 2 if theme in PAIRED else draw(st.sampled_from((1, 1, 2)))
    bodies = bodies_of(draw, KINDS[theme])
    return Program(ctas, draw(st.sampled_from((1, 1, 2))), bodies, DECLARATIONS, SET_UP, theme == "grids")
