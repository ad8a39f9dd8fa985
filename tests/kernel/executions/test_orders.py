"""What one run excludes by chance: orders of fence.sc, who comes first, choices that only other schedules meet."""

from __future__ import annotations

from itertools import permutations
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.examples import SEED, seeds
from helpers.kernel.random_decisions import races
from helpers.kernel.random_tickets import tickets
from helpers.kernel.samples import entry, judged, launch, module

from memmodel.base.labels import Side, side_of
from memmodel.cat.load import load_model
from memmodel.kernel.check import executions
from memmodel.kernel.check.case import KernelCase
from memmodel.kernel.check.choices import _Dependence, _with_unknown_results
from memmodel.kernel.executions.consistent import weak_writes
from memmodel.kernel.executions.decision_conditions import load_of_several_writers
from memmodel.kernel.executions.schedules import ALL, _count, _interleavings, _together, sampled
from memmodel.kernel.machine.choices.schedule import Schedule
from memmodel.kernel.machine.code import Follower
from memmodel.kernel.machine.run import Scheduler, run_launch
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.order.last_writes import stores_matter
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.problems import Refused

pytestmark = pytest.mark.turns(2)


def rules(verdict: KernelVerdict) -> set[str]:
    return {one.rule for one in verdict.findings}


CHAIN = """
mov.u32 %r20, %ctaid.x;
setp.eq.u32 %p2, %r20, 1;
@%p2 bra MIDDLE;
setp.eq.u32 %p2, %r20, 2;
@%p2 bra LAST;
st.global.u32 [%d0+64], 7;
fence{0}.gpu;
st.relaxed.gpu.global.u32 [%d0], 1;
bra DONE;
MIDDLE:
ld.relaxed.gpu.global.u32 %r21, [%d0];
setp.eq.u32 %p3, %r21, 0;
@%p3 bra MIDDLE;
{middle}
st.relaxed.gpu.global.u32 [%d0+4], 1;
bra DONE;
LAST:
ld.relaxed.gpu.global.u32 %r21, [%d0+4];
setp.eq.u32 %p3, %r21, 0;
@%p3 bra LAST;
fence{0}.gpu;
ld.global.u32 %r22, [%d0+64];
DONE:"""
"""Data is handed on by way of a third thread."""


@pytest.mark.parametrize(
    ("fences", "middle", "word"),
    [
        (".sc", "fence.sc.gpu;", "clean"),
        (".sc", "fence.acq_rel.gpu;", "clean"),
        (".acq_rel", "fence.acq_rel.gpu;", "clean"),
        # Nothing orders the outer fences then: the later one in time may be the first one in the order of fence.sc.
        (".sc", "", "findings"),
        (".acq_rel", "", "findings"),
    ],
)
def test_an_order_of_fences_that_is_not_that_of_time(fences: str, middle: str, word: str) -> None:
    verdict = judged(CHAIN.format(fences, middle=middle), threads=1, ctas=3, init="zero")
    assert verdict.word == word
    assert rules(verdict) == (set() if word == "clean" else {"data-race"})


@pytest.mark.parametrize(("fence", "word"), [(".sc", "clean"), (".acq_rel", "findings")])
def test_coherence_orders_the_fences_around_a_relay_on_one_word(fence: str, word: str) -> None:
    """With the opposite order of the fences, the second value of the flag would precede the first in causality."""
    relay = CHAIN.format(fence, middle="").replace("[%d0+4]", "[%d0]")
    relay = relay.replace("global.u32 [%d0], 1;\nbra DONE;\nLAST", "global.u32 [%d0], 2;\nbra DONE;\nLAST")
    first, last = relay.split("LAST:")
    verdict = judged(
        f"{first}LAST:{last.replace('%r21, 0', '%r21, 2').replace('eq', 'ne')}", threads=1, ctas=3, init="zero"
    )
    assert verdict.word == word
    assert rules(verdict) == (set() if word == "clean" else {"data-race"})


