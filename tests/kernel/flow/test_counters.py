"""Loops that poll a counter: which end in every execution after the same arrivals, and which only look so."""

from __future__ import annotations

import pytest
from helpers.examples import share
from helpers.kernel.samples import judged

LATCH = """
mov.u32 %r20, %ctaid.x;
{init}
setp.eq.u32 %p1, %r20, 0;
@%p1 bra WAIT;
mul.wide.u32 %d1, %r20, 256;
add.s64 %d2, %d0, %d1;
@%p0 st.global.u32 [%d2+256], %r20;
bar.sync 0;
@!%p0 bra DONE;
{arrive}
{after}
bra DONE;
WAIT:
{before}
W: ld.{load} %r7, [%d0];
{test}
@%p5 bra W;
ld.global.u32 %r9, [%d0+512];
ld.global.u32 %r9, [%d0+768];
{behind}
DONE:
"""
"""CTAs 1 and 2 write and arrive; the threads of CTA 0 wait for both and read."""
USUAL = {
    "init": "", "arrive": "red.release.gpu.global.add.u32 [%d0], 1;", "after": "", "before": "",
    "load": "acquire.gpu.global.u32", "test": "setp.ne.u32 %p5, %r7, 2;", "behind": "",
}  # fmt: skip
FENCED = "fence.acq_rel.gpu;\n{}"
ONE = "setp.eq.u32 %p7, %r20, 1;\n@%p7 {}\n@!%p7 {}\n"
RED = "red.release.gpu.global.add.u32 [%d0], 1;"
ADD_21 = "red.release.gpu.global.add.u32 [%d0], %r21;"
ATOM = "atom.{}.gpu.global.add.u32 %r8, [%d0], 1;"


