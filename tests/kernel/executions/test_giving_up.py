"""A poll that gives up after some tries is a choice: each try may fail, whatever the number of tries."""

from __future__ import annotations

import pytest
from helpers.kernel.samples import judged

pytestmark = pytest.mark.turns(2)

READ = "ld.global.u32 %r21, [%d0+64];"
STORE = "st.release.gpu.global.u32 [%d0], 1;"
FLAGS = {
    "load": ("ld.acquire.gpu.global.u32 %r22, [%d0];", STORE),
    "load and fence": ("ld.relaxed.gpu.global.u32 %r22, [%d0];\nfence.acq_rel.gpu;", STORE),
    "cas": ("atom.acquire.gpu.global.cas.b32 %r22, [%d0], 1, 2;", STORE),
    "exch": ("atom.acquire.gpu.global.exch.b32 %r22, [%d0], 0;", "atom.release.gpu.global.exch.b32 %r23, [%d0], 1;"),
    "add": ("atom.acquire.gpu.global.add.u32 %r22, [%d0], 0;", "atom.release.gpu.global.add.u32 %r23, [%d0], 1;"),
    "red": ("ld.acquire.gpu.global.u32 %r22, [%d0];", "red.release.gpu.global.add.u32 [%d0], 1;"),
}  # fmt: skip
"""What the second CTA polls with until it reads 1, and what the first CTA announces its data with."""

LOCKS = {
    "cas": "atom.acquire.gpu.global.cas.b32 %r22, [%d0], 0, 1;",
    "exch": "atom.acquire.gpu.global.exch.b32 %r22, [%d0], 1;",
}
POLL = """
mov.u32 %r20, 0;
POLL:
{test}
@%p2 bra GOT;
add.u32 %r20, %r20, 1;
setp.lt.u32 %p3, %r20, {tries};
@%p3 bra POLL;
{given_up}
bra OUT;
GOT:
{got}
OUT:
"""
FLAG = """
mov.u32 %r10, %ctaid.x;
@!%p0 bra OUT;
setp.ne.u32 %p4, %r10, 0;
@%p4 bra CONSUMER;
st.global.u32 [%d0+64], 7;
{announce}
bra OUT;
CONSUMER:
"""
INCREMENT = f"{READ}\nadd.u32 %r21, %r21, 1;\nst.global.u32 [%d0+64], %r21;\n"
TICKET = "atom.relaxed.gpu.global.add.u32 %r24, [%d0+8], 1;"
OBJECT = """
@%p0 mbarrier.init.shared.b64 [%r4], 1;
bar.sync 0;
setp.gt.u32 %p6, %r0, 32;
@%p6 bra OUT;
setp.eq.u32 %p6, %r0, 32;
@%p6 bra CONSUMER;
@!%p0 bra OUT;
st.shared.u32 [%r2], 7;
mbarrier.arrive.shared.b64 %d5, [%r4];
bra OUT;
CONSUMER:
"""


def flag(name: str, tries: int, given_up: str) -> str:
    load, announce = FLAGS[name]
    poll = POLL.format(test=f"{load}\nsetp.eq.u32 %p2, %r22, 1;", tries=tries, given_up=given_up, got=READ)
    return FLAG.format(announce=announce) + poll


def lock(name: str, tries: int, given_up: str, threads: int = 1) -> str:
    """So many threads of a CTA compete for a lock, and those of other CTAs."""
    test = f"{LOCKS[name]}\nsetp.eq.u32 %p2, %r22, 0;"
    got = INCREMENT + "st.release.gpu.global.u32 [%d0], 0;"
    return f"setp.ge.u32 %p5, %r0, {threads};\n@%p5 bra OUT;\n" + POLL.format(
        test=test, tries=tries, given_up=given_up, got=got
    )


@pytest.mark.share(2)
@pytest.mark.parametrize("name", FLAGS)
def test_a_flag(name: str) -> None:
    assert [finding.rule for finding in judged(flag(name, 30, READ), 32, 2, "zero").findings] == ["data-race"]
    assert not judged(flag(name, 30, ""), 32, 2, "zero").findings


@pytest.mark.share(3)
@pytest.mark.parametrize(("name", "tries", "threads"), [
    ("cas", 30, 1), ("exch", 300, 1), ("cas", 1000, 2), ("exch", 30, 2),
])  # fmt: skip
def test_a_lock_that_is_given_up(name: str, tries: int, threads: int) -> None:
    """CTAs compete, or lanes of one warp: the one that has the lock may be late."""
    ctas = 1 if threads > 1 else 2
    verdict = judged(lock(name, tries, READ, threads), 32, ctas, "zero")
    assert {finding.rule for finding in verdict.findings} == {"data-race"}
    verdict = judged(lock(name, 30, "", threads), 32, ctas, "zero")
    assert not verdict.findings and verdict.word == ("explored" if threads > 1 else "clean"), verdict.unsettled


def test_a_ticket_that_is_not_waited_for() -> None:
    test = "ld.acquire.gpu.global.u32 %r22, [%d0];\nsetp.eq.u32 %p2, %r22, %r24;"
    got = INCREMENT + "add.u32 %r25, %r24, 1;\nst.release.gpu.global.u32 [%d0], %r25;"
    body = f"@!%p0 bra OUT;\n{TICKET}" + POLL.format(test=test, tries=30, given_up=READ, got=got)
    assert judged(body, 32, 2, "zero").word == "findings"


@pytest.mark.parametrize("test", ["test_wait", "try_wait"])
def test_an_object_that_is_not_waited_for(test: str) -> None:
    wait = f"mbarrier.{test}.parity.shared.b64 %p2, [%r4], 0;"
    load = "ld.shared.u32 %r21, [%r2];"
    body = OBJECT + POLL.format(test=wait, tries=1000, given_up=load, got=load)
    assert judged(body, 64).word == "findings"


@pytest.mark.parametrize("loop", ["@%p2 bra W;", "@!%p2 bra D;\nbra W;\nD:"])
def test_a_loop_that_ends_when_a_test_fails(loop: str) -> None:
    """Nobody arrives, so that the test fails and its loop ends."""
    body = (
        "@%p0 mbarrier.init.shared.b64 [%r4], 1;\nbar.sync 0;\nW:\nmbarrier.try_wait.parity.shared.b64 %p2, [%r4], 0;\n"
    )
    verdict = judged(body + loop, 64)
    assert verdict.word == "undecided" and not verdict.findings
    assert [finding.rule for finding in judged(body + "@!%p2 bra W;", 64).findings] == ["hang"]


def test_lanes_that_have_to_stay_together() -> None:
    """A shfl without .sync is not known in a warp that has diverged: then no lane is held back."""
    body = "atom.global.add.u32 %r5, [%d0], 1;\nshfl.idx.b32 %r6, %r5, 0, 31;\nsetp.eq.u32 %p2, %r6, 5;\n@%p2 trap;"
    verdict = judged(body, 32, 2, "zero")
    assert verdict.word == "explored", verdict.unsettled