EACH = """
mov.u32 %r20, %ctaid.x;
setp.ne.u32 %p2, %r20, 0;
mul.wide.u32 %d1, %r0, 4;
add.s64 %d2, %d0, %d1;
@%p2 bra READER;
st.global.u32 [%d2+64], %r0;
membar.gl;
{before}
@%p0 st.volatile.global.u32 [%d0], 1;
bra DONE;
READER:
@!%p0 bra SEEN;
WAIT:
ld.volatile.global.u32 %r21, [%d0];
setp.eq.u32 %p3, %r21, 0;
@%p3 bra WAIT;
SEEN:
{after}
membar.gl;
ld.global.u32 %r22, [%d2+64];
DONE:"""
"""Each thread has a fence; one of them sets the flag, and one looks at it."""


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ("bar.sync 0;", "bar.sync 0;", "clean"),
        ("", "bar.sync 0;", "findings"),
        ("bar.sync 0;", "", "findings"),
        ("bar.warp.sync -1;", "bar.sync 0;", "findings"),
    ],
)
def test_a_fence_for_each_thread_is_no_barrier(before: str, after: str, word: str) -> None:
    verdict = judged(EACH.format(before=before, after=after), ctas=2, init="zero")
    assert verdict.word == word
    assert rules(verdict) == (set() if word == "clean" else {"data-race"})


DEKKER = """
mov.u32 %r20, %ctaid.x;
mul.wide.u32 %d1, %r20, 4;
add.s64 %d2, %d0, %d1;
xor.b32 %r21, %r20, 1;
mul.wide.u32 %d3, %r21, 4;
add.s64 %d4, %d0, %d3;
st.relaxed.gpu.global.u32 [%d2], 1;
{fence}
ld.relaxed.gpu.global.u32 %r22, [%d4];
setp.ne.u32 %p3, %r22, 0;
@%p3 bra DONE;
st.global.u32 [%d0+64], %r20;
DONE:"""
"""Each of two threads goes on only if the other one has not said that it comes."""


def test_an_order_that_values_forbid_is_not_looked_at() -> None:
    """At most one of them goes on: that the fences stand the other way round would need other values."""
    assert judged(DEKKER.format(fence="fence.sc.gpu;"), threads=1, ctas=2, init="zero").word == "clean"


LOCK = """
@!%p0 bra DONE;
TAKE:
atom.relaxed.gpu.global.exch.b32 %r21, [%d0], 1;
setp.eq.u32 %p3, %r21, 0;
@%p3 bra TAKEN;
nanosleep.u32 20;
AGAIN:
atom.relaxed.gpu.global.exch.b32 %r22, [%d0], 1;
setp.ne.u32 %p4, %r22, 0;
@%p4 bra AGAIN;
TAKEN:
{acquire}
ld.global.u32 %r23, [%d0+64];
add.u32 %r23, %r23, 1;
st.global.u32 [%d0+64], %r23;
{release}
atom.relaxed.gpu.global.exch.b32 %r24, [%d0], 0;
DONE:"""
"""A lock that is asked for once and then in a loop, which the first run does not come to."""


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("acquire", "release", "word"),
    [
        ("fence.acq_rel.gpu;", "fence.acq_rel.gpu;", "clean"),
        ("", "fence.acq_rel.gpu;", "findings"),
        ("fence.acq_rel.gpu;", "", "findings"),
        ("fence.acq_rel.cta;", "fence.acq_rel.gpu;", "findings"),
    ],
)
def test_choices_that_the_first_run_does_not_meet(acquire: str, release: str, word: str) -> None:
    verdict = judged(LOCK.format(acquire=acquire, release=release), threads=32, ctas=3, init="zero")
    assert verdict.word == word


def test_how_long_a_thread_naps_is_no_choice() -> None:
    """A flag that nobody sets, with a nap whose length comes from the clock: a hang, and no unknown branch."""
    body = """
mov.u64 %d5, %globaltimer;
POLL:
ld.relaxed.gpu.global.u32 %r21, [%d0];
setp.ne.u32 %p3, %r21, 0;
@%p3 bra DONE;
mov.u64 %d6, %globaltimer;
sub.s64 %d7, %d6, %d5;
setp.lt.s64 %p4, %d7, 4000;
@%p4 bra SHORT;
nanosleep.u32 1000;
bra.uni POLL;
SHORT:
cvt.u32.u64 %r22, %d7;
nanosleep.u32 %r22;
bra.uni POLL;
DONE:"""
    verdict = judged(body, threads=1, init="zero")
    assert rules(verdict) == {"hang"}


@pytest.mark.parametrize("fence", ["fence.acq_rel.gpu;", "fence.sc.gpu;", "fence.proxy.async;"])
def test_a_fence_in_each_round_is_no_progress(fence: str) -> None:
    poll = f"P: ld.relaxed.gpu.global.u32 %r20, [%d0];\n{fence}\nsetp.ne.u32 %p3, %r20, 1;\n@%p3 bra P;"
    assert rules(judged(poll, threads=1, ctas=2, init="zero")) == {"hang"}


