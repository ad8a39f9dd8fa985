"""Reasons about flags: two that pass each other, values that say nothing, values that nobody stores, locks."""

from __future__ import annotations

import pytest
from helpers.mistakes import LOCKS_IN_TWO_ORDERS, NEVER_STORED, NOT_WAITED_FOR, STARTS_SET, UNEXPECTED_MULTICAST

from memmodel import api
from memmodel.cat import load_model
from memmodel.engine import Options
from memmodel.repair.fix import fix
from memmodel.why.records import Reason

ENTER = "setp.ne.u32 %p, %t, 0; @%p bra OUT; ld.global.u32 %x, [v]; add.u32 %x, %x, 1; st.global.u32 [v], %x;\nOUT:"
PASS = f"""PTX pass
.global .u32 fa;
.global .u32 fb;
.global .u32 v;
thread A @ cta 0 {{ st.relaxed.gpu.global.u32 [fa], 1; fence.sc.gpu; ld.relaxed.gpu.global.u32 %t, [fb]; {ENTER} }}
thread B @ cta 1 {{ st.relaxed.gpu.global.u32 [fb], 1; fence.acq_rel.gpu; ld.relaxed.gpu.global.u32 %t, [fa]; {ENTER} }}
~exists race
"""


def test_two_that_pass_each_other_lack_a_fence_sc() -> None:
    """That both add to v is what the section is for; it is A that has a fence.sc, and B that has none."""
    (story,) = api.explain(PASS).stories
    assert [it.reason for it in story.obstacles] == [Reason.NO_FENCE_SC]
    assert story.obstacles[0].repair == "fence.sc before h (B, line 7)"
    (first, *_) = fix("t", PASS, (load_model("ptx-9.4"),), Options()).repairs
    assert first.new == PASS.replace("fence.acq_rel.gpu", "fence.sc.gpu")


def test_a_value_that_is_there_at_the_start_says_nothing() -> None:
    (story, *_) = api.explain(STARTS_SET).stories
    assert "which b: W.release.gpu f = 1 (A, line 4) stores again" in story.obstacles[0].text


EXCHANGED = """PTX ranks
.global .u32 pa;
.global .u32 pb;
.global .u32 xb;
thread A @ cta 0 {
    st.release.gpu.global.u32 [pb], 1;
S:  ld.acquire.gpu.global.u32 %t, [pa];
    setp.ne.u32 %p, %t, 1;
    @%p bra S;
    ld.global.u32 %r, [xb];
    st.release.gpu.global.u32 [pb], 1;
}
thread B @ cta 1 {
    st.global.u32 [xb], 1;
    st.release.gpu.global.u32 [pa], 1;
S:  ld.acquire.gpu.global.u32 %t, [pb];
    setp.ne.u32 %p, %t, 1;
    @%p bra S;
S2: ld.acquire.gpu.global.u32 %t, [pb];
    setp.ne.u32 %p, %t, 1;
    @%p bra S2;
    st.global.u32 [xb], 2;
}
~exists (A:r == 2)
"""


def test_a_read_of_what_comes_too_early_is_explained_by_the_flag_that_was_set_before() -> None:
    """A reads xb before it sets the flag for the second time; B takes the first time for that."""
    (story, *_) = api.explain(EXCHANGED).stories
    assert [it.reason for it in story.obstacles] == [Reason.NOT_SEEN] and "stores again" in story.obstacles[0].text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (NEVER_STORED, "it compares with 2, and f is left as 1 by st.release.gpu.global.u32 (A, line 4)"),
        (LOCKS_IN_TWO_ORDERS, "has taken l2 and holds it; or one order in which all threads take the two"),
        (UNEXPECTED_MULTICAST, "in the phase that it waits for; it has to expect the 16 bytes that come there"),
    ],
)
def test_a_hang_names_what_is_there(text: str, said: str) -> None:
    hang = api.explain(text).stuck
    assert hang is not None and said in hang.waiting[0].goes_on


