"""Programs with one mistake each, which `explain` names and `fix` mends."""

from __future__ import annotations

HALF_ALONE = """PTX half
.global .align 16 .u32 g[4];
.shared .align 16 .u32 s[4];
.shared .align 8 .b64 empty = mbarrier(1);
.shared .align 8 .b64 full = mbarrier(1);
thread C @ cta 0 {
    ld.shared.u32 %r, [s];
    fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;
    mbarrier.arrive.shared::cta.b64 _, [empty];
}
thread P @ cta 0 {
W: mbarrier.try_wait.parity.shared::cta.b64 %p, [empty], 0; @!%p bra W;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [full];
}
~exists race
"""

PASSED_EARLY = """PTX back
.tensor .b32 acc[2];
.shared .align 8 .b64 back = mbarrier(1);
thread E @ cta 0 {
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [acc];
    tcgen05.wait::ld.sync.aligned;
    tcgen05.fence::before_thread_sync;
    mbarrier.arrive.shared::cta.b64 _, [back];
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [acc+1];
    tcgen05.wait::ld.sync.aligned;
}
thread M @ cta 0 {
W: mbarrier.try_wait.parity.shared::cta.b64 %p, [back], 0; @!%p bra W;
    tcgen05.fence::after_thread_sync;
    tcgen05.st.sync.aligned.32x32b.x2.b32 [acc], {%v, %v};
    tcgen05.wait::st.sync.aligned;
}
~exists hazard
"""

TWO_PAIRS = """PTX pairs
.shared .u32 x;
thread A @ cta 0 { st.shared.u32 [x], 1; bar.sync 1, 64; }
thread B @ cta 0 { bar.sync 1, 64; ld.shared.u32 %r, [x]; }
thread C @ cta 0 { bar.sync 1, 64; }
thread D @ cta 0 { bar.sync 1, 64; }
~exists (B:r == 0)
"""

INIT_AGAIN = """PTX again
.shared .align 8 .b64 bar;
thread A @ cta 0 { mbarrier.init.shared::cta.b64 [bar], 1; mbarrier.init.shared::cta.b64 [bar], 1; }
~exists undefined
"""

NEVER_STORED = """PTX value
.global .u32 d;
.global .u32 f;
thread A @ cta 0 { st.global.u32 [d], 1; st.release.gpu.global.u32 [f], 1; }
thread B @ cta 1 {
S:  ld.acquire.gpu.global.u32 %t, [f];
    setp.ne.u32 %p, %t, 2;
    @%p bra S;
    ld.global.u32 %r, [d];
}
~exists hang
"""

STARTS_SET = """PTX set
.global .u32 d;
.global .u32 f = 1;
thread A @ cta 0 { st.global.u32 [d], 1; st.release.gpu.global.u32 [f], 1; }
thread B @ cta 1 {
S:  ld.acquire.gpu.global.u32 %t, [f];
    setp.ne.u32 %p, %t, 1;
    @%p bra S;
    ld.global.u32 %r, [d];
}
~exists (B:r != 1)
"""

PAD_USED_TWICE = """PTX twice
.global .u32 d[2];
.global .u32 pad;
thread A @ cta 0 {
    st.global.u32 [d], 1;
    st.release.gpu.global.u32 [pad], 1;
    st.global.u32 [d+4], 2;
    st.release.gpu.global.u32 [pad], 1;
}
thread B @ cta 1 {
S:  ld.acquire.gpu.global.u32 %t, [pad];
    setp.ne.u32 %p, %t, 1;
    @%p bra S;
    ld.global.u32 %r, [d];
S2: ld.acquire.gpu.global.u32 %t, [pad];
    setp.ne.u32 %p, %t, 1;
    @%p bra S2;
    ld.global.u32 %q, [d+4];
}
~exists (B:q != 2)
"""

LOCKS_IN_TWO_ORDERS = """PTX locks
.global .u32 l1;
.global .u32 l2;
thread A @ cta 0 {
L: atom.acquire.gpu.global.cas.b32 %o, [l1], 0, 1; setp.ne.u32 %p, %o, 0; @%p bra L;
M: atom.acquire.gpu.global.cas.b32 %o, [l2], 0, 1; setp.ne.u32 %p, %o, 0; @%p bra M;
    st.release.gpu.global.u32 [l2], 0;
    st.release.gpu.global.u32 [l1], 0;
}
thread B @ cta 1 {
L: atom.acquire.gpu.global.cas.b32 %o, [l2], 0, 1; setp.ne.u32 %p, %o, 0; @%p bra L;
M: atom.acquire.gpu.global.cas.b32 %o, [l1], 0, 1; setp.ne.u32 %p, %o, 0; @%p bra M;
    st.release.gpu.global.u32 [l1], 0;
    st.release.gpu.global.u32 [l2], 0;
}
~exists hang
"""

UNEXPECTED_MULTICAST = """PTX multicast
.global .align 16 .u32 g[4] = {9};
.shared .align 16 .u32 s[4];
.shared .align 8 .b64 bar = mbarrier(1);
thread P @ cta 0, cluster 0 {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], [g], 16, [bar], 3;
}
thread Q @ cta 1, cluster 0 {
W:  mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    @!%p bra W;
    ld.shared.u32 %r, [s];
}
~exists hang
"""

ONE_BARRIER_FOR_TWO = """PTX one
.shared .u32 s;
thread P @ cta 0 { st.shared.u32 [s], 1; bar.arrive 1, 64; bar.sync 1, 64; st.shared.u32 [s], 2; }
thread C @ cta 0 { bar.sync 1, 64; ld.shared.u32 %r, [s]; bar.arrive 1, 64; }
~exists hang
"""

NOT_WAITED_FOR = """PTX sum
.global .u32 p0;
.global .u32 p1;
.global .u32 all = multimem(p0, p1);
.global .u32 f;
thread A @ cta 0, gpu 0 {
    st.relaxed.sys.global.u32 [p0], 1;
    fence.proxy.alias;
    multimem.ld_reduce.relaxed.sys.global.add.u32 %r, [all];
}
thread B @ cta 0, gpu 1 {
    st.relaxed.sys.global.u32 [p1], 2;
    fence.proxy.alias;
    st.release.sys.global.u32 [f], 1;
}
~exists (A:r != 3)
"""
