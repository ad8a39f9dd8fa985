"""Barriers of compiled modules: what their rows refuse, what registers must not hold, and lanes that exit."""

from __future__ import annotations

import pytest
from helpers.kernel.engines import rules, verdict_of
from helpers.kernel.samples import entry, judged, launch, module

from memmodel.kernel.machine.choices.schedule import FIRST, LAST, Schedule
from memmodel.kernel.machine.run import run_launch


def messages(body: str, threads: int = 64) -> list[str]:
    verdict = judged(body, threads)
    return [finding.message for finding in verdict.findings] or list(verdict.open)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("bar.sync 0, 32, 64;", "a barrier of PTX is a number alone"),
        ("bar.sync;", "bar.sync takes a{, b}; 0 are given"),
        ("bar.arrive 1;", "bar.arrive needs a thread count"),
        ("bar.red.popc.pred %p1, 0, %p0;", "bar.red.popc gives a .u32"),
        ("bar.sync.aligned 0;", "unknown qualifier '.aligned' of bar.sync"),
        ("barrier.cluster.wait.release;", "a wait cannot release"),
        ("barrier.cluster.arrive.acquire;", "an arrive cannot acquire"),
    ],
)
def test_what_the_table_refuses(line: str, why: str) -> None:
    verdict = judged(line)
    assert verdict.word == "undecided" and why in verdict.open[0]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            "fabric.try_put.async.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric.relaxed.sys.b128 "
            "[%r10, %d10], [%r10], 16, [%r10];",
            "fabric.try_put is not modelled in kernels: no launch says which memory",
        ),
        ("spcompress %r10;", "spcompress is not modelled: the contents of matrices are not followed"),
        ("frobnicate %r10;", "the instruction frobnicate is not known"),
    ],
)
def test_what_is_refused_by_name_says_why(line: str, why: str) -> None:
    verdict = judged(line)
    assert verdict.word == "undecided" and why in verdict.open[0]


@pytest.mark.parametrize("put", ["", "mov.u32 %r10, {0};\n"], ids=["text", "register"])
@pytest.mark.parametrize(
    ("line", "value", "why"),
    [
        ("bar.sync {0};", 16, "the number of a barrier is from 0 to 15"),
        ("bar.sync {0};", 15, ""),
        ("bar.sync 1, {0};", 48, "the thread count of a barrier is a multiple of 32"),
        ("bar.sync 1, {0};", 64, ""),
        ("bar.sync 1, {0};", 0, ""),
        ("bar.arrive 1, {0};", 0, "bar.arrive has a thread count that is not zero"),
        ("bar.warp.sync {0};", 0, "a mask that does not have its own lane"),
        ("bar.warp.sync {0};", 0xFFFFFFFF, ""),
    ],
)
def test_ranges_of_operands(line: str, value: int, why: str, put: str) -> None:
    """The row says them once, for numbers in the text and in registers."""
    body = put.format(value) + line.format("%r10" if put else value)
    found = messages(body)
    assert (not found) if not why else any(why in message for message in found)


@pytest.mark.parametrize("line", ["bar.sync %r10;", "bar.sync 1, %r10;", "bar.warp.sync %r10;"])
def test_an_unknown_operand_is_undecided(line: str) -> None:
    verdict = judged(f"ld.global.u32 %r10, [%d0];\n{line}")
    assert verdict.word == "undecided" and "depends on a value that this run does not know" in verdict.open[0]


def test_lanes_name_one_barrier() -> None:
    assert any("different barriers" in message for message in messages("and.b32 %r10, %r0, 1;\nbarrier.sync %r10;"))
    counts = "and.b32 %r10, %r0, 1;\nadd.s32 %r10, %r10, 1;\nshl.b32 %r10, %r10, 5;\nbarrier.sync 1, %r10;"
    assert any("different numbers of threads" in message for message in messages(counts))


MIXED = """setp.lt.u32 %p5, %r0, 32;
@%p5 barrier.red.and.pred %p6, 0, %p5;
@!%p5 barrier.red.OTHER.pred %p6, 0, %p5;
@%p6 st.shared.u32 [%r2], %r0;
"""