TAKE = """ld.relaxed.gpu.global.u32 %t, [tail]; add.u32 %n, %t, 1; st.relaxed.gpu.global.u32 [tail], %n;
    mul.lo.u32 %o, %t, 4; cvt.u64.u32 %o, %o; mov.u64 %at, q; add.u64 %at, %at, %o; st.global.u32 [%at], 1;"""
CLAIMED = f"""PTX claimed
.global .u32 tail;
.global .u32 q[2];
thread A @ cta 0 {{ {TAKE} }}
thread B @ cta 1 {{ {TAKE} }}
~exists race
"""
HALVES = """PTX halves
.global .align 8 .u32 slot[2];
thread A @ cta 0 { mov.b64 %v, {7, 1}; st.relaxed.gpu.global.b64 [slot], %v; }
thread B @ cta 1 { ld.relaxed.gpu.global.u32 %t, [slot+4]; ld.relaxed.gpu.global.u32 %r, [slot]; }
~exists (B:r == 0)
"""
OTHER_NAME = """PTX multimem
.global .u32 d;
.global .u32 f0;
.global .u32 f1;
.global .u32 all = multimem(f0, f1);
thread A @ cta 0, gpu 0 { st.global.u32 [d], 1; multimem.red.release.sys.global.add.u32 [all], 1; }
thread B @ cta 0, gpu 1 {
S:  ld.relaxed.sys.global.u32 %t, [f1];
    setp.eq.u32 %p, %t, 0;
    @%p bra S;
    ld.global.u32 %r, [d];
}
~exists (B:r == 0)
"""
LEAVES_TOO_MANY = """PTX groups
.global .align 16 .u32 g[8];
.shared .align 16 .u32 s[8];
thread A @ cta 0 {
    cp.async.cg.shared.global [s], [g], 16; cp.async.commit_group;
    cp.async.cg.shared.global [s+16], [g+16], 16; cp.async.commit_group; cp.async.wait_group 1;
    ld.shared.u32 %r, [s];
    cp.async.wait_group 1;
    ld.shared.u32 %r, [s+16];
}
~exists undefined
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CLAIMED, "comes between"),
        (HALVES, "they overlap in part only"),
        (OTHER_NAME, "are about one location by two names, and do not synchronize"),
        (LEAVES_TOO_MANY, "(A, line 8) waits for older groups only"),
    ],
)
def test_what_there_is_and_what_it_lacks_is_named(text: str, said: str) -> None:
    story, *_ = api.explain(text).stories
    assert said in story.obstacles[0].text and len(story.obstacles) == 1


PASSED_AT_ONCE = """PTX passed
.shared .align 8 .b64 empty = mbarrier(1);
.shared .align 8 .b64 full = mbarrier(1);
thread P @ cta 0 {
E:  mbarrier.try_wait.parity.shared::cta.b64 %p, [empty], 1;
    @!%p bra E;
    mbarrier.arrive.shared::cta.b64 _, [full];
}
thread C @ cta 0 {
    mbarrier.arrive.shared::cta.b64 _, [empty];
F:  mbarrier.try_wait.parity.shared::cta.b64 %p, [full], 0;
    @!%p bra F;
    mbarrier.arrive.shared::cta.b64 _, [empty];
}
~exists hang
"""


def test_who_has_not_waited_for_the_phase_before_has_the_wrong_parity() -> None:
    """C would arrive once more behind its wait for P; P was to wait for the first time that it does."""
    hang = api.explain(PASSED_AT_ONCE).stuck
    assert hang is not None and [it.reason for it in hang.waiting] == [Reason.PARITY, Reason.OTHER_THREAD_WAITS]


RELEASED_EARLY = """PTX early
.global .align 16 .u32 g[8];
.shared .align 16 .u32 s[4];
.shared .align 8 .b64 full = mbarrier(1);
.shared .align 8 .b64 empty = mbarrier(1);
thread P @ cta 0 {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [full];
E:  mbarrier.try_wait.parity.shared::cta.b64 %p, [empty], 0;
    @!%p bra E;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g+16], 16, [full];
}
thread C @ cta 0 {
F:  mbarrier.try_wait.parity.shared::cta.b64 %p, [full], 0;
    @!%p bra F;
    mbarrier.arrive.shared::cta.b64 _, [empty];
    ld.shared.u32 %r, [s];
    fence.proxy.async.shared::cta;
}
~exists race
"""
RED_THEN_LOAD = """PTX red
.global .u32 n;
.global .u32 x;
thread A @ cta 0 { st.global.u32 [x], 1; red.release.gpu.global.add.u32 [n], 1; }
thread B @ cta 1 {
    red.relaxed.gpu.global.add.u32 [n], 2;
    ld.relaxed.gpu.global.u32 %t, [n];
    setp.ne.u32 %p, %t, 3;
    @%p bra OUT;
    ld.global.u32 %r, [x];
OUT:
}
~exists (B:t == 3 /\\ B:r == 0)
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (RELEASED_EARLY, "mbarrier.arrive.shared::cta.b64 empty (C, line 17) stands before"),
        (RED_THEN_LOAD, "R.relaxed.gpu n = 3 (B, line 7) is relaxed where an acquire is needed"),
        (NOT_WAITED_FOR, "nothing orders e: W.relaxed.sys p1 = 2 (B, line 12) before d"),
    ],
)
def test_what_stands_in_the_wrong_place_or_is_too_weak_is_named(text: str, said: str) -> None:
    """The arrive orders the two copies as well, and still does where it stands later."""
    story, *_ = api.explain(text).stories
    assert said in story.obstacles[0].text and len(story.obstacles) == 1