AHEAD = """
setp.eq.u32 %p1, %r0, 32;
@%p0 mbarrier.init.shared.b64 [%r4], 1;
bar.sync 0;
@%p1 st.shared.u32 [%r2], %r0;
@%p1 mbarrier.arrive.shared.b64 %d5, [%r4];
{barrier}
@!%p0 bra DONE;
mbarrier.try_wait.parity.shared.b64 %p5, [%r4], 0;
selp.b32 %r10, 1, 0, %p5;
{between}
setp.ne.b32 %p6, %r10, 0;
@%p6 bra SEEN;
{saved}
SEEN:
ld.shared.u32 %r5, [%r2];
DONE:"""
"""A thread looks ahead; what the answer would save is to be filled in."""
WAIT = "AGAIN:\nmbarrier.try_wait.parity.shared.b64 %p7, [%r4], 0;\n@!%p7 bra AGAIN;"


@pytest.mark.parametrize(
    ("barrier", "between", "saved", "word"),
    [
        ("", "", WAIT, "clean"),
        # The answer decides nothing: the run in which it is no has the least order, and stands for all others.
        ("", "", "", "findings"),
        ("", "", "mov.b32 %r11, 7;", "findings"),
        ("bar.sync 0;", "", "", "clean"),
        ("bar.sync 0;", "", "mov.b32 %r11, 7;\nbra.uni SEEN;", "clean"),
        # It decides something: which number is stored, whether an access is made, how often a loop goes round.
        ("bar.sync 0;", "st.shared.u32 [%r2+8], %r10;", "", "undecided"),
        ("bar.sync 0;", "", "st.shared.u32 [%r2+8], 1;", "undecided"),
        ("bar.sync 0;", "mov.b32 %r11, 0;", "MORE:\nadd.s32 %r11, %r11, 1;\nsetp.lt.s32 %p8, %r11, 9;\n@%p8 bra MORE;",
         "undecided"),
        # It decides more than whether the thread waits.
        ("", "", WAIT + "\nst.shared.u32 [%r2+8], 1;", "undecided"),
        ("", "", WAIT + "\nbar.sync 1, 32;", "undecided"),
    ],
)  # fmt: skip
def test_a_look_ahead_that_saves_nothing(barrier: str, between: str, saved: str, word: str) -> None:
    assert judged(AHEAD.format(barrier=barrier, between=between, saved=saved)).word == word


def test_a_look_ahead_that_saves_a_wait_here_and_nothing_there() -> None:
    body = AHEAD.format(barrier="", between="", saved=WAIT)
    assert judged(body.replace("DONE:", "@%p6 bra DONE;\nmov.b32 %r11, 7;\nDONE:")).word == "clean"
    assert judged(body.replace("DONE:", "@%p6 bra DONE;\nst.shared.u32 [%r2+8], 1;\nDONE:")).word == "undecided"


def test_what_the_answer_decides_is_not_nothing_if_it_is_used_later() -> None:
    for saved in ("mov.b32 %r11, 2;", f"mov.b32 %r11, 2;\n{WAIT}", f"{WAIT}\nmov.b32 %r11, 2;"):
        body = AHEAD.format(barrier="bar.sync 0;", between="mov.b32 %r11, 1;", saved=saved)
        assert judged(body.replace("ld.shared", "st.shared.u32 [%r2+8], %r11;\nld.shared")).word == "undecided", saved


def test_a_gather_by_data_within_a_warp() -> None:
    """Which lane a shuffle reads depends on data: its result is unknown, and nothing else is."""
    body = """
mul.wide.u32 %d1, %r0, 4;
add.s64 %d2, %d0, %d1;
ld.global.u32 %r9, [%d2];
shfl.sync.idx.b32 %r10|%p5, %r0, %r9, 31, -1;
{use}"""
    assert judged(body.format(use="st.shared.u32 [%r3], %r10;")).word == "clean"
    assert judged(body.format(use="add.s32 %r11, %r2, %r10;\nst.shared.u8 [%r11], 1;")).word == "undecided"
    assert judged(body.format(use="@%p5 st.shared.u32 [%r3], 1;")).word == "undecided"