def test_what_two_operations_of_one_reduction_give_is_not_known() -> None:
    assert verdict_of(MIXED.replace("OTHER", "and"), threads=64).word == "clean"
    assert verdict_of(MIXED.replace("OTHER", "or"), threads=64).word == "undecided"


@pytest.mark.parametrize("late", [False, True])
def test_the_lanes_of_a_warp_wait_for_those_that_have_not_exited(late: bool) -> None:
    """It makes no difference whether the others exit before or after these come to the barrier."""
    meet = "bar.warp.sync 0xffffffff;\nret;\n"
    body = f"@%p0 bra LAST;\n{meet}LAST:\n" if late else f"@%p0 ret;\n{meet}"
    assert judged(body, 32).word == "clean"


@pytest.mark.parametrize(
    ("body", "threads", "undefined"),
    [
        ("@%p0 ret;\nbar.warp.sync -1;", 32, True),
        ("@%p0 bra LAST;\nbar.warp.sync -1;\nLAST:", 32, True),
        ("@%p0 ret;\nbar.warp.sync 0xfffffffe;", 32, False),
        ("bar.warp.sync -1;\n@%p0 ret;", 32, False),
        ("bar.warp.sync -1;", 8, False),  # a warp with eight lanes
        ("@%p0 ret;\nelect.sync _|%p1, -1;", 32, True),
        ("elect.sync _|%p1, -1;", 32, False),
        ("@%p0 ret;\nvote.sync.any.pred %p1, %p2, -1;", 32, False),
        ("@%p0 ret;\nbar.sync 0;", 32, False),
    ],
)
def test_whether_lanes_of_the_mask_may_have_exited_is_a_decision(body: str, threads: int, undefined: bool) -> None:
    """D20: the pages of bar.warp.sync and elect.sync alone wait for all lanes of the mask."""
    assert rules(verdict_of(body, threads)) == set()
    other = rules(verdict_of(body, threads, model="readings/D20-all"))
    assert other == ({"undefined-instruction"} if undefined else set())


def test_lanes_meet_those_of_the_same_mask() -> None:
    body = "mov.u32 %r10, 0xffff;\nsetp.ge.u32 %p1, %r0, 16;\n@%p1 mov.u32 %r10, 0xffff0000;\nbar.warp.sync %r10;"
    assert judged(body, 32).word == "clean"


@pytest.mark.parametrize(("word", "rule"), [("bar", "barrier-divergence"), ("barrier", "")])
def test_an_aligned_barrier_is_one_instruction_for_the_warp(word: str, rule: str) -> None:
    body = f"@%p0 bra OTHER;\n{word}.sync 0;\nbra.uni OVER;\nOTHER:\n{word}.sync 0;\nOVER:\n"
    assert {finding.rule for finding in judged(body, 32).findings} == ({rule} if rule else set())


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("barrier.cluster.arrive.aligned;", "barrier-divergence"),
        ("barrier.cluster.arrive;", ""),
        ("barrier.sync.aligned 0;", "barrier-divergence"),
        ("barrier.cta.sync.aligned 0;", "barrier-divergence"),
    ],
)
def test_an_aligned_instruction_is_one_for_the_warp(line: str, rule: str) -> None:
    """ "The optional .aligned qualifier indicates that all threads in the warp must execute the same barrier.cluster
    instruction", and those of bar and barrier.
    """
    body = f"@%p0 bra OTHER;\n{line}\nbra.uni OVER;\nOTHER:\n{line}\nOVER:\n"
    assert rules(verdict_of(body)) == ({rule} if rule else set())


HALVES = """@%p0 st.volatile.shared.u32 [%r2], 0;
bar.warp.sync -1;
setp.lt.u32 %p5, %r0, 16;
@%p5 bra FIRST;
LATE:
ld.volatile.shared.u32 %r10, [%r2];
setp.ne.u32 %p6, %r10, 1;
@%p6 bra LATE;
{arrive}
bra.uni OVER;
FIRST:
{before}
{arrive}
{after}
OVER:
"""
"""Half a warp arrives where it stands, the other half where it has seen a flag of lane 0."""
FLAG = "@%p0 st.volatile.shared.u32 [%r2], 1;"


