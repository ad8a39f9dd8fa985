"""What waits for columns of tensor memory or for registers, and in another schedule may wait for ever."""

from __future__ import annotations

import pytest
from helpers.kernel.engines import verdict_of


def alloc(columns: int, at: int = 0) -> str:
    address = f"[%r4+{at}]"
    return f"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 {address}, {columns};\nbar.warp.sync -1;\n"


def dealloc(columns: int, at: int = 0) -> str:
    return f"ld.shared.b32 %r23, [%r4+{at}];\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r23, {columns};\n"


MEET = "bar.sync 0;\n"
BOTH = alloc(256) + alloc(256, 4) + dealloc(256) + dealloc(256, 4)
OTHERS_BOTH = alloc(256, 8) + alloc(256, 12) + dealloc(256, 8) + dealloc(256, 12)


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (alloc(256) + dealloc(256), alloc(256, 8) + dealloc(256, 8), ""),
        (alloc(512) + dealloc(512) + MEET, MEET + alloc(512, 8) + dealloc(512, 8), ""),
        (BOTH + MEET, MEET + OTHERS_BOTH, ""),
        (BOTH, OTHERS_BOTH, "it may have to wait for columns"),
        (alloc(512) + dealloc(512) + MEET, alloc(512, 8) + MEET + dealloc(512, 8), "it may have to wait for columns"),
        (alloc(128) + MEET + dealloc(128), MEET + alloc(64, 8) + dealloc(64, 8), ""),
        (alloc(128) + dealloc(128), alloc(64, 8) + dealloc(64, 8), "it may come after an alloc of 64 columns"),
    ],
    ids=["enough", "in turn", "all in turn", "each has half", "freed too late", "fewer", "more in another order"],
)
def test_two_warps_allocate(first: str, second: str, why: str) -> None:
    """In the run, the first warp is done before the second one begins."""
    body = f"""setp.lt.u32 %p5, %r0, 32;
@!%p5 bra SECOND;
{first}bra OVER;
SECOND:
{second}OVER:
"""
    verdict = verdict_of(body, threads=64)
    if why:
        assert verdict.word != "clean" and any(why in reason for reason in verdict.open), verdict.open
    else:
        assert verdict.word == "clean", (verdict.findings, verdict.open)


TAKE, GIVE = "setmaxnreg.inc.sync.aligned.u32 208;\n", "setmaxnreg.dec.sync.aligned.u32 160;\n"
TOGETHER = "bar.sync 1, 256;\n"
OWN = "bar.sync 2, 128;\n", "bar.sync 3, 128;\n"
"""The warps of a warpgroup meet between two setmaxnreg."""


@pytest.mark.parametrize(
    ("first", "second", "word"),
    [
        (TAKE + TOGETHER, TAKE + TOGETHER, "clean"),
        (TAKE + OWN[0] + GIVE + TOGETHER, TAKE + TOGETHER + GIVE, "undecided"),
        (TAKE + TOGETHER + GIVE, TAKE + OWN[1] + GIVE + TOGETHER, "findings"),
    ],
    ids=["all get some", "the second keeps them", "the first keeps them"],
)
def test_two_warpgroups_take_registers(first: str, second: str, word: str) -> None:
    """A third one has given back what is enough for both, or for one and three warps of the other."""
    given = 40 if word == "clean" else 96
    body = f"""setp.lt.u32 %p5, %r0, 128;
setp.lt.u32 %p6, %r0, 256;
@%p6 bra TWO;
setmaxnreg.dec.sync.aligned.u32 {given};
bra READY;
TWO:
{GIVE}READY:
bar.sync 0;
@%p5 bra FIRST;
@%p6 bra SECOND;
bra OVER;
FIRST:
{first}bra OVER;
SECOND:
{second}OVER:
"""
    verdict = verdict_of(body, threads=384)
    assert verdict.word == word, (verdict.findings, verdict.open)


@pytest.mark.parametrize(("columns", "word"), [("64", "clean"), ("%r25", "undecided")])
def test_the_ctas_of_a_pair_ask_for_the_same_columns(columns: str, word: str) -> None:
    """ "One warp from each of the peer CTAs must collectively perform the allocation" (tcgen05.alloc)."""
    meet = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
    body = alloc(64).replace("64;", f"{columns};") + meet + dealloc(64).replace("64;", f"{columns};") + meet
    first = f"mov.u32 %r25, 64;\nshr.u32 %r25, %r25, %r5;\n{meet}"
    assert verdict_of(first + body.replace("cta_group::1", "cta_group::2"), ctas=2, cluster=2).word == word


LENT = "setmaxnreg.inc.sync.aligned.u32 232;\n", "setmaxnreg.dec.sync.aligned.u32 168;\n"
MORE = "setmaxnreg.inc.sync.aligned.u32 256;\n"


@pytest.mark.parametrize(
    ("first", "second", "word"),
    [
        (LENT[0] + TOGETHER + LENT[1] + TOGETHER, TOGETHER * 2 + MORE, "clean"),
        (LENT[0] + OWN[0] + LENT[1] + TOGETHER, TOGETHER + MORE, "clean"),
        (LENT[0] + OWN[0] + LENT[1], MORE, "findings"),
        (LENT[0] + TOGETHER + LENT[1], MORE + TOGETHER, "findings"),
        (LENT[0] + TOGETHER + LENT[1] + TOGETHER, TOGETHER + MORE + TOGETHER, "clean"),
    ],
    ids=["back before", "back before the barrier", "half of the warps each", "both at once", "between two barriers"],
)
def test_registers_that_are_lent(first: str, second: str, word: str) -> None:
    """There are 128 for each thread of a warpgroup, of which one takes 64 and gives them back; the other needs 88."""
    body = f"""bar.sync 0;
setp.lt.u32 %p5, %r0, 128;
@%p5 bra FIRST;
setp.lt.u32 %p6, %r0, 256;
@%p6 bra SECOND;
setmaxnreg.dec.sync.aligned.u32 40;
bra OVER;
FIRST:
{first}bra OVER;
SECOND:
{second}OVER:
"""
    verdict = verdict_of(body, threads=384)
    assert verdict.word == word, (verdict.findings, verdict.open)
