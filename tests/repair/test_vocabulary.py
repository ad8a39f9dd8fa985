"""What fix changes: the number of a barrier, a rank, .noinc, the parity of the next round; and what weaken narrows."""

from __future__ import annotations

import pytest

from memmodel import api
from memmodel.engine import Options
from memmodel.errors import InputError
from memmodel.repair.fix import fix
from memmodel.repair.weaken import weaken

pytestmark = pytest.mark.turns(2)

MODELS = (api.load("ptx-9.4"),)

TWO_NUMBERS = """PTX ids
thread A @ cta 0 { bar.sync 1, 64; }
thread B @ cta 0 { bar.sync 2, 64; }
~exists hang
"""
RANK = """PTX rank
.shared .align 8 .b64 bar = mbarrier(1);
thread A @ cta 0, cluster 0 {
    mov.u32 %b, bar;
    mapa.shared::cluster.u32 %r, %b, 0;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r];
}
thread B @ cta 1, cluster 0 {
WAIT:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [bar], 0;
    @!%p bra WAIT;
}
~exists hang
"""
OTHER_OBJECT = """PTX object
.global .align 16 .u32 g[4];
.shared .align 16 .u32 s[4];
.shared .align 8 .b64 a = mbarrier(1);
.shared .align 8 .b64 b = mbarrier(1);
thread P @ cta 0 {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [a], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [b];
}
thread C @ cta 0 {
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [a], 0;
    @!%p bra WAIT;
}
~exists hang
"""
STORED_TO_ITSELF = """PTX itself
.shared .u32 in;
thread A @ cta 0, cluster 0 {
    mov.u32 %x, in;
    mapa.shared::cluster.u32 %r, %x, 0;
    st.shared::cluster.u32 [%r], 4;
    barrier.cluster.arrive;
    barrier.cluster.wait;
}
thread B @ cta 1, cluster 0 { barrier.cluster.arrive; barrier.cluster.wait; ld.shared::cta.u32 %r0, [in]; }
~exists (B:r0 != 4)
"""
SAME_STAGE = """PTX stage
.global .align 16 .u32 g[4] = {1};
.shared .align 16 .u32 s[4];
.shared .align 8 .b64 full[2] = mbarrier(1);
thread P @ cta 0 {
    mbarrier.arrive.shared::cta.b64 _, [full];
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full+8], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [full+8];
}
thread C @ cta 0 {
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [full], 0;
    @!%p bra WAIT;
    ld.shared.u32 %r, [s];
}
~exists (C:r == 0)
"""
GIVEN_UP = """PTX permit
.shared .align 4 .b32 slot;
.tensor .b32 t[1];
thread A @ cta 0 {
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
    ld.shared.b32 %ta, [slot];
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %ta, 32;
}
~exists undefined
"""
TO_ONE_CTA = """PTX mask
.global .align 16 .u32 g[4];
.shared .align 16 .u32 s[4];
.shared .align 8 .b64 full = mbarrier(1);
thread L @ cta 0, cluster 0 {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], [g], 16, [full], 1;
}
thread R @ cta 1, cluster 0 {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [full], 0;
    @!%p bra WAIT;
}
~exists hang
"""
ARRIVES_ONLY = """PTX arrives
.shared .u32 s;
thread P @ cta 0 { st.shared.u32 [s], 1; bar.sync 1, 64; }
thread C @ cta 0 { bar.arrive 1, 64; ld.shared.u32 %r, [s]; }
~exists (C:r == 0)
"""
TWO_OF_THREE = """PTX warps
.shared .u32 x;
thread A @ cta 0 { st.shared.u32 [x], 1; setp.eq.u32 %p, 1, 1; barrier.red.popc.u32 %n, 2, 64, %p; }
thread B @ cta 0 { setp.eq.u32 %p, 1, 1; barrier.red.popc.u32 %n, 2, 64, %p; ld.shared.u32 %r, [x]; }
thread C @ cta 0 { setp.eq.u32 %p, 1, 1; barrier.red.popc.u32 %n, 2, 64, %p; ld.shared.u32 %r, [x]; }
~exists hang
"""
HANDED_BACK = """PTX back
.global .align 16 .u32 out[4];
.shared .align 16 .u32 s[4] = {1};
thread T @ cta 0 {
    cp.async.bulk.global.shared::cta.bulk_group [out], [s], 16;
    cp.async.bulk.commit_group;
    bar.sync 0;
}
thread W @ cta 0 { bar.sync 0; st.shared.u32 [s], 2; }
~exists (out[0] == 2)
"""
FIRST_STAGE_TWICE = """PTX twice
.shared .align 8 .b64 full[2] = mbarrier(1);
thread P @ cta 0 {
    mbarrier.arrive.shared::cta.b64 _, [full];
    mbarrier.arrive.shared::cta.b64 _, [full];
}
thread C @ cta 0 {
W: mbarrier.try_wait.parity.shared::cta.b64 %p, [full], 0; @!%p bra W;
V: mbarrier.try_wait.parity.shared::cta.b64 %p, [full+8], 0; @!%p bra V;
}
~exists hang
"""
COUNTED_TWICE = """PTX noinc
.global .u32 g;
.shared .u32 s;
.shared .align 8 .b64 bar = mbarrier(1);
thread A @ cta 0 { cp.async.ca.shared.global [s], [g], 4; cp.async.mbarrier.arrive.shared::cta.b64 [bar]; }
thread B @ cta 0 {
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    @!%p bra WAIT;
}
~exists hang
"""
SAME_PARITY = """PTX flip
.shared .u32 buf[2];
.shared .align 8 .b64 full = mbarrier(1);
thread P @ cta 0 {
    st.shared.u32 [buf], 1;
    mbarrier.arrive.shared::cta.b64 _, [full];
    bar.sync 0;
    st.shared.u32 [buf+4], 2;
    mbarrier.arrive.shared::cta.b64 _, [full];
}
thread C @ cta 0 {
    mov.u64 %a, buf;
    mov.u32 %phase, 0;
    mov.u32 %i, 0;
LOOP:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [full], %phase;
    @!%p bra LOOP;
    setp.eq.u32 %first, %i, 0;
    @%first bar.sync 0;
    ld.shared.u32 %v, [%a];
    add.u64 %a, %a, 4;
    add.u32 %i, %i, 1;
    setp.lt.u32 %q, %i, 2;
    @%q bra LOOP;
}
~exists (C:v == 0)
"""