def word(change: dict[str, str], threads: int = 1, ctas: int = 3) -> str:
    verdict = judged(LATCH.format(**{**USUAL, **change}), threads, ctas, "zero", first=True)
    return verdict.word


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "clean"),
        ({"test": "setp.lt.u32 %p5, %r7, 2;"}, "clean"),
        ({"arrive": ATOM.format("release")}, "clean"),
        ({"arrive": ATOM.format("acq_rel")}, "clean"),
        ({"arrive": FENCED.format(ATOM.format("relaxed"))}, "clean"),
        ({"load": "relaxed.gpu.global.u32", "behind": ""}, "findings"),
        ({"arrive": "red.release.gpu.global.add.u32 [%d0], -1;", "test": "setp.ne.s32 %p5, %r7, -2;"}, "clean"),
        ({"arrive": "shl.b32 %r21, 1, %r20;\nred.release.gpu.global.or.b32 [%d0], %r21;",
          "test": "setp.ne.u32 %p5, %r7, 6;"}, "clean"),
        ({"arrive": "red.release.gpu.global.add.u32 [%d0], %r20;", "test": "setp.ne.u32 %p5, %r7, 3;"}, "clean"),
        ({"arrive": "red.release.gpu.global.max.u32 [%d0], %r20;"}, "explored or findings"),
        # One arrival is enough, or orders nothing.
        ({"test": "setp.eq.u32 %p5, %r7, 0;"}, "findings"),
        ({"test": "setp.lt.u32 %p5, %r7, 1;"}, "findings"),
        ({"arrive": "red.relaxed.gpu.global.add.u32 [%d0], 1;"}, "findings"),
        ({"arrive": "red.release.cta.global.add.u32 [%d0], 1;"}, "findings"),
        ({"load": "acquire.cta.global.u32"}, "findings"),
        ({"arrive": ATOM.format("acquire")}, "findings"),
        ({"arrive": "red.release.gpu.global.add.u32 [%d0], %r20;", "test": "setp.lt.u32 %p5, %r7, 2;"}, "findings"),
        ({"arrive": "red.release.gpu.global.add.u32 [%d0], %r20;", "test": "setp.eq.u32 %p5, %r7, 0;"}, "findings"),
        ({"arrive": "red.release.gpu.global.or.b32 [%d0], 1;", "test": "setp.eq.u32 %p5, %r7, 0;"}, "findings"),
        # It may be over when it is looked at.
        ({"after": "red.relaxed.gpu.global.add.u32 [%d0], 1;", "test": "setp.lt.u32 %p5, %r7, 2;"}, "findings"),
        ({"after": "red.relaxed.gpu.global.add.u32 [%d0], 1;", "test": "setp.lt.u32 %p5, %r7, 4;"}, "clean"),
        ({"after": "red.relaxed.gpu.global.add.u32 [%d0], 1;", "test": "setp.ne.u32 %p5, %r7, 4;"}, "clean"),
        ({"after": "red.relaxed.gpu.global.add.u32 [%d0], -1;"}, "findings"),
        # A store puts it back.
        ({"after": "st.relaxed.gpu.global.u32 [%d0], 1;", "test": "setp.eq.u32 %p5, %r7, 0;"}, "findings"),
        # One arrival is of another scope, kind, size or amount.
        ({"arrive": ONE.format(RED, RED.replace("gpu", "cluster"))},
         "findings"),
        ({"arrive": ONE.format(RED, RED.replace("add.u32", "or.b32")),
          "test": "setp.lt.u32 %p5, %r7, 2;"}, "findings"),
        ({"arrive": ONE.format(RED, RED.replace("u32", "u64"))},
         "not clean"),
        ({"arrive": "mov.u32 %r21, %clock;\n" + ONE.format("mov.u32 %r21, 1;", "nanosleep.u32 5;") + ADD_21,
          "test": "setp.lt.u32 %p5, %r7, 2;"}, "not clean"),
        ({"arrive": RED.replace("u32", "f32"), "test": "setp.eq.u32 %p5, %r7, 0;"}, "not clean"),
        ({"arrive": "red.release.gpu.global.and.b32 [%d0], 1;", "test": "setp.ne.u32 %p5, %r7, 0;"}, "findings"),
        # The waiting thread arrives or stores, too.
        ({"before": ATOM.format("relaxed"), "test": "setp.ne.u32 %p5, %r7, 3;"}, "clean"),
        ({"before": ATOM.format("relaxed"), "test": "add.u32 %r9, %r8, 1;\nsetp.eq.u32 %p5, %r7, %r9;"}, "findings"),
        ({"before": "st.relaxed.gpu.global.u32 [%d0], 0;"}, "findings"),
        ({"before": "st.relaxed.gpu.global.u32 [%d0], 1;\nst.relaxed.gpu.global.u32 [%d0], 0;"}, "findings"),
        ({"init": "st.relaxed.gpu.global.u32 [%d0], 0;"}, "findings"),
        # What was read is used, or the loop does something.
        ({"behind": "st.global.u32 [%d0+1024], %r7;"}, "clean"),
        ({"test": "add.u32 %r22, %r22, 1;\nsetp.ne.u32 %p5, %r7, 2;", "before": "mov.u32 %r22, 0;",
          "behind": "mul.wide.u32 %d9, %r22, 4;\nadd.s64 %d9, %d9, %d0;\nst.global.u32 [%d9+1024], 1;"},
         "not clean"),
        ({"test": "st.global.u32 [%d0+512], 7;\nsetp.ne.u32 %p5, %r7, 2;"}, "findings"),
    ],
)  # fmt: skip
def test_a_latch(change: dict[str, str], expected: str) -> None:
    found = word(change)
    if expected == "not clean":
        assert found != "clean"
    else:
        assert found in expected.split(" or ")