GIVES_UP = """
mov.u32 %r5, %ctaid.x;
setp.ne.u32 %p1, %r5, 0;
mov.u32 %r7, 0;
@%p1 bra POLL;
st.global.u32 [%d0+64], %r5;
st.release.gpu.global.u32 [%d0], 1;
bra DONE;
POLL:
ld.acquire.gpu.global.u32 %r8, [%d0];
setp.ne.u32 %p2, %r8, 0;
@%p2 bra READ;
add.u32 %r7, %r7, 1;
setp.lt.u32 %p3, %r7, {most};
@%p3 bra POLL;
{otherwise}
READ:
ld.global.u32 %r9, [%d0+64];
DONE:"""
"""A thread polls a flag so many times, and then does something else."""


@pytest.mark.share(2)
@pytest.mark.parametrize("most", [1, 3, 30, 1000])
def test_a_loop_that_polls_may_give_up(most: int) -> None:
    verdict = judged(GIVES_UP.format(most=most, otherwise=""), threads=1, ctas=2, init="zero")
    assert verdict.word == "findings" and rules(verdict) == {"data-race"}
    verdict = judged(GIVES_UP.format(most=most, otherwise="bra DONE;"), threads=1, ctas=2, init="zero")
    assert verdict.word == ("explored" if most > 30 else "clean") and not verdict.findings


TAKES = """
mov.u32 %r7, 0;
TRY:
{take}
setp.eq.u32 %p2, %r8, 0;
@%p2 bra TAKEN;
add.u32 %r7, %r7, 1;
setp.lt.u32 %p3, %r7, {most};
@%p3 bra TRY;
{otherwise}
TAKEN:
ld.global.u32 %r9, [%d0+64];
add.u32 %r9, %r9, 1;
st.global.u32 [%d0+64], %r9;
st.release.gpu.global.u32 [%d0], 0;
DONE:"""
"""A thread tries so many times to take a lock, and then does something else."""


@pytest.mark.share(2)
@pytest.mark.parametrize("most", [1, 30])
@pytest.mark.parametrize("take", ["cas.b32 %r8, [%d0], 0, 1;", "exch.b32 %r8, [%d0], 1;"])
def test_who_tries_to_take_a_lock_may_give_up(take: str, most: int) -> None:
    text = TAKES.format(take=f"atom.acquire.gpu.global.{take}", most=most, otherwise="{otherwise}")
    verdict = judged(text.format(otherwise=""), threads=1, ctas=2, init="zero")
    assert verdict.word == "findings" and rules(verdict) == {"data-race"}
    assert not judged(text.format(otherwise="bra DONE;"), threads=1, ctas=2, init="zero").findings


def test_who_tries_once_may_find_the_lock_taken() -> None:
    once = TAKES.replace("@%p3 bra TRY;\n", "").replace("TRY:\n", "")
    once = once.format(take="atom.acquire.gpu.global.cas.b32 %r8, [%d0], 0, 1;", most=1, otherwise="{otherwise}")
    verdict = judged(once.format(otherwise="st.global.u32 [%d0+64], 1;\nbra DONE;"), threads=1, ctas=2, init="zero")
    assert verdict.word == "findings" and "data-race" in rules(verdict)


TESTS = """
@%p0 mbarrier.init.shared.b64 [%r4], 1;
bar.sync 0;
setp.lt.u32 %p4, %r0, 32;
mov.u32 %r7, 0;
@%p4 bra ARRIVE;
TEST:
mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], 0;
@%p5 bra READ;
add.u32 %r7, %r7, 1;
setp.lt.u32 %p3, %r7, {most};
@%p3 bra TEST;
{otherwise}
READ:
ld.shared.u32 %r9, [s];
bra DONE;
ARRIVE:
@!%p0 bra DONE;
st.shared.u32 [s], %r0;
mbarrier.arrive.shared::cta.b64 %d5, [%r4];
DONE:"""
"""Threads test a phase so many times, and then do something else."""


@pytest.mark.parametrize("most", [3, 30, 1000])
def test_a_loop_that_tests_a_phase_may_give_up(most: int) -> None:
    assert rules(judged(TESTS.format(most=most, otherwise=""))) == {"data-race"}
    assert judged(TESTS.format(most=most, otherwise="bra DONE;")).word == "undecided"


TRIED = """
@!%p0 bra OTHERS;
atom.relaxed.gpu.global.cas.b32 %r5, [%d0], 0, 1;
setp.ne.u32 %p2, %r5, 0;
@%p2 st.global.u32 [%d0+64], 8;
bra END;
OTHERS: setp.eq.u32 %p1, %r0, 32;
@!%p1 bra END;
atom.acq_rel.gpu.global.cas.b32 %r5, [%d0], 0, 2;
setp.eq.u32 %p3, %r5, 0;
@%p3 ld.global.u32 %r6, [%d0+64];
@%p3 st.release.gpu.global.u32 [%d0], 0;
END:"""


