"""Repairs by another number where one is stored or awaited, by one size, and by one order of locks."""

from __future__ import annotations

import pytest
from helpers.mistakes import (
    LOCKS_IN_TWO_ORDERS,
    NEVER_STORED,
    NOT_WAITED_FOR,
    ONE_BARRIER_FOR_TWO,
    PAD_USED_TWICE,
    STARTS_SET,
    UNEXPECTED_MULTICAST,
)

from memmodel import api
from memmodel.cat import load_model
from memmodel.engine import Options
from memmodel.repair.edits import apply
from memmodel.repair.exchanging.lock_order import lock_order
from memmodel.repair.exchanging.one_size import in_halves
from memmodel.repair.exchanging.other_numbers import at_another_barrier
from memmodel.repair.fix import fix
from memmodel.source import Source

MODELS = (load_model("ptx-9.4"),)

SIZES = """PTX sizes
.global .align 4 .b8 f[4];
.global .u32 d;
thread A @ cta 0 { st.global.u32 [d], 1; st.release.gpu.global.u8 [f], 1; }
thread B @ cta 1 {
S:  ld.acquire.gpu.global.u32 %t, [f];
    setp.eq.u32 %p, %t, 0;
    @%p bra S;
    ld.global.u32 %r, [d];
}
~exists (B:r == 0)
"""
COMPARED_WITH_TWO = """PTX cas
.global .u32 lock;
.global .u32 v;
thread A @ cta 0 {
L:  atom.acquire.gpu.global.cas.b32 %o, [lock], 0, 1;
    setp.ne.u32 %p, %o, 0;
    @%p bra L;
    st.global.u32 [v], 1;
    st.release.gpu.global.u32 [lock], 0;
}
thread B @ cta 1 {
L:  atom.acquire.gpu.global.cas.b32 %o, [lock], 2, 1;
    setp.ne.u32 %p, %o, 2;
    @%p bra L;
    st.global.u32 [v], 2;
    st.release.gpu.global.u32 [lock], 0;
}
~exists hang
"""


def repaired(text: str, most: int = 3) -> list[str]:
    """The changed texts that are offered."""
    return [repair.new for repair in fix("t", text, MODELS, Options(), most=most).repairs]


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (NEVER_STORED, "setp.ne.u32 %p, %t, 1;"),
        (COMPARED_WITH_TWO, "cas.b32 %o, [lock], 0, 1;\n    setp.ne.u32 %p, %o, 0;"),
        (STARTS_SET, "setp.ne.u32 %p, %t, 2;"),
        (SIZES, "ld.acquire.gpu.global.u8 %t, [f];"),
        (SIZES, "st.release.gpu.global.u32 [f], 1;"),
        (UNEXPECTED_MULTICAST, "\n    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\nW:  mbarrier"),
    ],
)
def test_another_number_size_or_order_is_offered(text: str, changed: str) -> None:
    before = text.count(changed)
    assert any(new.count(changed) > before for new in repaired(text))


def test_a_pad_that_is_used_twice_gets_a_second_value_and_waits_that_take_later_ones() -> None:
    """B may look when the second value is there already: its first wait takes that as well."""
    (first, *_) = repaired(PAD_USED_TWICE)
    assert "[pad], 2;" in first and "setp.lt.u32 %p, %t, 1;" in first and "setp.lt.u32 %p, %t, 2;" in first


def test_locks_are_taken_in_one_order() -> None:
    mine, others = lock_order(api.lowered(Source("t", LOCKS_IN_TWO_ORDERS)))
    assert (mine.what, others.what) == (
        "A, line 5: takes [l2] before [l1] (line 6)",
        "B, line 11: takes [l1] before [l2] (line 12)",
    )
    assert fix("t", apply(LOCKS_IN_TWO_ORDERS, (mine,)), MODELS, Options()).wrong == ()


ONCE = """PTX once
.global .u32 d;
.global .u32 ready;
.global .u32 ticket;
thread A @ cta 0 {
    atom.relaxed.gpu.global.add.u32 %t, [ticket], 1;
    setp.ne.u32 %p, %t, 0;
    @%p bra OUT;
    st.global.u32 [d], 7;
    st.release.gpu.global.u32 [ready], 1;
OUT:
}
thread B @ cta 1 {
    ld.relaxed.gpu.global.u32 %f, [ready];
    setp.eq.u32 %p, %f, 0;
    @%p bra OUT;
    ld.global.u32 %r, [d];
OUT:
}
~exists (B:f == 1 /\\ B:r == 0)
"""


def test_a_number_that_the_place_has_stays() -> None:
    """To compare with another one would end the race: nothing would be stored at all."""
    assert not any("setp.ne.u32 %p, %t, 1" in new for new in repaired(ONCE))
    assert "ld.acquire.gpu.global.u32 %f, [ready];" in repaired(ONCE)[0]


def test_one_of_two_hand_overs_gets_a_barrier_of_its_own() -> None:
    moved = [edit.what for edit in at_another_barrier(api.lowered(Source("t", ONE_BARRIER_FOR_TWO)))]
    assert moved == ["P and C: barrier 1 -> 2", "C and P: barrier 1 -> 2"]


def test_a_flag_that_is_raised_is_waited_for() -> None:
    (new, *_) = repaired(NOT_WAITED_FOR)
    assert "ld.acquire.sys.global.u32 %done, [f];" in new and ".u32 done" not in new


WIDE_RESET = """PTX reset
.global .align 8 .u32 n[2];
thread A @ cta 0 { atom.relaxed.gpu.global.add.u32 %o, [n+4], 1; }
thread B @ cta 1 { mov.u64 %z, 0; st.relaxed.gpu.global.u64 [n], %z; ld.relaxed.gpu.global.b64 %r, [n+0]; }
~exists race
"""


def test_a_wide_access_becomes_two() -> None:
    store, load = in_halves(api.lowered(Source("t", WIDE_RESET)))
    both = apply(WIDE_RESET, (store, load))
    halves = ("mov.b64 {%low1, %high1}, %z; st.relaxed.gpu.global.b32 [n], %low1;", "[n+4], %high1;")
    assert all(half in both for half in halves)
    assert "ld.relaxed.gpu.global.b32 %high2, [n+4]; mov.b64 %r, {%low2, %high2};" in both
    assert fix("t", both, MODELS, Options()).wrong == ()


IN_A_BRANCH = """PTX branch
.shared .u32 x;
.global .u32 c;
thread A @ cta 0 {
    ld.global.u32 %c, [c];
    setp.eq.u32 %p, %c, 0;
    @%p bra OUT;
    st.shared.u32 [x], 1;
    bar.sync 0, 64;
OUT:
}
thread B @ cta 0 { bar.sync 0, 64; ld.shared.u32 %r, [x]; }
~exists hang
"""


def test_a_barrier_in_a_branch_moves_to_where_the_ways_meet() -> None:
    (new, *_) = repaired(IN_A_BRANCH, 1)
    assert "OUT:\n    bar.sync 0, 64;\n}" in new