ROUNDS = """
mov.u32 %r20, %ctaid.x;
mov.u32 %r21, 0;
mov.u32 %r22, 0;
mul.wide.u32 %d1, %r20, 4;
add.s64 %d2, %d0, %d1;
LOOP:
add.u32 %r22, %r22, {count};
@%p0 st.global.u32 [%d2+256], %r20;
bar.sync 0;
@!%p0 bra MEET;
{arrive}
W: ld.acquire.gpu.global.u32 %r7, [%d0];
{test}
@%p5 bra W;
MEET:
bar.sync 0;
ld.global.u32 %r9, [%d0+256];
ld.global.u32 %r9, [%d0+260];
ld.global.u32 %r9, [%d0+264];
{second}
add.u32 %r21, %r21, 1;
setp.lt.u32 %p6, %r21, {rounds};
@%p6 bra LOOP;
"""
"""Three CTAs write, meet, and read what the others wrote, in several rounds."""
ARRIVE = "red.release.gpu.global.add.u32 [%d0], 1;"
SECOND = f"""bar.sync 0;
@!%p0 bra M2;
add.u32 %r22, %r22, 3;
{ARRIVE}
V: ld.acquire.gpu.global.u32 %r7, [%d0];
setp.lt.u32 %p5, %r7, %r22;
@%p5 bra V;
M2: bar.sync 0;"""
GRID = {"count": "3", "arrive": ARRIVE, "test": "setp.lt.u32 %p5, %r7, %r22;", "second": SECOND, "rounds": "3"}


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("change", "threads", "expected"),
    [
        ({}, 1, "clean"),
        ({}, 64, "clean"),
        ({"rounds": "1", "second": ""}, 64, "clean"),
        ({"arrive": ATOM.format("acq_rel")}, 64, "clean"),
        ({"second": ""}, 1, "findings"),  # the next round writes while others read
        ({"second": SECOND.replace("red.release", "red.relaxed")}, 1, "findings"),
        ({"second": SECOND.replace("ld.acquire", "ld.relaxed")}, 1, "findings"),
        ({"second": SECOND.removeprefix("bar.sync 0;\n")}, 64, "findings"),
        ({"arrive": "red.relaxed.gpu.global.add.u32 [%d0], 1;"}, 1, "findings"),
        ({"count": "2"}, 1, "findings"),  # they do not wait for all
        # Others may have gone on to the next round: the number is over when it is looked at.
        ({"test": "setp.ne.u32 %p5, %r7, %r22;", "second": SECOND.replace("lt.u32", "ne.u32")}, 1, "findings"),
        # The value tells how far the others are.
        ({"second": SECOND + "\nsetp.ne.u32 %p7, %r7, %r22;\n@%p7 st.global.u32 [%d0+256], 1;"}, 1, "findings"),
    ],
)
def test_a_barrier_of_the_grid(change: dict[str, str], threads: int, expected: str) -> None:
    verdict = judged(ROUNDS.format(**{**GRID, **change}), threads, 3, "zero", first=True)
    assert verdict.word == expected, (verdict.findings, verdict.choices, verdict.open)


SHARED = """
{init}
st.shared.u32 [%r3+64], %r0;
{arrive}
W: ld.{load}.cta.shared.u32 %r5, [s];
{test}
@%p2 bra W;
xor.b32 %r10, %r1, 128;
add.s32 %r11, %r2, %r10;
ld.shared.u32 %r6, [%r11+64];
"""
OWN_LATCH = {
    "init": "@%p0 st.shared.u32 [s], 64;\nbar.sync 0;", "load": "acquire", "test": "setp.ne.u32 %p2, %r5, 0;",
    "arrive": "atom.release.cta.shared.add.u32 %r9, [s], -1;",
}  # fmt: skip


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("change", "threads", "expected"),
    share(
        [
            ({}, 64, "clean"),
            ({"init": "@%p0 st.shared.u32 [s], 128;\nbar.sync 0;"}, 128, "clean"),
            ({"init": "@%p0 st.relaxed.cta.shared.u32 [s], 64;\nbar.sync 0;"}, 64, "clean"),
            ({"init": "@%p0 st.shared.u32 [s], 64;"}, 64, "findings"),
            ({"init": ""}, 64, "undecided"),
            ({"load": "relaxed"}, 64, "findings"),
            ({"arrive": "atom.acquire.cta.shared.add.u32 %r9, [s], -1;"}, 64, "findings"),
            # One more than is waited for: the word may be 1, and later 0; or it never is 0.
            ({"init": "@%p0 st.shared.u32 [s], 33;\nbar.sync 0;", "test": "setp.gt.s32 %p2, %r5, 0;"}, 34, "findings"),
            ({"arrive": "atom.release.cta.shared.exch.b32 %r9, [s], 0;"}, 64, "not clean"),
            ({"arrive": OWN_LATCH["arrive"] + "\n@%p0 st.shared.u32 [s], 0;"}, 64, "findings"),
            (
                {
                    "init": "@%p0 st.shared.u32 [s], 34;\nbar.sync 0;",
                    "arrive": OWN_LATCH["arrive"] + "\nsetp.eq.u32 %p6, %r9, 1;\n@%p6 st.shared.u32 [s+640], 1;",
                },
                34,
                "not clean",
            ),
        ],
        3,
    ),
)
def test_a_latch_in_shared_memory(change: dict[str, str], threads: int, expected: str) -> None:
    verdict = judged(SHARED.format(**{**OWN_LATCH, **change}), threads, first=True)
    if expected == "not clean":
        assert verdict.word != "clean"
    else:
        assert verdict.word == expected, (verdict.findings, verdict.choices, verdict.open)


