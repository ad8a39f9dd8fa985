"""What fix puts in the place of another word or moves elsewhere, and what it does not offer."""

from __future__ import annotations

import pytest
from helpers.mistakes import HALF_ALONE, INIT_AGAIN, PASSED_EARLY, TWO_PAIRS

from memmodel import api
from memmodel.engine import Options
from memmodel.isa.module import spelling_of
from memmodel.isa.rows.spelling import Spelling
from memmodel.repair.costs import cost
from memmodel.repair.fix import fix

pytestmark = pytest.mark.turns(2)

MODELS = (api.load("ptx-9.4"),)

TWO_PENDING = """PTX pending
.global .align 16 .u32 out[8];
.shared .align 16 .u32 s[8];
thread A @ cta 0 {
    cp.async.bulk.global.shared::cta.bulk_group [out], [s], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.global.shared::cta.bulk_group [out+16], [s+16], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 2;
    st.shared.u32 [s], 3;
}
~exists undefined
"""
WINDOW = """PTX window
.shared .u32 x;
thread A @ cta 0, cluster 0 {
    mov.u32 %a, x;
    mapa.shared::cluster.u32 %ra, %a, 1;
    st.shared::cta.u32 [%ra], 1;
}
thread B @ cta 1, cluster 0 { }
~exists undefined
"""
TILE = """PTX tile
.shared .align 16 .u32 sa[4];
.shared .align 16 .u32 sb[4];
thread W @ cta 0 {
    mov.u64 %da, sa;
    mov.u64 %db, sb;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %da, %db, 0, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    st.shared.u32 [sa], 9;
    wgmma.wait_group.sync.aligned 0;
}
~exists race
"""
TWICE = """PTX twice
.shared .u32 x;
thread A @ cta 0, cluster 0 {
    barrier.cluster.arrive.relaxed;
    st.shared::cluster.u32 [x@cta1], 1;
    barrier.cluster.arrive;
    barrier.cluster.wait;
}
thread B @ cta 1, cluster 0 {
    barrier.cluster.arrive.relaxed;
    barrier.cluster.wait;
    barrier.cluster.arrive;
    barrier.cluster.wait;
}
~exists undefined
"""
AT_HOME = """PTX home
.shared .u32 s @ cta 1;
.shared .align 8 .b64 empty = mbarrier(1);
thread L @ cta 0, cluster 0 {
    mbarrier.arrive.shared::cta.b64 _, [empty];
W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [empty], 0; @!%p bra W;
    st.shared::cluster.u32 [s@cta1], 1;
}
thread R @ cta 1, cluster 0 { ld.shared::cta.u32 %r, [s]; mbarrier.arrive.shared::cta.b64 _, [empty]; }
~exists (R:r == 1)
"""