def test_a_store_that_only_another_schedule_makes() -> None:
    """Thread 0 comes between the operation of the other thread and its store: two orders of operations are not all."""
    verdict = judged(TRIED, init="zero")
    assert (verdict.word, rules(verdict)) == ("findings", {"data-race"})
    alone = judged(TRIED.replace("@%p3 ld.global.u32 %r6, [%d0+64];", ""), init="zero")
    assert alone.word == "clean" and alone.exhaustive


TWICE = """
@!%p0 bra OUT;
atom.relaxed.gpu.global.add.u32 %r5, [%d0], 1;
atom.relaxed.gpu.global.add.u32 %r6, [%d0], 1;
setp.{last};
@%p3 st.global.u32 [%d0+64], %r6;
OUT:"""


def test_all_orders_of_two_operations_of_each_thread() -> None:
    """Of the six orders, each has one thread that reads 3; in two of them one second operation reads 2, another 3."""
    verdict = judged(TWICE.format(last="eq.u32 %p3, %r6, 3"), 32, 2, "zero")
    assert verdict.word == "clean" and verdict.explored == 6 and verdict.exhaustive
    assert rules(judged(TWICE.format(last="ge.u32 %p3, %r6, 2"), 32, 2, "zero")) == {"data-race"}
    verdict = judged(TWICE.format(last="eq.u32 %p3, %r6, 5"), 32, 3, "zero")
    assert verdict.word == "clean" and verdict.explored == 90 and verdict.exhaustive


@pytest.mark.parametrize(("most", "word"), [(31, "findings"), (63, "explored")])
def test_two_warps_of_lanes_at_one_counter(most: int, word: str) -> None:
    """A number from 0 to `most` is a slot: of 64 threads two have one of 32, be they lanes of one number or not."""
    body = f"""
    atom.relaxed.gpu.global.inc.u32 %r5, [%d0], {most};
    mul.wide.u32 %d5, %r5, 4;
    add.u64 %d6, %d0, %d5;
    st.global.u32 [%d6+64], %r0;"""
    verdict = judged(body, 32, 2, "zero")
    assert (verdict.word, "data-race" in rules(verdict)) == (word, word == "findings")


def test_a_drawn_order_is_one_that_warps_can_make() -> None:
    """Threads 0 and 1 are lanes of a warp, each makes two operations; a warp of one lane comes as drawn."""
    places = [SimpleNamespace(cta=0, warp=0), SimpleNamespace(cta=0, warp=0), SimpleNamespace(cta=1, warp=0)]
    run: Any = SimpleNamespace(threads=places)
    assert _together(run, [1, 2, 0, 2, 0, 1]) == [1, 0, 2, 1, 0, 2]
    assert _together(run, [2, 0, 2]) == [2, 0, 2]


@pytest.mark.parametrize("threads", [[], [1, 2, 3], [1, 1, 2, 2], [1, 1, 1, 1, 2], [3, 1, 3, 2]])
def test_orders_are_drawn_once_each(threads: list[int]) -> None:
    drawn = list(_interleavings(threads))
    assert len(drawn) == _count(threads) and set(drawn) == set(permutations(threads))
    assert _count([1] * 12 + [2] * 3) == 455 and _count([1] * 24 + [2]) > ALL


@pytest.mark.parametrize(("at", "matters"), [(0, True), (64, False)])
def test_a_store_matters_to_the_atomic_operations_of_its_place(at: int, matters: bool) -> None:
    read = module(f"atom.relaxed.gpu.global.add.u32 %r21, [%d0], 1;\nst.relaxed.gpu.global.u32 [%d0+{at}], 7;")
    run = run_launch(read, entry(read), launch(threads=1), Schedule())
    (atomic,) = (it.number for it in entry(read).body or () if it.opcode.startswith("atom"))
    assert stores_matter(run, {atomic}) is matters


@pytest.mark.parametrize(("at", "meets"), [(0, 0), (3, 0), (4, 1), (7, 1), (8, 0)])
def test_a_weak_write_beside_a_read_is_not_at_its_place(at: int, meets: int) -> None:
    read = module(f"st.shared.b8 [%r2+{at}], %h0;\natom.relaxed.cta.shared.add.u32 %r21, [%r2+4], 1;")
    run = run_launch(read, entry(read), launch(threads=1), Schedule())
    (atomic,) = (event for event in run.threads[0].strong() if side_of(event.label) is Side.READ)
    assert len(weak_writes(run, atomic)) == meets


