"""Hand-overs that come to another place than the one that waits: another value, object, CTA, barrier or warp."""

from __future__ import annotations

import pytest
from helpers.mistakes import ONE_BARRIER_FOR_TWO

from memmodel import api

FLAG = "SPIN:\n    ld.acquire.gpu.global.u32 %f, [f];\n    setp.eq.u32 %p, %f, 0;\n    @%p bra SPIN;"


def explained(text: str) -> list[str]:
    """The obstacles of the outcome of a test."""
    return [obstacle.text for obstacle in api.explain(text).stories[0].obstacles]


def test_a_value_that_is_stored_twice_does_not_say_which_store_was_seen() -> None:
    """Q reads the first of two ones: the loop around its load ends, whatever comes later."""
    text = f"""PTX again
.global .u32 d;
.global .u32 f;
thread P @ cta 0, gpu 0 {{
    st.release.gpu.global.u32 [f], 1; st.global.u32 [d], 1; st.release.gpu.global.u32 [f], 1;
}}
thread Q @ cta 1, gpu 0 {{ {FLAG} ld.global.u32 %r, [d]; }}
~exists (Q:r == 0)
"""
    (why,) = explained(text)
    assert "which c: W.release.gpu f = 1 (P, line 5) stores again: it need not have seen that" in why


def test_an_object_of_another_cta_is_not_waited_for() -> None:
    """The end of the store is told on an object of Q's CTA: P cannot wait for it before it arrives."""
    text = """PTX remote
.shared .u32 x;
.shared .align 8 .b64 data = mbarrier(1);
.shared .align 8 .b64 ready = mbarrier(1);
thread P @ cta 0, cluster 0, gpu 0 {
    st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [x@cta1], 3, [data@cta1];
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [ready@cta1];
}
thread Q @ cta 1, cluster 0, gpu 0 {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [data], 4;
W:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [ready], 0;
    @!%p bra W;
    ld.shared.u32 %r, [x];
}
~exists (Q:r == 0)
"""
    (why,) = explained(text)
    assert "may not be over at g: R x@cta1 = 0 (Q, line 14)" in why


def test_bytes_that_are_missing_may_have_come_to_another_object() -> None:
    text = """PTX elsewhere
.global .align 16 .u32 g[4];
.shared .align 16 .u32 s[4];
.shared .align 8 .b64 full0 = mbarrier(1);
.shared .align 8 .b64 full1 = mbarrier(1);
thread T @ cta 0 {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full0], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [full1];
W:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [full0], 0;
    @!%p bra W;
}
~exists hang
"""
    hang = api.explain(text).stuck
    assert hang is not None and hang.waiting[0].goes_on.startswith("the 16 bytes that full1 gets and does not expect")


def test_an_arrival_that_raises_the_count_itself_is_named() -> None:
    """A count that is smaller by one would be none."""
    text = """PTX raises
.global .align 16 .u32 g[4];
.shared .align 16 .u32 s[4];
.shared .align 8 .b64 bar = mbarrier(1);
thread P @ cta 0 { cp.async.cg.shared.global [s], [g], 16; cp.async.mbarrier.arrive.shared.b64 [bar]; }
thread C @ cta 0 {
W:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    @!%p bra W;
}
~exists hang
"""
    hang = api.explain(text).stuck
    assert (
        hang is not None
        and hang.waiting[0].goes_on.startswith(".noinc at cp.async.mbarrier.arrive")
        and "smaller" not in str(hang)
    )


