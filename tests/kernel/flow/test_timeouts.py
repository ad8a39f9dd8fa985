"""Polling loops with a time-out: what the time decides is no choice if it ends in a trap or in a nap."""

from __future__ import annotations

import pytest
from helpers.kernel.samples import judged

FLAG = """
mov.u32 %r20, %ctaid.x;
mov.u32 %r30, 0;
mov.u64 %d5, %globaltimer;
setp.eq.u32 %p1, %r20, {waits};
@%p1 bra WAIT;
st.global.u32 [%d0+64], 5;
st.{store}.gpu.global.u32 [%d0], 1;
bra DONE;
WAIT:
W: ld.acquire.gpu.global.u32 %r7, [%d0];
setp.eq.u32 %p5, %r7, 1;
@%p5 bra GO;
{out}
bra W;
TRAP:
{last}
trap;
GO:
ld.global.u32 %r9, [%d0+64];
DONE:
"""
PASSED = "mov.u64 %d6, %globaltimer;\nsub.u64 %d7, %d6, %d5;\n"
TIME = PASSED + "setp.gt.u64 %p6, %d7, 1000000;\n@%p6 bra TRAP;"
COUNT = "add.u32 %r30, %r30, 1;\nsetp.gt.u32 %p6, %r30, {};\n@%p6 bra TRAP;"
PRINT = """{ .param .b64 a; .param .b64 b; .param .b32 c;
cvta.local.u64 %d9, l;
st.local.b64 [l], %d7; st.param.b64 [a], 0; st.param.b64 [b], %d9;
call (c), vprintf, (a, b);
ld.param.b32 %r10, [c]; }"""
BEFORE = ".extern .func (.param .b32 r) vprintf (.param .b64 x, .param .b64 y);\n"


@pytest.mark.share(3)
@pytest.mark.parametrize("waits", [0, 1])
@pytest.mark.parametrize(
    ("out", "last", "expected"),
    [
        (TIME, "", "clean"),
        (TIME, PRINT, "clean"),
        (TIME.replace("%globaltimer", "%clock64"), "", "clean"),
        ("mov.u32 %r31, %clock;\nsetp.gt.u32 %p6, %r31, 1000;\n@%p6 bra TRAP;", "", "clean"),
        (COUNT.format(100), "", "clean"),
        (COUNT.format(0), "", "clean"),
        (COUNT.format(3).replace("add.u32 %r30, %r30, 1;", "add.u32 %r31, %r30, 1;\nmov.u32 %r30, %r31;"), "", "clean"),
        (PASSED + "setp.lt.u64 %p6, %d7, 1000;\n@%p6 bra W;\nnanosleep.u32 100;", "", "clean"),
        # The thread goes on, or does something before it stops.
        (TIME.replace("bra TRAP", "bra GO"), "", "not clean"),
        (COUNT.format(100).replace("bra TRAP", "bra GO"), "", "not clean"),
        (COUNT.format(0).replace("bra TRAP", "bra GO"), "", "not clean"),
        (TIME.replace("bra TRAP", "bra DONE"), "", "not clean"),
        (TIME, "st.global.u32 [%d0+64], 7;", "not clean"),
        (TIME, "st.release.gpu.global.u32 [%d0], 1;", "not clean"),
        (PASSED + "setp.gt.u64 %p6, %d7, 1000;\n@%p6 st.global.u64 [%d0+128], %d7;", "", "not clean"),
    ],
)
def test_a_flag(waits: int, out: str, last: str, expected: str) -> None:
    body = ".local .align 8 .b8 l[8];\n" + FLAG.format(waits=waits, store="release", out=out, last=last)
    verdict = judged(body, 1, 2, "zero", BEFORE, first=True)
    assert (verdict.word == "clean") == (expected == "clean"), (verdict.findings, verdict.choices, verdict.open)
    if "TRAP" in out and expected == "clean":
        assert any("the time-out that ends at line" in what for what in verdict.assumptions)
        broken = judged(body.replace("st.release", "st.relaxed"), 1, 2, "zero", BEFORE, first=True)
        assert broken.word == "findings"


@pytest.mark.parametrize(
    ("out", "expected"),
    [
        ("setp.eq.u32 %p6, %r7, 0;\n@%p6 bra TRAP;", "findings"),  # what was polled decides
        ("setp.eq.u32 %p6, %r20, 0;\n@%p6 bra TRAP;", "findings"),  # so does a register that stays
        ("setp.eq.u32 %p6, %r0, 0;\n@%p6 bra TRAP;", "findings"),
        ("mov.u32 %r31, %ctaid.x;\nsetp.eq.u32 %p6, %r31, 0;\n@%p6 bra TRAP;", "findings"),
        ("setp.eq.u32 %p6, %r20, 0;\n@%p6 bra TRAP;\ntrap;", "findings"),  # both sides end in a trap
        # The time and what was polled decide together.
        (
            COUNT.format(0)
            .replace("@%p6", "setp.gt.and.u32 %p6, %r30, 0, %p7;\n@%p6")
            .replace("add", "setp.eq.u32 %p7, %r7, 0;\nadd"),
            "findings",
        ),
    ],
)
def test_a_trap_that_is_no_time_out(out: str, expected: str) -> None:
    verdict = judged(FLAG.format(waits=0, store="release", out=out, last=""), 1, 2, "zero", first=True)
    assert verdict.word == expected and {one.rule for one in verdict.findings} == {"trap"}


OBJECT = """
mov.u32 %r30, 0;
mov.u64 %d5, %globaltimer;
@%p0 mbarrier.init.shared.b64 [%r4], 1;
bar.sync 0;
setp.ge.u32 %p1, %r0, 32;
@%p1 bra WAIT;
@%p0 st.shared.u32 [s], 5;
@%p0 mbarrier.arrive.shared::cta.b64 %d8, [%r4];
bra DONE;
WAIT:
W: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], 0;
@%p5 bra GO;
{out}
bra W;
TRAP:
{last}
trap;
GO:
ld.shared.u32 %r9, [s];
DONE:
"""


@pytest.mark.parametrize(
    ("out", "last", "expected"),
    [
        (TIME, "", "clean"),
        (TIME, PRINT, "clean"),
        (COUNT.format(3), PRINT, "clean"),
        (TIME.replace("TRAP", "GO"), "", "undecided"),
        (TIME, "st.shared.u32 [s+8], 1;", "undecided"),
        (TIME, "mbarrier.arrive.shared::cta.b64 %d8, [%r4];", "undecided"),
    ],
)
def test_an_mbarrier_object(out: str, last: str, expected: str) -> None:
    body = ".local .align 8 .b8 l[8];\n" + OBJECT.format(out=out, last=last)
    verdict = judged(body, 64, before=BEFORE)
    assert verdict.word == expected, (verdict.findings, verdict.open)
    if expected == "clean":
        assert any("the time-out that ends at line" in what for what in verdict.assumptions)