@pytest.mark.parametrize(
    ("first", "at", "last", "matters"),
    [
        ("st.relaxed.gpu", 0, "ld.global.u32 %r21", True),
        ("st.relaxed.gpu", 4, "ld.global.u32 %r21", False),  # one thread alone writes there
        ("st", 0, "ld.global.u32 %r21", False),  # weakly: a race, if it is one
        ("st.relaxed.gpu", 0, "ld.relaxed.gpu.global.u32 %r21", False),  # a strong read decides by itself
    ],
)
def test_a_weak_read_of_what_several_threads_write_strongly(first: str, at: int, last: str, matters: bool) -> None:
    """A weak write of these bytes is none."""
    read = module(f"""
        {first}.global.u32 [%d0], 1;
        @%p0 st.relaxed.gpu.global.u32 [%d0+4], 1;
        @%p0 {last}, [%d0+{at}];
        @%p0 st.global.u32 [%d0], 2;
    """)
    run = run_launch(read, entry(read), launch(threads=2), Schedule())
    (load,) = (it.number for it in entry(read).body or () if it.opcode.startswith("ld") and "param" not in it.opcode)
    assert load_of_several_writers(run) == (load if matters else None)


def test_late_warps_are_slow() -> None:
    read = module("")
    scheduler = Scheduler(read, entry(read), launch(threads=96), Schedule(late=((0, 1), (1, 0))), Follower())
    assert [warp.slow for warp in scheduler.warps] == [False, True, False]


def test_a_schedule_that_cannot_be_carried_out_with_unknown_results_leaves_the_run() -> None:
    outcomes: list[Any] = [Refused("a branch is not known", None), "another run"]
    case: Any = SimpleNamespace(attempt=lambda schedule: outcomes.pop(0))
    for expected in ("the run", "another run"):
        run: Any = "the run"
        assert _with_unknown_results(case, Schedule(opaque=frozenset([1])), run, _Dependence()) == expected


EACH_LANE = """
TRY:
atom.global.cas.b32 %r10, [%d0], 0, 1;
setp.ne.s32 %p2, %r10, 0;
@%p2 bra TAKEN;
fence.sc.gpu;
ld.global.u32 %r11, [%d0+4];
add.u32 %r11, %r11, 1;
st.global.u32 [%d0+4], %r11;
{fence}
atom.global.exch.b32 %r12, [%d0], 0;
TAKEN:
@%p2 bra TRY;
"""
"""Every lane tries to take the lock, and tries again."""


@pytest.mark.parametrize("threads", [2, 3])
def test_a_lane_that_is_held_back_with_the_lock_goes_on(threads: int) -> None:
    """Where the other lanes of its warp only try again, nothing changes: no hang while one lane is held back."""
    verdict = judged(EACH_LANE.format(fence="fence.sc.gpu;"), threads, init="zero")
    assert not verdict.findings
    assert {finding.rule for finding in judged(EACH_LANE.format(fence=""), threads, init="zero").findings} == {
        "data-race"
    }


def test_a_late_warp_has_its_turn_while_others_poll_with_fences() -> None:
    """Fences that a waiting thread executes again and again are no change: a slow warp is not left out for them."""
    body = (
        "setp.lt.u32 %p1, %r0, 32;\n@%p0 mbarrier.init.shared::cta.b64 [%r4], 32;\nbar.sync 0;\n@%p1 bra GIVE;\n"
        "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;\nfence.acq_rel.cta;\n@!%p2 bra WAIT;\n"
        "ld.shared.u32 %r10, [%r2];\nbra DONE;\n"
        "GIVE: @%p0 st.shared.u32 [%r2], %r0;\nbar.warp.sync 0xffffffff;\nfence.acq_rel.cta;\n"
        "mbarrier.arrive.shared::cta.b64 _, [%r4];\nDONE:"
    )
    read = module(body)
    waits = frozenset(it.number for it in entry(read).body or () if it.opcode.startswith("mbarrier.try_wait"))
    for number in range(8):
        trace = run_launch(read, entry(read), launch(), Schedule(slow=f"slow {number}", truthful=waits))
        assert not trace.problems