OTHER_BARRIER = """PTX other
.shared .u32 s = 0;
thread P @ cta 0 { st.shared.u32 [s], 1; bar.arrive 1, 64; }
thread C @ cta 0 { bar.sync 2, 64; ld.shared.u32 %r, [s]; }
~exists hang
"""
SIGNAL_CLEARED = """PTX cleared
.global .u32 pad = 1;
thread A @ cta 0 { st.release.gpu.global.u32 [pad], 2; }
thread B @ cta 1 {
    st.relaxed.gpu.global.u32 [pad], 0;
S:  ld.acquire.gpu.global.u32 %t, [pad];
    setp.ne.u32 %p, %t, 2;
    @%p bra S;
}
~exists hang
"""
CREDIT_AT_HOME = """PTX credit
.shared .align 8 .b64 empty = mbarrier(1);
thread P @ cta 0, cluster 0 {
W:  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [empty], 0;
    @!%p bra W;
}
thread D @ cta 1, cluster 0 { mbarrier.arrive.shared::cta.b64 _, [empty]; }
~exists hang
"""
GIVEN_BACK_ONCE = """PTX once
.shared .align 8 .b64 empty = mbarrier(1);
thread P @ cta 0 {
V:  mbarrier.try_wait.parity.shared::cta.b64 %p, [empty], 0;
    @!%p bra V;
W:  mbarrier.try_wait.parity.shared::cta.b64 %p, [empty], 1;
    @!%p bra W;
}
thread C @ cta 0 { mbarrier.arrive.shared::cta.b64 _, [empty]; }
~exists hang
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GIVEN_BACK_ONCE, "an arrive on empty: nobody arrives in the phase that it waits for, phase 1"),
        (OTHER_BARRIER, "the arrival of P, which comes to barrier 1 instead"),
        (
            SIGNAL_CLEARED,
            "st.release.gpu.global.u32 (A, line 3) is overwritten by st.relaxed.gpu.global.u32 (B, line 5)",
        ),
        (CREDIT_AT_HOME, "(D, line 7) on empty@cta0: it is on empty@cta1, for which nobody waits"),
    ],
)
def test_a_hang_names_what_came_and_does_not_count(text: str, said: str) -> None:
    hang = api.explain(text).stuck
    assert hang is not None and said in hang.waiting[0].goes_on and "smaller" not in hang.waiting[0].goes_on


def test_lanes_that_meet_are_no_warps_that_meet() -> None:
    text = """PTX syncwarp
.shared .u32 s = 0;
thread A @ cta 0 { st.shared.u32 [s], 1; bar.warp.sync 0xffffffff; }
thread B @ cta 0 { bar.warp.sync 0xffffffff; ld.shared.u32 %r, [s]; }
~exists (B:r != 1)
"""
    (why,) = explained(text)
    assert why.endswith("bar.warp.sync (arrive, warp barrier) (A, line 3) is for the lanes of one warp")


def test_who_pushes_to_a_peer_is_told_of_the_end_by_the_peer() -> None:
    text = """PTX pushes
.shared .u32 x;
.shared .align 8 .b64 bar = mbarrier(1);
thread A @ cta 0, cluster 0 {
    st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [x@cta1], 1, [bar@cta1];
    st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [x@cta1], 2, [bar@cta1];
}
thread B @ cta 1, cluster 0 { mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 8; }
~exists race
"""
    (story, *_) = api.explain(text).stories
    assert "by a thread of the CTA of its object that then tells this one" in story.obstacles[0].repair


def test_a_slot_is_handed_back_before_the_proxy_fence_that_its_refill_has() -> None:
    """No second fence is asked for: what C read is over before the fence, once P hears of it."""
    text = """PTX refilled
.global .align 16 .u32 g[4] = {9};
.shared .align 16 .u32 s[4] = {1};
.shared .align 8 .b64 full = mbarrier(1);
thread P @ cta 0 {
    fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [full];
}
thread C @ cta 0 { ld.shared.u32 %r, [s]; }
~exists (C:r == 9)
"""
    (why,) = explained(text)
    assert why.startswith("nothing orders") and "fence" not in why


def test_the_order_that_is_missing_is_not_against_the_order_that_is_there() -> None:
    """A is read before B writes, by way of f; what C lacks is the same, and not a write of B before A's read."""
    text = """PTX readers
.global .u32 d = 1;
.global .u32 f = 0;
thread A @ cta 0, gpu 0 { ld.global.u32 %r, [d]; red.release.gpu.global.add.u32 [f], 1; }
thread C @ cta 2, gpu 0 { ld.global.u32 %r, [d]; }
thread B @ cta 1, gpu 0 { SPIN: ld.acquire.gpu.global.u32 %f, [f]; setp.eq.u32 %p, %f, 0; @%p bra SPIN;
    st.global.u32 [d], 2;
}
~exists (C:r == 2)
"""
    assert explained(text) == ["nothing orders d: R d = 2 (C, line 5) before f: W d = 2 (B, line 7)"]


