"""Tests of mbarrier objects in functions, as compilers write them without optimization: which loops are waits?"""

from __future__ import annotations

import pytest
from helpers.kernel.samples import judged

pytestmark = pytest.mark.turns(2)

TEST = """
.func (.param .b32 r) passed(.param .b32 o, .param .b32 phase)
{
.reg .b32 %a<6>; .reg .pred %q<3>;
.local .align 8 .b8 depot[16];
ld.param.b32 %a1, [o];
ld.param.b32 %a2, [phase];
st.local.b32 [depot], %a2;
ld.local.b32 %a3, [depot];
mbarrier.try_wait.parity.shared::cta.b64 %q1, [%a1], %a3;
selp.b32 %a4, 1, 0, %q1;
INSIDE
st.local.b32 [depot+4], %a4;
ld.local.b32 %a5, [depot+4];
st.param.b32 [r], %a5;
ret;
}
"""
LOOP = """
.local .align 8 .b8 mine[16];
mov.u32 %r30, 0;
mov.u32 %r31, 0;
mov.u32 %r32, {parity};
@%p0 mbarrier.init.shared.b64 [%r4], 32;
bar.sync 0;
setp.ge.u32 %p1, %r0, 32;
@%p1 bra WAIT;
st.shared.u32 [%r3], 5;
{arrive}
bra DONE;
WAIT:
{before}
W: {{ .param .b32 a; .param .b32 b; .param .b32 c;
st.param.b32 [a], %r4; st.param.b32 [b], %r32;
call (c), passed, (a, b);
ld.param.b32 %r10, [c]; }}
setp.ne.s32 %p5, %r10, 0;
@%p5 bra GO;
{failed}
bra W;
GO:
{after}
ld.shared.u32 %r9, [%r3+-128];
DONE:
"""
USUAL = {
    "parity": "0", "arrive": "mbarrier.arrive.shared::cta.b64 %d5, [%r4];", "before": "", "failed": "", "after": "",
    "inside": "",
}  # fmt: skip