ARRIVALS = """
mov.u32 %r20, %ctaid.x;
shl.b32 %r21, %r20, 6;
cvt.u64.u32 %d1, %r21;
add.u64 %d1, %d0, %d1;
xor.b32 %r21, %r21, 64;
cvt.u64.u32 %d2, %r21;
add.u64 %d2, %d0, %d2;
@%p0 st.global.u32 [%d1], 7;
bar.sync 0;
and.b32 %r22, %r0, 31;
setp.ne.u32 %p1, %r22, 0;
@%p1 bra MET;
fence.sc.gpu;
red.relaxed.gpu.global.add.u32 [%d0+256], 1;
POLL: ld.relaxed.gpu.global.u32 %r23, [%d0+256];
setp.lt.u32 %p2, %r23, 2;
@%p2 bra POLL;
fence.sc.gpu;
MET:
bar.sync 0;
@%p0 ld.global.u32 %r24, [%d2];
"""
"""The barrier of a grid of two CTAs, at which each warp arrives by mistake, and not each CTA."""


def test_the_warps_of_other_ctas_come_late() -> None:
    """What one CTA alone adds ends its loops. A single read that returns something else does not show it: the threads
    of a CTA meet behind the loop.
    """
    read = module(ARRIVALS)
    run = run_launch(read, entry(read), launch(64, 2, "zero"))
    polls = {number for _, number in run.choices}
    late = [schedule.late for schedule in sampled(entry(read), Schedule(), run, polls, 8) if schedule.late]
    assert late == [((1, 0), (1, 1)), ((0, 1), (1, 0), (1, 1))]
    judge = RunJudge(
        entry(read), run_launch(read, entry(read), launch(64, 2, "zero"), Schedule(late=late[0], starves=True))
    )
    assert {found.rule for found in judge.judgement(load_model("ptx-9.4"), frozenset()).findings} == {"data-race"}


RING = """
@%p0 mbarrier.init.shared.b64 [%r4], 1;
@%p0 mbarrier.init.shared.b64 [%r4+8], 1;
bar.sync 0;
setp.eq.s32 %p1, %r0, 32;
setp.gt.s32 %p2, %r0, {producers};
@%p2 bra CONSUMER;
{produce}
bra DONE;
CONSUMER:
@!%p1 bra DONE;
{consume}
DONE:
"""
"""One slot, three rounds: thread 0 fills it, thread 32 empties it. Other lanes of the first warp only wait."""


def ring(producers: int, sync: str) -> str:
    def step(awaited: str, parity: int, then: str) -> str:
        name = f"W{len(steps)}"
        steps.append(name)
        test = f"mbarrier.try_wait.parity.shared.b64 %p5, [{awaited}], {parity};"
        return f"{name}: {test}\n@!%p5 bra {name};\n{then}\n"

    steps: list[str] = []
    fill, empty = (f"mbarrier.arrive.shared.b64 %d5, [{at}];" for at in ("%r4", "%r4+8"))
    produce = "".join(step("%r4+8", (round_ + 1) % 2, f"{sync}\n@%p0 {fill}") for round_ in range(3))
    consume = "".join(step("%r4", round_ % 2, empty) for round_ in range(3))
    return RING.format(producers=producers, produce=produce, consume=consume)


@pytest.mark.parametrize(("producers", "sync", "word"), [
    (0, "", "clean"), (31, "", "findings"), (31, "bar.warp.sync 0xffffffff;", "clean"),
])  # fmt: skip
def test_a_lane_for_which_nobody_waits_comes_late(producers: int, sync: str, word: str) -> None:
    """Lanes that wait beside the one that acts (CUTLASS waits so in front of the elected lane) may miss two phases."""
    verdict = judged(ring(producers, sync))
    assert verdict.word == word, repr(verdict)
    assert rules(verdict) <= {"hang"}
    assert all("3 phases ended before it" in finding.message for finding in verdict.findings)


MEETING_WAIT = """
@%p0 mbarrier.init.shared.b64 [%r4], 64;
bar.sync 0;
mbarrier.arrive.shared.b64 %d5, [%r4];
W: bar.sync 0;
mbarrier.try_wait.shared.b64 %p5, [%r4], %d5;
@!%p5 bra W;
"""
"""Warps that wait for a phase meet in each round."""