ELECTED = """PTX elected
.shared .align 8 .b64 empty;
thread C @ cta 0 {
    mbarrier.init.shared::cta.b64 [empty], 32;
    mbarrier.arrive.shared::cta.b64 _, [empty];
    bar.sync 0;
}
thread P @ cta 0 {
    bar.sync 0;
W: mbarrier.try_wait.parity.shared::cta.b64 %p, [empty], 0; @!%p bra W;
}
~exists hang
"""
COMPLETES = """PTX completes
.shared .align 8 .b64 bar = mbarrier(1);
thread A @ cta 0 { mbarrier.arrive.noComplete.shared::cta.b64 %s, [bar], 1; }
~exists undefined
"""
COLUMNS = """PTX columns
.shared .align 4 .b32 slot;
.tensor .b32 t[1];
thread A @ cta 0 {
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
    ld.shared.b32 %ta, [slot];
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %ta, 64;
}
~exists undefined
"""
READ_ONLY = """PTX nc
.global .u32 d;
thread A @ cta 0 { st.global.u32 [d], 1; bar.sync 0; }
thread B @ cta 0 { bar.sync 0; ld.global.nc.u32 %r, [d]; }
~exists (B:r == 0)
"""
COUNTED_UP = """PTX parity
.shared .align 8 .b64 bar = mbarrier(1);
thread A @ cta 0 {
    mov.u32 %ph, 0;
    mov.u32 %i, 0;
LOOP:
    mbarrier.arrive.shared::cta.b64 _, [bar];
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], %ph;
    add.u32 %ph, %ph, 1;
    add.u32 %i, %i, 1;
    setp.lt.u32 %q, %i, 3;
    @%q bra LOOP;
}
~exists undefined
"""
NO_COPY = """PTX bytes
.shared .u32 s;
.shared .align 8 .b64 full = mbarrier(1);
thread P @ cta 0 { mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 4; st.shared.u32 [s], 1; }
thread C @ cta 0 {
W: mbarrier.try_wait.parity.shared::cta.b64 %p, [full], 0; @!%p bra W;
    ld.shared.u32 %r, [s];
}
~exists hang
"""
EACH_EXPECTS = """PTX each
.global .align 16 .u32 g[4];
.shared .align 16 .u32 s[4];
.shared .align 8 .b64 full = mbarrier(1);
thread A @ cta 0 {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [full];
}
thread B @ cta 0 {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
W: mbarrier.try_wait.parity.shared::cta.b64 %p, [full], 0; @!%p bra W;
}
~exists undefined
"""
SOME_WARPS = """PTX warps
.shared .align 8 .b64 go = mbarrier(1);
thread A @ cta 0 { bar.sync 0; mbarrier.arrive.shared::cta.b64 _, [go]; }
thread B @ cta 0 { bar.sync 0; }
thread C @ cta 0 {
W: mbarrier.try_wait.parity.shared::cta.b64 %p, [go], 0; @!%p bra W;
}
~exists hang
"""
NEXT_TILE = """PTX next
.shared .u32 tile;
.shared .u32 more;
thread S @ cta 0 {
    st.shared.u32 [tile], 1;
    bar.sync 1;
    ld.relaxed.cta.shared.u32 %m, [more];
    setp.eq.u32 %p, %m, 0;
    @%p bra DONE;
    st.shared.u32 [tile], 2;
DONE:
}
thread C @ cta 0 { bar.sync 1; st.relaxed.cta.shared.u32 [more], 1; ld.shared.u32 %r, [tile]; }
~exists (C:r != 1)
"""


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (HALF_ALONE, "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster before cp.async.bulk"),
        (TWO_PENDING, "2 -> 1 in cp.async.bulk.wait_group.read"),
        (WINDOW, "st.shared::cta.u32 -> st.shared::cluster.u32"),
        (TILE, "move wgmma.wait_group.sync.aligned before st.shared.u32"),
        (AT_HOME, "b64 _, [empty@cta0] with count of empty 1 -> 2"),
        (
            PASSED_EARLY,
            "move tcgen05.fence::before_thread_sync and mbarrier.arrive.shared::cta.b64 after tcgen05.wait::ld",
        ),
        (ELECTED, "32 -> 1 in mbarrier.init"),
        (TWO_PAIRS, "A and B: barrier 1 -> 2"),
        (INIT_AGAIN, "mbarrier.inval.shared::cta.b64 [bar]; before mbarrier.init"),
        (COMPLETES, "mbarrier.arrive.noComplete.shared::cta.b64 -> mbarrier.arrive.shared::cta.b64"),
        (COLUMNS, "32 -> 64 in tcgen05.alloc"),
        (READ_ONLY, "ld.global.nc.u32 -> ld.global.u32"),
        (COUNTED_UP, "add.u32 -> xor.b32, for a parity"),
        (NO_COPY, "mbarrier.arrive.shared::cta.b64 after st.shared.u32"),
        (SOME_WARPS, "A, B: a count of 64 at barrier 0"),
        (NEXT_TILE, "S, line 6: move bar.sync behind DONE (line 10)"),
    ],
    ids=[
        "half",
        "pending",
        "window",
        "wait",
        "home",
        "fence",
        "count",
        "pairs",
        "inval",
        "completes",
        "columns",
        "nc",
        "parity",
        "bytes",
        "warps",
        "branch",
    ],
)
def test_the_line_that_is_wrong_is_the_one_that_changes(text: str, wanted: str) -> None:
    (change,) = fix("t", text, MODELS, Options(), most=1).repairs[0].changes
    assert wanted in change.what