def test_the_end_of_a_grid_needs_no_proxy_fence() -> None:
    text = """PTX early
.global .align 16 .u32 x[4];
.shared .align 16 .u32 s[4];
.shared .align 8 .b64 bar = mbarrier(1);
thread A @ cta 0 { griddepcontrol.launch_dependents; st.global.u32 [x], 1; }
thread B @ cta 1, grid 1 {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [x], 16, [bar];
    griddepcontrol.wait;
W:  mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    @!%p bra W;
    ld.shared.u32 %r, [s];
}
~exists (B:r != 1)
"""
    (why,) = explained(text)
    assert "griddepcontrol.wait (wait, end of grid 0) (B, line 9) stands after" in why


STAGE_OFF = """PTX stage
.global .align 16 .u32 g[8];
.shared .align 16 .u32 s[8];
.shared .align 8 .b64 full0 = mbarrier(1);
.shared .align 8 .b64 full1 = mbarrier(1);
thread P @ cta 0 {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full0], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [full0];
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full1], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s+16], [g+16], 16, [full0];
}
thread C @ cta 0 {
W:  mbarrier.try_wait.parity.shared::cta.b64 %p, [full0], 0;
    @!%p bra W;
    ld.shared.u32 %r, [s];
}
~exists race
"""
OWN_RANK = """PTX rank
.shared .u32 x;
thread A @ cta 0, cluster 0 {
    mov.u32 %l, x;
    mapa.shared::cluster.u32 %a, %l, 0;
    st.shared::cluster.u32 [%a], 5;
    barrier.cluster.arrive;
    barrier.cluster.wait;
}
thread B @ cta 1, cluster 0 { barrier.cluster.arrive; barrier.cluster.wait; ld.shared::cta.u32 %r, [x]; }
~exists (B:r == 0)
"""
NOT_PASSED_ON = """PTX chain
.global .u32 x;
thread K0 @ cta 0 { griddepcontrol.launch_dependents; st.global.u32 [x], 1; }
thread K1 @ cta 0, grid 1 { griddepcontrol.launch_dependents; }
thread K2 @ cta 0, grid 2 { griddepcontrol.wait; ld.global.u32 %r, [x]; }
~exists (K2:r == 0)
"""
COMMITTED_BEFORE = """PTX commit
.global .align 16 .u32 g[4] = {9};
.shared .align 16 .u32 sf[4] = {1};
.shared .align 8 .b64 empty = mbarrier(1);
.shared .align 8 .b64 full = mbarrier(1);
.tensor .b32 t;
thread M @ cta 0 {
    mov.u64 %d, sf;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [empty];
    tcgen05.cp.cta_group::1.128x256b [t], %d;
}
thread P @ cta 0 {
E:  mbarrier.try_wait.parity.shared::cta.b64 %p, [empty], 0;
    @!%p bra E;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [sf], [g], 16, [full];
}
~exists (t == 9)
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (STAGE_OFF, "l (P, line 10) tells of its bytes here, and full1 expects them"),
        (OWN_RANK, "a: W x@cta0 = 5 (A, line 6) is to the shared memory of another CTA"),
        (COMMITTED_BEFORE, "(M, line 9) stands before it"),
        (NOT_PASSED_ON, "nothing orders"),
    ],
)
def test_what_happens_elsewhere_is_named(text: str, said: str) -> None:
    """That the words of a tile that are alike come from one copy or the other makes no other outcome."""
    story, *_ = api.explain(text).stories
    assert said in story.obstacles[0].text
    if text is NOT_PASSED_ON:
        assert story.obstacles[0].repair == "griddepcontrol.wait in K1, which ends without it"


def test_arrivals_of_one_thread_that_count_for_each_other_are_named() -> None:
    hang = api.explain(ONE_BARRIER_FOR_TWO).stuck
    assert hang is not None and "bar.arrive (P, line 3) and bar.sync (P, line 3)" in hang.waiting[0].goes_on


def test_a_thread_of_a_dependent_grid_waits_itself() -> None:
    """K1 waits for the grid before; what K2 reads is not to be told by K1."""
    text = """PTX itself
.global .u32 y;
thread K0 @ cta 0 { griddepcontrol.launch_dependents; st.global.u32 [y], 1; }
thread K1 @ cta 0, grid 1 { griddepcontrol.wait; ld.global.u32 %r, [y]; }
thread K2 @ cta 0, grid 1 { ld.global.u32 %r, [y]; }
~exists (K2:r == 0)
"""
    story, *_ = api.explain(text).stories
    assert story.obstacles[0].repair.startswith("griddepcontrol.wait before") and "(K2, line 5)" in str(story.obstacles)