FLIP = """
mov.u32 %r20, %ctaid.x;
mov.u32 %r21, 0;
mul.wide.u32 %d1, %r20, 4;
add.s64 %d2, %d0, %d1;
setp.eq.u32 %p3, %r20, 0;
selp.b32 %r22, {first}, 1, %p3;
LOOP:
@%p0 st.global.u32 [%d2+256], %r20;
bar.sync 0;
@!%p0 bra MEET;
atom.add.{arrive}.gpu.u32 %r23, [%d0], %r22;
W: ld.{load}.gpu.u32 %r24, [%d0];
{test}
@%p5 bra W;
MEET:
bar.sync 0;
ld.global.u32 %r9, [%d0+256];
ld.global.u32 %r9, [%d0+260];
ld.global.u32 %r9, [%d0+264];
{second}
add.u32 %r21, %r21, 1;
setp.lt.u32 %p6, %r21, {rounds};
@%p6 bra LOOP;
"""
"""The barrier of a grid in cooperative groups: the highest bit flips when all have come."""
AGAIN = """bar.sync 0;
@!%p0 bra M2;
atom.add.release.gpu.u32 %r25, [%d0], %r22;
V: ld.acquire.gpu.u32 %r26, [%d0];
xor.b32 %r27, %r26, %r25;
setp.gt.s32 %p5, %r27, -1;
@%p5 bra V;
M2: bar.sync 0;"""
COOPERATIVE = {
    "first": str(0x80000000 - 2), "arrive": "release", "load": "acquire", "rounds": "1", "second": "",
    "test": "xor.b32 %r28, %r24, %r23;\nsetp.gt.s32 %p5, %r28, -1;",
}  # fmt: skip


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "clean"),
        ({"rounds": "3", "second": AGAIN}, "clean"),
        ({"arrive": "acq_rel"}, "clean"),
        ({"rounds": "3"}, "findings"),
        ({"rounds": "3", "second": AGAIN.replace("release", "relaxed")}, "findings"),
        ({"rounds": "3", "second": AGAIN.replace("acquire", "relaxed")}, "findings"),
        ({"rounds": "3", "second": AGAIN.removeprefix("bar.sync 0;\n")}, "findings"),
        ({"arrive": "relaxed"}, "findings"),
        ({"load": "relaxed"}, "findings"),
        ({"first": str(0x80000000 - 1)}, "findings"),  # it flips when two have come
        ({"first": str(0x80000000 - 3)}, "findings"),  # it never flips
        # Another bit flips for each; the result is looked at elsewhere, or something else is there.
        ({"test": "xor.b32 %r28, %r24, %r23;\nand.b32 %r28, %r28, 1;\nsetp.eq.u32 %p5, %r28, 0;"}, "not clean"),
        ({"test": COOPERATIVE["test"] + "\n@!%p5 st.global.u32 [%d2+1024], %r23;"}, "explored"),
        ({"second": "setp.eq.u32 %p7, %r23, 2;\n@%p7 st.global.u32 [%d0+256], 1;"}, "findings"),
        # Who waits for the bit itself need not know how it was.
        ({"test": "setp.gt.s32 %p5, %r24, -1;", "rounds": "2", "second": AGAIN}, "clean"),
        ({"test": "setp.lt.s32 %p5, %r24, 0;", "rounds": "2", "second": AGAIN}, "findings"),
    ],
)
def test_a_barrier_that_flips(change: dict[str, str], expected: str) -> None:
    verdict = judged(FLIP.format(**{**COOPERATIVE, **change}), 64, 3, "zero", first=True)
    if expected == "not clean":
        assert verdict.word != "clean"
    else:
        assert verdict.word == expected, (verdict.findings, verdict.choices, verdict.open)