TOLD_AT_HOME = """PTX told
.shared .align 16 .u32 src[4];
.shared .align 16 .u32 dst[4];
.shared .align 8 .b64 bar = mbarrier(1);
thread A @ cta 0, cluster 0 {
    cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [dst@cta1], [src], 16, [bar];
}
thread B @ cta 1, cluster 0 {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
W:  mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    @!%p bra W;
}
~exists hang
"""
GIVEN_BACK_ONCE = """PTX once
.shared .u32 s;
.shared .align 8 .b64 full = mbarrier(1);
.shared .align 8 .b64 empty = mbarrier(1);
thread P @ cta 0 {
    st.shared.u32 [s], 1;
    mbarrier.arrive.shared::cta.b64 _, [full];
V:  mbarrier.try_wait.parity.shared::cta.b64 %p, [empty], 0;
    @!%p bra V;
    st.shared.u32 [s], 2;
    mbarrier.arrive.shared::cta.b64 _, [full];
W:  mbarrier.try_wait.parity.shared::cta.b64 %p, [empty], 1;
    @!%p bra W;
}
thread C @ cta 0 {
F:  mbarrier.try_wait.parity.shared::cta.b64 %p, [full], 0;
    @!%p bra F;
    ld.shared.u32 %r, [s];
    mbarrier.arrive.shared::cta.b64 _, [empty];
G:  mbarrier.try_wait.parity.shared::cta.b64 %p, [full], 1;
    @!%p bra G;
    ld.shared.u32 %r2, [s];
}
~exists hang
"""
GUARDED = """PTX guarded
.global .u32 x;
thread K0 @ cta 0 {
    griddepcontrol.launch_dependents;
    st.global.u32 [x], 1;
}
thread K1 @ cta 1, grid 1 {
    mov.u32 %c, %ctaid.x;
    setp.eq.u32 %p, %c, 0;
    @%p griddepcontrol.wait;
    ld.global.u32 %r, [x];
}
~exists (K1:r == 0)
"""
OLD_STATE = """PTX state
.shared .align 8 .b64 bar = mbarrier(2);
thread A @ cta 0 {
    mbarrier.arrive.shared::cta.b64 %s0, [bar];
V:  mbarrier.try_wait.shared::cta.b64 %p, [bar], %s0;
    @!%p bra V;
    mbarrier.arrive.shared::cta.b64 %s1, [bar];
W:  mbarrier.try_wait.shared::cta.b64 %p, [bar], %s0;
    @!%p bra W;
}
thread B @ cta 0 {
    mbarrier.arrive.shared::cta.b64 %s0, [bar];
V:  mbarrier.try_wait.shared::cta.b64 %p, [bar], %s0;
    @!%p bra V;
    mbarrier.arrive.shared::cta.b64 %s1, [bar];
}
~exists undefined
"""
BEHIND_THE_CHECK = """PTX check
.global .u32 seq;
.global .u32 b;
thread W @ cta 0 {
    st.relaxed.gpu.global.u32 [seq], 1;
    fence.acq_rel.gpu;
    st.relaxed.gpu.global.u32 [b], 1;
}
thread R @ cta 1 {
    ld.acquire.gpu.global.u32 %s1, [seq];
    fence.acq_rel.gpu;
    ld.relaxed.gpu.global.u32 %s2, [seq];
    ld.relaxed.gpu.global.u32 %y, [b];
}
~exists (R:s1 == 0 /\\ R:s2 == 0 /\\ R:y == 1)
"""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (GUARDED, "K1, line 11: griddepcontrol.wait before ld.global.u32"),
        (OLD_STATE, "A, line 8: %s0 -> %s1 in mbarrier.try_wait"),
        (BEHIND_THE_CHECK, "R, line 13: move ld.relaxed.gpu.global.u32 before fence.acq_rel.gpu (line 11)"),
        (TOLD_AT_HOME, "A, line 6: [bar] -> [bar@cta1] in cp.async.bulk"),
        (GIVEN_BACK_ONCE, "C, line 22: mbarrier.arrive.shared::cta.b64 _, [empty]; after ld.shared.u32"),
    ],
)
def test_an_expert_would_change_this_line(text: str, wanted: str) -> None:
    repairs = fix("t", text, MODELS, Options(), most=3).repairs
    assert any(wanted in change.what for repair in repairs for change in repair.changes)


def test_a_wait_is_put_between_two_arrivals_and_no_arrival_passes_its_wait() -> None:
    changes = [edit.what for repair in fix("t", TWICE, MODELS, Options()).repairs for edit in repair.changes]
    assert any("barrier.cluster.wait; before st.shared::cluster.u32" in what for what in changes)
    assert not any("move barrier.cluster.arrive" in what for what in changes)


def test_of_two_threads_one_expects_the_bytes_and_both_count() -> None:
    wanted = "mbarrier.arrive.expect_tx.shared::cta.b64 -> mbarrier.arrive.shared::cta.b64 with count of full 1 -> 2"
    repairs = fix("t", EACH_EXPECTS, MODELS, Options(), most=4).repairs
    assert any(wanted in edit.what for repair in repairs for edit in repair.changes)


def test_no_group_is_committed_that_is_empty() -> None:
    repairs = fix("t", TWO_PENDING, MODELS, Options()).repairs
    assert not any("commit_group before cp.async.bulk.commit_group" in e.what for r in repairs for e in r.changes)


def test_the_fence_of_an_init_costs_less_than_a_release_of_the_cluster() -> None:
    """Nothing has to leave the SM or the cluster for it: weaken keeps it, and the arrival behind it relaxed."""
    fence, arrive = map(spelling_of, ("fence.mbarrier_init.release.cluster", "barrier.cluster.arrive.release"))
    assert isinstance(fence, Spelling) and isinstance(arrive, Spelling)
    assert cost(fence) < cost(arrive)