COMES_LATE = """PTX late
.shared .align 8 .b64 full = mbarrier(1);
thread P @ cta 0 {
    mbarrier.arrive.shared::cta.b64 _, [full];
W:  mbarrier.try_wait.parity.shared::cta.b64 %p, [full], 0;
    @!%p bra W;
    mbarrier.arrive.shared::cta.b64 _, [full];
}
thread C @ cta 0 {
W:  mbarrier.try_wait.parity.shared::cta.b64 %p, [full], 0;
    @!%p bra W;
}
~exists hang
"""


def test_who_comes_two_phases_late_has_the_right_parity() -> None:
    hang = api.explain(COMES_LATE).stuck
    assert hang is not None and [it.reason for it in hang.waiting] == [Reason.NO_SYNCHRONIZATION]


def test_two_that_raise_one_flag_are_not_told_apart() -> None:
    text = STARTS_SET.replace("f = 1;", "f;").replace(
        "~exists", "thread X @ cta 2 { st.relaxed.gpu.global.u32 [f], 1; }\n~exists"
    )
    story, *_ = api.explain(text).stories
    assert "stores as well: it need not have seen that" in story.obstacles[0].text


RESET = """PTX reset
.global .u32 n;
thread A @ cta 0 { red.release.gpu.global.add.u32 [n], 1; red.release.gpu.global.add.u32 [n], 1; }
thread W @ cta 1 {
S:  ld.acquire.gpu.global.u32 %t, [n];
    setp.eq.u32 %p, %t, 0;
    @%p bra S;
    st.relaxed.gpu.global.u32 [n], 0;
S2: ld.acquire.gpu.global.u32 %t, [n];
    setp.eq.u32 %p, %t, 0;
    @%p bra S2;
}
~exists hang
"""


def test_of_several_values_the_last_one_is_overwritten() -> None:
    hang = api.explain(RESET).stuck
    assert hang is not None and "is overwritten by st.relaxed.gpu.global.u32 (W, line 8)" in hang.waiting[0].goes_on


def test_what_stands_in_the_wrong_place_is_among_the_places_of_the_reason() -> None:
    """There a repair looks first."""
    story, *_ = api.explain(RELEASED_EARLY).stories
    assert {17, 18} <= {place.line for place in story.obstacles[0].events}