@pytest.mark.parametrize(
    ("text", "change"),
    [
        (TWO_NUMBERS, "A, line 2: 1 -> 2 in bar.sync"),
        (RANK, "A, line 5: 0 -> 1 in mapa.shared::cluster.u32"),
        (COUNTED_TWICE, "A, line 5: cp.async.mbarrier.arrive.shared::cta.b64 -> cp.async.mbarrier.arrive.noinc"),
        (OTHER_OBJECT, "P, line 8: [b] -> [a] in cp.async.bulk"),
        (STORED_TO_ITSELF, "A, line 5: 0 -> 1 in mapa.shared::cluster.u32"),
        (SAME_STAGE, "C, line 12: [full] -> [full+8] in mbarrier.try_wait.parity"),
        (GIVEN_UP, "A, line 5: move tcgen05.relinquish_alloc_permit"),
        (TO_ONE_CTA, "L, line 7: 1 -> 3 in cp.async.bulk"),
        (ARRIVES_ONLY, "C, line 4: bar.arrive -> bar.sync"),
        (TWO_OF_THREE, "A, B, C, lines 3, 4, 5: 64 -> 96 in barrier 2"),
        (HANDED_BACK, "T, line 7: cp.async.bulk.wait_group.read 0 before bar.sync"),
        (FIRST_STAGE_TWICE, "P, line 4: [full] -> [full+8] in mbarrier.arrive"),
        (SAME_PARITY, "C, line 24: xor.b32 %phase, %phase, 1, for the other parity in the next round, before bra"),
    ],
    ids=[
        "barrier",
        "rank",
        "noinc",
        "object",
        "always",
        "stage",
        "permit",
        "mask",
        "arrive",
        "reduced",
        "reads",
        "twice",
        "parity",
    ],
)
def test_the_number_that_is_wrong_is_changed(text: str, change: str) -> None:
    first = fix("t", text, MODELS, Options(), most=1).repairs[0].changes
    assert len(first) == 1 and first[0].what.startswith(change)


MAY_HANG = """PTX token
.global .u32 data;
.global .u32 f;
.global .u32 g;
thread A @ cta 0 { st.global.u32 [data], 1; st.release.gpu.global.u32 [f], 1; }
thread B @ cta 1 {
    ld.relaxed.gpu.global.u32 %t, [f];
    setp.eq.u32 %p, %t, 1;
    @%p st.release.gpu.global.u32 [g], 1;
}
thread C @ cta 2 {
SPIN:
    ld.acquire.gpu.global.u32 %t, [g];
    setp.eq.u32 %p, %t, 0;
    @%p bra SPIN;
    ld.global.u32 %r, [data];
}
~exists (C:r == 0)
"""


def test_order_is_repaired_beside_a_thread_that_may_wait_for_ever() -> None:
    """B looks once, so C may wait for ever; what is wrong beside that has a repair that adds order alone."""
    text = MAY_HANG.replace("ld.relaxed.gpu.global.u32 %t, [f]", "atom.relaxed.gpu.global.exch.b32 %t, [f], 0")
    found = fix("t", text, MODELS, Options(), most=1)
    assert "what waits for ever in executions without the outcome still does" in found.reason
    assert "-> atom.acquire.gpu" in found.repairs[0].changes[0].what


MAP = """PTX map
.global .align 16 .u32 old[4] = {1};
.global .align 16 .u32 new[4] = {2};
.global .align 128 .b8 map[128] = tensormap(old);
.global .u32 flag;
.shared .align 16 .u32 s[4];
.shared .align 8 .b64 bar = mbarrier(1);
thread A @ cta 0 {
    mov.u64 %a, new;
    tensormap.replace.tile.global_address.global.b1024.b64 [map], %a;
    fence.proxy.tensormap::generic.release.sys;
    st.relaxed.gpu.global.u32 [flag], 1;
}
thread B @ cta 1 {
SPIN:
    ld.relaxed.gpu.global.u32 %f, [flag];
    setp.eq.u32 %p, %f, 0;
    @%p bra SPIN;
    fence.proxy.tensormap::generic.acquire.sys [map], 128;
    mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [bar], 16;
    cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [s], [map, {0}], [bar];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    @!%p bra WAIT;
    ld.shared.u32 %r, [s];
}
~exists (B:r == 1)
"""


def test_weaken_narrows_the_scope_of_half_a_proxy_fence() -> None:
    what = [change.what for change in weaken("t", MAP, MODELS, Options()).changes]
    assert all(
        any(f"{half}.sys -> " in one and f"{half}.gpu" in one for one in what) for half in ("release", "acquire")
    )
    assert len(what) == 2


def test_a_table_that_has_no_equal_in_ptx_is_said_to_be_one() -> None:
    text = "PTX t\n{ x = 0; s @ surface aliases x; }\n P0@cta 0 ;\n sust.weak s, 1 ;\nexists (x == 0)\n"
    with pytest.raises(InputError, match="tests are changed as PTX, and this table has no equal there: sust"):
        fix("t", text, MODELS, Options())