@pytest.mark.share(2)
@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("arrive", ["barrier.cluster.arrive;", "barrier.arrive 1, 64;", "barrier.cta.arrive 1, 64;"])
def test_lanes_that_arrive_wait_for_the_others_of_their_warp(arrive: str, early: bool) -> None:
    """ "barrier{.cta} instruction causes executing thread to wait for all non-exited threads from its warp",
    "barrier.cluster instructions cause the executing thread to wait for all non-exited threads from its warp": lane 0
    has to set the flag before it arrives.
    """
    body = HALVES.format(arrive=arrive, before=FLAG if early else "", after="" if early else FLAG)
    found = rules(verdict_of(body))
    assert ("hang" in found) is not early


@pytest.mark.parametrize("arrive", ["barrier.cluster.arrive;", "barrier.arrive 1, 64;"])
def test_lanes_that_arrive_wait_for_none_that_has_exited(arrive: str) -> None:
    body = f"setp.lt.u32 %p5, %r0, 16;\n@%p5 bra FIRST;\nret;\nFIRST:\n{arrive}"
    assert not rules(verdict_of(body))


@pytest.mark.parametrize("arrive", ["barrier.cluster.arrive;", "barrier.arrive 1, 64;"])
def test_lanes_of_a_warp_arrive_under_opposite_guards(arrive: str) -> None:
    body = f"setp.lt.u32 %p5, %r0, 16;\n@%p5 {arrive}\n@!%p5 {arrive}"
    assert not rules(verdict_of(body))


ARRIVE, WAIT = "barrier.cluster.arrive;\n", "barrier.cluster.wait;\n"


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (ARRIVE + WAIT + ARRIVE + WAIT, set()),
        (ARRIVE + WAIT + ARRIVE, set()),
        (WAIT, {"hang"}),
        (ARRIVE + WAIT + WAIT, {"hang"}),
        (ARRIVE + WAIT + WAIT + ARRIVE, {"hang"}),
        (ARRIVE + ARRIVE + WAIT, {"undefined-cluster-barrier"}),
        (ARRIVE + WAIT + ARRIVE + ARRIVE, {"undefined-cluster-barrier"}),
    ],
)
def test_threads_arrive_and_wait_in_turn_at_the_cluster_barrier(body: str, expected: set[str], rank: int) -> None:
    """Each thread arrives once before the barrier completes, which its wait detects. It waits for all to arrive,
    for itself too ("barrier.cluster").
    """
    other = f"setp.eq.s32 %p7, %r5, {rank};\n@%p7 bra THIS;\n{(ARRIVE + WAIT) * 2}bra END;\nTHIS:\n{body}END:\n"
    assert rules(verdict_of(other, ctas=2, cluster=2)) == expected


POLL = """mov.u32 %r20, %ctaid.x;
setp.eq.u32 %p1, %r20, 0;
@%p1 bra READER;
@%p0 st.release.gpu.global.u32 [%d0], 1;
@%p0 st.release.gpu.global.u32 [%d0], 2;
bra END;
READER:
@%p0 ld.acquire.gpu.global.u32 %r21, [%d0];
@%p0 st.shared.u32 [%r2], %r21;
bar.sync 0;
ld.shared.u32 %r22, [%r2];
bar.sync 0;
setp.ne.u32 %p2, %r22, 2;
@%p2 bra READER;
END:
"""


@pytest.mark.parametrize("looks", [FIRST, LAST])
def test_a_write_that_is_delayed_is_made_though_those_who_poll_meet_at_barriers(looks: str) -> None:
    """They would go on for ever, and come to a new state in each round."""
    read = module(POLL)
    polled = frozenset(each.number for each in entry(read).body or () if each.words[0] == "ld")
    run = run_launch(read, entry(read), launch(34, 2, "zero"), Schedule(looks=looks, looked=polled))
    assert all(thread.ended for thread in run.threads)