@pytest.mark.share(5)
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "clean"),
        ({"failed": "nanosleep.u32 100;"}, "clean"),
        ({"failed": "st.local.b32 [mine], %r0;\nld.local.b32 %r33, [mine];"}, "clean"),
        ({"inside": "mov.u32 %a5, %clock;"}, "clean"),
        ({"failed": "mov.u32 %r30, 1;", "after": "st.shared.u32 [%r3+512], %r30;"}, "clean"),
        ({"failed": "add.u32 %r30, %r30, 1;"}, "clean"),
        ({"failed": "add.u32 %r30, %r30, 1;\nsetp.lt.u32 %p6, %r30, 16;\n@%p6 bra W;\nnanosleep.u32 100;"}, "clean"),
        ({"failed": "ld.local.b32 %r33, [mine];\nadd.u32 %r33, %r33, 1;\nst.local.b32 [mine], %r33;",
          "before": "st.local.b32 [mine], 0;"}, "clean"),
        # The loop counts, and leaves that or goes on elsewhere.
        ({"failed": "add.u32 %r30, %r30, 1;\nsetp.gt.u32 %p6, %r30, 4;\n@%p6 bra GO;"}, "findings"),
        ({"failed": "add.u32 %r30, %r30, 1;\nsetp.gt.u32 %p6, %r30, 10000;\n@%p6 bra GO;"}, "undecided"),
        ({"failed": "add.u32 %r30, %r30, 1;",
          "after": "setp.gt.u32 %p6, %r30, 4;\n@%p6 bra DONE;"}, "undecided"),
        ({"failed": "add.u32 %r30, %r30, 1;\nrem.u32 %r32, %r30, 2;"}, "findings"),
        # What a failure leaves decides behind the loop.
        ({"failed": "mov.u32 %r30, 1;", "after": "setp.eq.u32 %p6, %r30, 1;\n@%p6 bra DONE;"}, "undecided"),
        ({"failed": "st.local.b32 [mine], 1;", "before": "st.local.b32 [mine], 0;",
          "after": "ld.local.b32 %r33, [mine];\nsetp.eq.u32 %p6, %r33, 1;\n@%p6 bra DONE;"}, "undecided"),
        ({"failed": "mov.u32 %r32, 1;"}, "findings"),  # another phase is asked for
        ({"failed": "bra GO;"}, "findings"),
        ({"failed": "mov.u32 %r31, %clock;\nsetp.gt.u32 %p6, %r31, 99;\n@%p6 bra GO;"}, "undecided"),
        # It does something that others see, or what others do decides.
        ({"failed": "st.shared.u32 [%r3+256], 1;"}, "undecided"),
        ({"failed": "red.relaxed.gpu.global.add.u32 [%d0], 1;"}, "undecided"),
        ({"failed": "st.relaxed.gpu.global.u32 [%d0], 1;"}, "undecided"),
        ({"failed": "activemask.b32 %r33;"}, "undecided"),
        ({"failed": "bar.warp.sync -1;"}, "undecided"),
        ({"failed": "mbarrier.test_wait.parity.shared::cta.b64 %p6, [%r4], 1;"}, "undecided"),
        # The wait is one, and the kernel is wrong.
        ({"arrive": "mbarrier.arrive.relaxed.cta.shared::cta.b64 %d5, [%r4];"}, "findings"),
        ({"arrive": "@%p0 mbarrier.arrive.shared::cta.b64 %d5, [%r4];"}, "findings"),
        ({"parity": "1"}, "findings"),
        ({"failed": "ld.shared.u32 %r33, [%r3+-128];"}, "findings"),
    ],
)  # fmt: skip
def test_a_loop_around_a_function(change: dict[str, str], expected: str) -> None:
    parts = {**USUAL, **change}
    verdict = judged(LOOP.format(**parts), 64, before=TEST.replace("INSIDE", parts["inside"]))
    found = "findings" if verdict.serious else verdict.word
    assert found == expected, (verdict.findings, verdict.open)


def test_values_that_a_failure_leaves_are_equal_to_nothing() -> None:
    """A thread's own number before the loop, one that all have after a failure: stores of it are a race."""
    change = {
        "before": "mul.wide.u32 %d1, %r0, 4;\nadd.s64 %d2, %d0, %d1;\nld.global.b32 %r34, [%d2];",
        "failed": "ld.global.b32 %r34, [%d0];", "after": "st.shared.b32 [s+1000], %r34;",
    }  # fmt: skip
    verdict = judged(LOOP.format(**{**USUAL, **change}), 64, before=TEST.replace("INSIDE", ""))
    assert {one.rule for one in verdict.findings} == {"same-store-race"}
    own = LOOP.format(**{**USUAL, **change, "before": "ld.global.b32 %r34, [%d0];", "failed": ""})
    verdict = judged(own, 64, before=TEST.replace("INSIDE", ""))
    assert {one.rule for one in verdict.findings} == {"equal-store-race"}


EITHER_PHASE = """
@%p0 mbarrier.init.shared.b64 [%r4], 1;
mov.u32 %r32, 0;
bar.sync 0;
setp.ge.u32 %p1, %r0, 32;
@%p1 bra X;
@%p0 mbarrier.arrive.shared::cta.b64 %d5, [%r4];
bra DONE;
X: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], 0;
@!%p5 bra X;
W: xor.b32 %r32, %r32, 1;
mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], {parity};
@!%p5 bra W;
DONE:
"""


@pytest.mark.parametrize(("parity", "hangs"), [("%r32", False), ("0", False), ("1", True)])
def test_a_loop_that_tests_another_phase_in_each_round_does_not_hang(parity: str, hangs: bool) -> None:
    """The test of a phase that has not begun is false, and the next round tests the one that has ended."""
    assert ("hang" in {one.rule for one in judged(EITHER_PHASE.format(parity=parity), 64).findings}) == hangs