def test_a_run_with_late_warps_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads may go round such a loop while they wait for a warp that is late: millions of steps that show nothing."""
    schedules: list[Schedule] = []
    attempt = KernelCase.attempt

    def noted(case: KernelCase, schedule: Schedule) -> LaunchTrace | Refused:
        schedules.append(schedule)
        return Refused("the run does not end", None) if schedule.slow else attempt(case, schedule)

    monkeypatch.setattr(KernelCase, "attempt", noted)
    verdict = judged(MEETING_WAIT)
    assert [schedule.slow for schedule in schedules if schedule.slow] == ["slow 0", "slow 1", "slow 2"]
    assert all(schedule.steps for schedule in schedules if schedule.slow or schedule.late)
    assert verdict.word == "undecided" and not any("does not end" in reason for reason in verdict.open)


TICKET = """@!%p0 bra MET;
mov.u32 %r10, %ctaid.x;
mul.wide.u32 %d1, %r10, 4;
add.s64 %d1, %d1, %d0;
st.global.u32 [%d1+64], 5;
mov.u32 %r11, %nctaid.x;
atom.{order}.gpu.global.inc.u32 %r12, [%d0], %r11;
add.s32 %r13, %r11, -1;
setp.eq.u32 %p2, %r12, %r13;
selp.u32 %r14, 1, 0, %p2;
st.shared.u32 [%r2], %r14;
MET: bar.sync 0;
ld.shared.u32 %r14, [%r2];
setp.eq.u32 %p3, %r14, 0;
@%p3 bra OUT;
mul.wide.u32 %d1, %r0, 4;
add.s64 %d1, %d1, %d0;
ld.global.u32 %r15, [%d1+64];
OUT:"""
"""The last CTA reads what all have written."""


@pytest.mark.parametrize(("order", "word"), [("acq_rel", "clean"), ("acquire", "findings")])
def test_one_run_for_all_orders_with_the_same_last_one(order: str, word: str) -> None:
    """Eight CTAs, of which each may be the last one: 40,320 orders."""
    verdict = judged(TICKET.format(order=order), 64, 8, "zero")
    assert (verdict.word, verdict.explored, verdict.exhaustive) == (word, 8, True)


@pytest.mark.parametrize(("gives", "word"), [(0, "findings"), (2, "findings"), (None, "clean")])
def test_operations_of_one_rank_order_nothing(gives: int | None, word: str) -> None:
    """All but the first thread read, and one writes before its ticket: it may be the last one. Its ticket comes before
    that of a reader in some orders of a rank, and behind it in others.
    """
    stores = "" if gives is None else f"setp.eq.u32 %p1, %r10, {gives};\n@%p1 st.global.u32 [%d0+64], 5;"
    body = f"""mov.u32 %r10, %ctaid.x;
{stores}
atom.acq_rel.gpu.global.add.u32 %r12, [%d0], 1;
setp.eq.u32 %p2, %r12, 0;
@%p2 bra OUT;
ld.global.u32 %r15, [%d0+64];
OUT:"""
    verdict = judged(body, 1, 3, "zero")
    assert (verdict.word, rules(verdict)) == (word, set() if word == "clean" else {"data-race"})


WITH_TICKETS = (9, 13, 25, 36, 65)
"""Seeds of kernels in which a ticket decides, and one run stands for several orders."""

IN_ONE_RANK = (2, 97)
"""Seeds of those that race only where two threads whose tickets do alike come in another order."""


@pytest.mark.share(2)
@pytest.mark.generated
@pytest.mark.parametrize("seed", [*WITH_TICKETS, *IN_ONE_RANK, *(seeds(12) if SEED else ())])
def test_one_run_for_several_orders_finds_what_all_orders_show(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    litmus, kernel, threads = tickets(seed)
    verdict = judged(kernel, 1, threads, "zero")
    monkeypatch.setattr(executions, "ranks_alike", lambda *_: None)
    all_orders = judged(kernel, 1, threads, "zero")
    assert {finding.key for finding in verdict.findings} == {finding.key for finding in all_orders.findings}, kernel
    assert any("race" in finding.rule for finding in verdict.findings) is races(litmus), kernel
    assert verdict.explored < all_orders.explored or seed not in WITH_TICKETS


def test_any_lane_may_be_elected() -> None:
    """ "elect.sync elects one predicated active leader thread", and its page does not say which."""
    body = """mov.u32 %r10, %laneid;
elect.sync _|%p1, -1;
setp.eq.and.u32 %p2, %r10, 5, %p1;
@%p2 st.shared.u32 [%r2], %r0;
setp.eq.u32 %p3, %r0, 40;
@%p3 st.shared.u32 [%r2], 1;
"""
    assert rules(judged(body)) == {"data-race"}
    rounds = "mov.u32 %r11, 0;\nL: add.u32 %r11, %r11, 1;\nsetp.lt.u32 %p4, %r11, 9;\n@%p4 bra L;"
    longer = judged(body + rounds)
    assert longer.word == "clean" and executions.ELECTED in longer.assumptions