EACH_ROUND = """
mov.u32 %r20, %ctaid.x;
mov.u32 %r21, 0;
setp.eq.u32 %p3, %r20, 0;
selp.b32 %r22, 0x7fffffff, 1, %p3;
mul.wide.u32 %d1, %r20, 4;
add.s64 %d2, %d0, %d1;
xor.b32 %r25, %r20, 1;
mul.wide.u32 %d1, %r25, 4;
add.s64 %d3, %d0, %d1;
LOOP:
st.global.u32 [%d2+256], %r20;
atom.add.acq_rel.gpu.u32 %r23, [%d0], %r22;
W: ld.acquire.gpu.u32 %r24, [%d0];
xor.b32 %r28, %r24, %r23;
setp.gt.s32 %p5, %r28, -1;
@%p5 bra W;
ld.global.u32 %r9, [%d3+256];
add.s64 %d2, %d2, 64;
add.s64 %d3, %d3, 64;
add.u32 %r21, %r21, 1;
setp.lt.u32 %p6, %r21, 2;
@%p6 bra LOOP;
"""


def test_the_arrivals_of_later_rounds_are_not_those_before_a_wait() -> None:
    """What an arrival returned is known in each round, so one run is enough."""
    verdict = judged(EACH_ROUND, 1, 2, "zero")
    assert (verdict.word, verdict.explored) == ("clean", 1)


SUM = """
@%p0 st.shared.u32 [%r2], 0;
bar.sync 0;
{made}
{sync}
ld.shared.u32 %r10, [%r2];
setp.eq.u32 %p1, %r10, 64;
@%p1 st.shared.u32 [%r3+64], 1;
"""
"""A sum is looked at behind a barrier, as a histogram does that adds up the bins that are not empty."""


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("made", "word"),
    [
        ("atom.shared.add.u32 %r9, [%r2], 1;", "clean"),
        ("atom.shared.add.u32 %r9, [%r2], 1;\nred.shared.add.u32 [%r2], 2;", "clean"),
        ("atom.shared.or.b32 %r9, [%r2], %r0;", "clean"),
        ("atom.shared.add.u32 %r9, [%r2], 1;\natom.shared.max.u32 %r9, [%r2], 70;", "explored"),
        ("atom.shared.exch.b32 %r9, [%r2], %r0;", "explored"),
        ("atom.shared.add.u32 %r9, [%r2], 1;\nred.shared.add.u32 [%r2], %r9;", "explored"),
        ("atom.shared.add.u32 %r9, [%r2], 1;\nst.relaxed.cta.shared.u32 [%r2], 5;", "explored"),
        ("atom.shared.add.u64 %d9, [%r2], 1;\natom.shared.add.u32 %r9, [%r2+4], 1;", "undecided"),
        ("atom.shared.add.f32 %f9, [%r2], 0f3F800000;", "undecided"),
    ],
)
def test_what_a_set_of_atomic_operations_leaves(made: str, word: str) -> None:
    """Their results are not known, but what they leave together is, if it does not depend on their order."""
    assert judged(SUM.format(made=made, sync="bar.sync 1;"), threads=64).word == word


def test_a_sum_that_nothing_keeps_apart_from_what_is_added() -> None:
    made = "atom.shared.add.u32 %r9, [%r2], 1;"
    assert "data-race" in {one.rule for one in judged(SUM.format(made=made, sync=""), threads=64).serious}
