"""Each condition of docs/kernels-theorem.md: kernels that violate exactly it, and near misses that keep it."""

from __future__ import annotations

import pytest
from helpers.kernel.samples import judged

from memmodel.kernel.conflicts import uses

OTHER = "setp.eq.s32 %p1, %r0, 32;"
"""%p1: thread 32, of another warp than thread 0."""
OBJECT = "@%p0 mbarrier.init.shared.b64 [%r4], {count};\nbar.sync 0;"
WAIT = "W{n}: mbarrier.try_wait.shared.b64 %p5, [%r4], {state};\n@!%p5 bra W{n};"
INVAL = "@%p0 mbarrier.inval.shared.b64 [%r4];"
ARRIVE = "mbarrier.arrive.shared.b64 {state}, [%r4];"
BRANCH = """
bar.sync 0;
ld.{space}.u32 %r5, [{at}];
setp.eq.s32 %p2, %r5, 1;
@%p2 bra L;
@%p0 st.shared.u32 [s+4], %r0;
L:
"""
FLAG = """
@%p0 st.global.u32 [%d0+64], 7;
@%p0 {store} [%d0], 1;
@!%p1 bra L;
atom.acquire.gpu.global.add.u32 %r5, [%d0], 0;
setp.eq.s32 %p2, %r5, 1;
@!%p2 bra L;
ld.global.u32 %r6, [%d0+64];
L:
"""


def obj(count: int = 64) -> str:
    return OBJECT.format(count=count)


def wait(n: int = 0, state: str = "%d5") -> str:
    return WAIT.format(n=n, state=state)


def arrive(state: str = "%d5") -> str:
    return ARRIVE.format(state=state)


def lines(*parts: str) -> str:
    return "\n".join(parts)


def left_in_memory(one: str, other: str, space: str = "shared", at: str = "s") -> str:
    """Thread 0 and thread 32 write; then a branch depends on what is there."""
    return lines(OTHER, f"@%p0 {one};", f"@%p1 {other};", BRANCH.format(space=space, at=at))


STORES = "st.relaxed.cta.shared.u32 [s], {}"
REDUCE = "red.relaxed.gpu.global.{} [%d0], 1"

VALUES = [
    ("two stores, the last one not known", left_in_memory(STORES.format(1), STORES.format(2)), "explored"),
    ("two stores of one number", left_in_memory(STORES.format(1), STORES.format(1)), "clean"),
    ("two stores in order", left_in_memory(STORES.format(1), "nanosleep.u32 0")
     .replace("@%p1 nanosleep.u32 0;", "bar.sync 0;\n@%p1 st.relaxed.cta.shared.u32 [s], 2;"), "clean"),
    ("a store and an atomic operation",
     left_in_memory("st.relaxed.gpu.global.u32 [%d0], 1", REDUCE.format("add.u32"), "global", "%d0"), "explored"),
    ("operations that do not commute, in both orders",
     left_in_memory(REDUCE.format("max.u32"), REDUCE.format("add.u32"), "global", "%d0"), "clean"),
    ("operations that commute",
     left_in_memory(REDUCE.format("add.u32"), REDUCE.format("add.u32"), "global", "%d0"), "clean"),
    ("a store that an atomic operation may see or not", lines(OTHER, FLAG.format(store="st.release.gpu.global.u32")),
     "clean"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "word"), [one[1:] for one in VALUES], ids=[one[0] for one in VALUES])
def test_what_writes_leave(body: str, word: str) -> None:
    verdict = judged(body, init="zero")
    assert verdict.word == word, repr(verdict)
    assert bool(verdict.choices) == (word != "clean" or "max" in body or "acquire" in body)


def test_orders_of_atomics_are_not_all_if_a_store_takes_part() -> None:
    """Thread 32 may see the flag or not; to count atomic operations alone would leave the run with a race out."""
    verdict = judged(lines(OTHER, FLAG.format(store="st.relaxed.gpu.global.u32")), init="zero")
    assert verdict.word == "findings"


OBJECTS = [
    ("a state that is too old", lines(obj(), arrive(), wait(), arrive("%d6"), wait(1, "%d6"), wait(2)),
     "undefined-mbarrier-state"),
    ("a state of the phase before", lines(obj(), arrive(), wait(), wait(1), arrive("%d6"), wait(2, "%d6")), ""),
    ("noComplete completes", lines(obj(), "mbarrier.arrive.noComplete.shared.b64 %d5, [%r4], 1;"),
     "undefined-mbarrier"),
    ("noComplete before the last arrival",
     lines(obj(65), "@%p0 mbarrier.arrive.noComplete.shared.b64 %d5, [%r4], 1;", arrive(), wait()), ""),
    ("no arrivals", lines("@%p0 mbarrier.init.shared.b64 [%r4], 0;"), "undefined-instruction"),
    ("an object with two lives",
     lines(obj(), arrive(), wait(), f"bar.sync 0;\n{INVAL}", obj(), arrive(), wait(1)), ""),
    ("an object that is used after its life",
     lines(obj(), arrive(), wait(), INVAL), "undefined-mbarrier-inval"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "rule"), [one[1:] for one in OBJECTS], ids=[one[0] for one in OBJECTS])
def test_objects(body: str, rule: str) -> None:
    verdict = judged(body, init="zero")
    assert rule in {one.rule for one in verdict.findings} if rule else verdict.word == "clean", repr(verdict)


COUNTS = [
    ("an arrive that may complete",
     lines(obj(), "setp.lt.s32 %p1, %r0, 32;", "@%p1 mbarrier.arrive.noComplete.shared.b64 %d5, [%r4], 1;",
           "@%p1 bra L;", arrive(), "L:", "W: mbarrier.try_wait.parity.shared.b64 %p5, [%r4], 0;", "@!%p5 bra W;"),
     "it may be the one that completes the phase"),
    ("a pending count that is raised late",
     lines(OTHER, obj(1), "@%p1 cp.async.ca.shared.global [%r2], [%d0], 4;",
           "@%p1 cp.async.mbarrier.arrive.shared.b64 [%r4];", f"@%p0 {arrive()}"),
     "it is not ordered before an arrival of its phase"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "why"), [one[1:] for one in COUNTS], ids=[one[0] for one in COUNTS])
def test_counts(body: str, why: str) -> None:
    verdict = judged(body, init="zero")
    assert verdict.word != "clean" and any(why in one for one in verdict.open), repr(verdict)


FIRST_WARP = lines("setp.ge.s32 %p1, %r0, 32;", "@%p1 bra L;", "bar.sync 1, 64;", "L:")
BARRIERS = [
    ("a number that is too large", "bar.sync 16;", 64, "undefined-instruction"),
    ("half a warp", "bar.sync 1, 48;", 64, "undefined-instruction"),
    ("an arrive without a count", "bar.arrive 1, 0;", 64, "undefined-instruction"),
    ("too few threads", "bar.sync 1, 96;", 64, "hang"),
    ("a warp of which half is there", "bar.sync 1, 64;", 48, ""),
    ("a lane that has left", "@%p0 bra L;\nbar.sync 1, 64;\nL:", 64, ""),
    ("all threads", "bar.sync 1, 0;", 64, ""),
    ("a count that exits do not fill", FIRST_WARP, 96, "hang"),
    ("a count of all threads, of which some have left", FIRST_WARP, 64, "hang"),
    ("no count, and some have left", FIRST_WARP.replace(", 64", ""), 64, ""),
]


@pytest.mark.parametrize(("body", "threads", "rule"), [one[1:] for one in BARRIERS], ids=[one[0] for one in BARRIERS])
def test_barriers(body: str, threads: int, rule: str) -> None:
    found = {one.rule for one in judged(body, threads).findings}
    assert found == ({rule} if rule else set())


def test_a_phase_that_is_looked_at_once_and_never_ends_is_no_hang() -> None:
    once = "mbarrier.test_wait.parity.shared.b64 %p5, [%r4], 0;"
    verdict = judged(lines(obj(65), arrive(), once, "@%p5 st.shared.u32 [%r3], %r0;"))
    assert verdict.word == "undecided" and not verdict.findings and "after a failure" in verdict.open[0]
    verdict = judged(lines(obj(65), arrive(), once, "@!%p5 st.shared.u32 [s], %r0;"))  # stored where it returns false
    assert {one.rule for one in verdict.findings} == {"data-race"}


def test_a_copy_that_still_reads_when_its_cta_ends() -> None:
    store = """
st.shared.u32 [%r3], %r0;
fence.proxy.async.shared::cta;
bar.sync 0;
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r2], 256;
@%p0 cp.async.bulk.commit_group;
"""
    assert [one.rule for one in judged(store).findings] == ["undefined-after-exit"]
    assert judged(store + "@%p0 cp.async.bulk.wait_group.read 0;\n").word == "clean"


COPIED = """
@%p0 mbarrier.init.shared.b64 [%r4], 1;
bar.sync 0;
mov.u32 %r20, 256;
@!%p0 bra W;
mbarrier.arrive.expect_tx.shared.b64 %d5, [%r4], {expected};
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d0], %r20, [%r4];
W: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], 0;
@!%p5 bra W;
"""


LATE = lines(
    obj(1), OTHER, "@!%p1 bra J;", *[ARRIVE.format(state="_")] * 3, "J: bar.sync 0;", "@!%p0 bra E;",
    *(wait(n, str(n)).replace("try_wait", "try_wait.parity") for n in (0, 1)), "E:",
)  # fmt: skip
"""Three phases end, then a thread waits for the first and for the second one."""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (LATE, "lacks 1 of 1 arrivals; 3 phases ended before it, and its threads waited for 1 of them: by parity"),
        (COPIED.format(expected=512), "lacks 256 bytes that were announced"),
        (COPIED.format(expected=128), "got 128 bytes that nobody announced"),
        (lines(obj(65), arrive(), wait()), "lacks 1 of 65 arrivals"),
        ("bar.sync 1, 96;", "64 of 96 threads have arrived at barrier 1"),
        (wait(state="0").replace("try_wait", "try_wait.parity"), "its mbarrier object is not initialised"),
    ],
)
def test_a_hang_names_what_is_missing(body: str, said: str) -> None:
    finding = judged(body).findings[0]
    assert finding.rule == "hang" and said in finding.message


def test_readers_that_miss_phases_race_with_the_writer_too() -> None:
    """A mailbox whose writer does not wait for the readers: in the first run these miss phases, and never read."""
    rounds = range(3)
    written = [f"st.shared.u32 [s], {n};\n{ARRIVE.format(state='_')}" for n in rounds]
    reads = [f"{wait(n, str(n % 2)).replace('try_wait', 'try_wait.parity')}\nld.shared.u32 %r5, [s];" for n in rounds]
    verdict = judged(lines(obj(1), OTHER, "@%p1 bra R;", "@!%p0 bra E;", *written, "bra E;", "R:", *reads, "E:"))
    assert {finding.rule for finding in verdict.findings} == {"hang", "data-race", "undefined-unobserved-phase"}


POLL = """
mov.u32 %r8, %ctaid.x;
setp.ne.s32 %p1, %r8, 0;
@%p1 st.release.gpu.global.u32 [%d0], 1;
@%p1 bra L;
W: ld.acquire.gpu.global.u32 %r5, [%d0];
setp.ne.s32 %p2, %r5, 1;
@%p2 bra W;
L:
"""
TIME_OUT = """
mov.u32 %r20, 0;
W: mbarrier.try_wait.shared.b64 %p5, [%r4], %d5;
@%p5 bra L;
add.s32 %r20, %r20, 1;
setp.lt.s32 %p6, %r20, 100000;
@%p6 bra W;
trap;
L:
"""


def test_what_is_left_out_is_said() -> None:
    assert any("all CTAs are resident" in what for what in judged(POLL, 1, 2, "zero").assumptions)
    assert not any("all CTAs are resident" in what for what in judged(POLL, 1, 1, "zero").assumptions)
    verdict = judged(lines(obj(), arrive(), TIME_OUT))
    assert verdict.word == "clean" and "time-out" in next(iter(verdict.assumptions))


READ = """
setp.eq.s32 %p1, %r0, 32;
setp.eq.s32 %p3, %r0, 64;
or.pred %p4, %p0, %p1;
@%p3 st.relaxed.gpu.global.u32 [%d0], 1;
@%p4 {what} %r5, [%d0]{more};
@%p4 st.shared.u32 [s], {value};
"""


@pytest.mark.parametrize(
    ("what", "more", "value", "rule"),
    [
        ("ld.relaxed.gpu.global.u32", "", "%r5", "data-race"),
        ("atom.relaxed.gpu.global.or.b32", ", 0", "%r5", "data-race"),
        ("ld.relaxed.gpu.global.u32", "", "7", "equal-store-race"),
    ],
)
def test_what_is_equal_by_chance_is_not_equal(what: str, more: str, value: str, rule: str) -> None:
    """Two threads store what they read of a flag: the same in one schedule, not in another one."""
    found = judged(READ.format(what=what, more=more, value=value), 96, init="zero").findings
    assert [one.rule for one in found] == [rule]


WAITING = """
setp.eq.s32 %p1, %r0, 32;
setp.eq.s32 %p3, %r0, 64;
mov.u32 %r20, 0;
{before}
@%p0 st.global.u32 [%d0+64], 7;
@%p0 st.release.gpu.global.u32 [%d0], 1;
{other}
@!%p1 bra L;
W: ld.{load}.gpu.global.u32 %r5, [%d0];
{inside}
setp.ne.s32 %p2, %r5, {goal};
@%p2 bra {target};
ld.global.u32 %r6, [%d0+64];
{after}
L:
"""
PLAIN = {"before": "", "other": "", "load": "acquire", "inside": "", "goal": "1", "target": "W", "after": ""}


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({}, "clean"),
        ({"load": "relaxed"}, "findings"),
        ({"inside": "nanosleep.u32 20;"}, "clean"),
        ({"inside": "add.s32 %r20, %r20, 1;"}, "clean"),
        ({"inside": "add.s32 %r20, %r20, 1;", "after": "st.global.u32 [%d0+128], %r20;"}, "explored"),
        ({"target": "L"}, "clean"),
        ({"before": "shr.u32 %r21, %r0, 5;", "goal": "%r21"}, "clean"),
        ({"before": "mov.u32 %r21, 0;", "inside": "mov.u32 %r21, 1;", "goal": "%r21"}, "clean"),
        ({"before": "ld.relaxed.gpu.global.u32 %r21, [%d0+4];", "goal": "%r21"}, "findings"),  # 0 ends it
        ({"other": "@%p3 st.relaxed.gpu.global.u32 [%d0], 2;"}, "findings"),  # a hang: 1 is not seen before it is 2
        ({"before": "@%p0 st.global.u32 [%d0], 0;\nbar.sync 0;"}, "clean"),
        ({"before": "@%p0 st.global.u32 [%d0], 0;"}, "findings"),  # an earlier round of the loop races with it
    ],
)
def test_a_flag_with_one_writer_is_a_wait(change: dict[str, str], word: str) -> None:
    """A loop that polls for the only write there is ends in one way; any other use of a strong load is a choice."""
    assert judged(WAITING.format(**{**PLAIN, **change}), 96, init="zero").word == word


TURNS = """
mov.u32 %r20, %ctaid.x;
@!%p0 bra L;
{before}
W: ld.{load}.gpu.global.u32 %r5, [%d0];
setp.{again}.u32 %p2, %r5, %r20;
@%p2 bra W;
ld.global.u32 %r6, [%d0+64];
add.u32 %r6, %r6, 1;
st.global.u32 [%d0+64], %r6;
add.u32 %r21, %r20, 1;
st.{store}.gpu.global.u32 [%d0], %r21;
{after}
L:
"""
LAST = "setp.eq.u32 %p3, %r20, 2;\n@%p3 st.relaxed.gpu.global.u32 [%d0], {};"


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({}, "clean"),
        ({"load": "relaxed"}, "findings"),
        ({"store": "relaxed"}, "findings"),
        ({"again": "lt"}, "clean"),  # a later number would end it, too, but comes after the wait
        ({"again": "gt"}, "findings"),  # 0 ends every loop
        ({"after": LAST.format(0)}, "clean"),  # the first CTA has its turn when it is 0 again
        ({"after": LAST.format(7)}, "clean"),
        ({"before": LAST.format(7)}, "findings"),  # a hang, if that is the last one
        ({"after": "st.relaxed.gpu.global.u32 [%d0], 9;"}, "findings"),  # who comes next may never see its number
    ],
)
def test_ctas_that_take_turns(change: dict[str, str], word: str) -> None:
    """Each CTA waits for its number, which one store leaves; the others come before it, or after the wait."""
    how = {"load": "acquire", "store": "release", "again": "ne", "before": "", "after": "", **change}
    assert judged(TURNS.format(**how), 32, 3, init="zero").word == word


SHARED_BARRIER = """
setp.lt.u32 %p1, %r0, 64;
xor.b32 %r10, %r1, 128;
add.s32 %r11, %r2, %r10;
st.shared.u32 [%r3], %r0;
@!%p1 bra OTHERS;
bar.sync 1, 64;
ld.shared.u32 %r12, [%r11];
bra DONE;
OTHERS: bar.sync {number}, 64;
ld.shared.u32 %r12, [%r11];
DONE:
"""


def test_what_goes_wrong_in_another_schedule_is_found_where_a_condition_does_not_hold() -> None:
    """Two pairs of warps meet at one barrier: a warp of the one pair may meet a warp of the other one there."""
    assert judged(SHARED_BARRIER.format(number=2), 128).word == "clean"
    mixed = judged(SHARED_BARRIER.format(number=1), 128)
    assert mixed.open and "arrivals of two generations" in mixed.open[0]
    assert "data-race" in {one.rule for one in mixed.findings}


@pytest.mark.parametrize(("again", "found"), [("@!%p5 bra W;", set()), ("", {"data-race"})])
def test_a_test_that_nobody_waits_for_is_seen_to_fail(again: str, found: set[str]) -> None:
    """Thread 0 reads what thread 32 wrote after one test, whatever that returned."""
    body = lines(
        OTHER, "@%p0 mbarrier.init.shared.b64 [%r4], 1;", "bar.sync 0;", "@%p1 st.shared.u32 [%r2], %r0;",
        "@%p1 mbarrier.arrive.shared.b64 %d5, [%r4];", "@!%p0 bra L;",
        "W: mbarrier.try_wait.parity.shared.b64 %p5, [%r4], 0;", again, "ld.shared.u32 %r5, [%r2];", "L:",
    )  # fmt: skip
    verdict = judged(body)
    assert {one.rule for one in verdict.findings} == found
    assert verdict.word == ("findings" if found else "clean")


def test_a_run_that_is_too_large_to_judge_tells_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uses, "MAX_EVENTS", 4)
    verdict = judged("st.shared.u32 [s], %r0;\nbar.sync 0;\nld.shared.u32 %r9, [s];\n@%p0 st.shared.u32 [%r3+2], 3;")
    assert [one.rule for one in verdict.findings] == ["undefined-address"]
    assert (
        "events to judge are more than 4; a launch of fewer CTAs, or one whose loops run less often" in verdict.open[0]
    )


LATER = """
{object}
setp.eq.u32 %p7, %r0, 32;
@%p7 bra READER;
@!%p0 bra DONE;
st.shared.u32 [%r2], 7;
mbarrier.arrive.shared.b64 _, [%r4];
FIRST: mbarrier.try_wait.parity.shared.b64 %p3, [%r4], 0;
@!%p3 bra FIRST;
mbarrier.arrive.shared.b64 _, [%r4];
st.{store}.gpu.global.u32 [%d0], 1;
bra DONE;
READER: {reader}
SECOND: mbarrier.try_wait.parity.shared.b64 %p3, [%r4], 1;
@!%p3 bra SECOND;
ld.shared.u32 %r6, [%r2];
DONE:
"""
SEEN = "ld.{}.gpu.global.u32 %r8, [%d0];\nsetp.eq.u32 %p6, %r8, 0;\n@%p6 bra {};"


@pytest.mark.parametrize(
    ("store", "reader", "word"),
    [
        ("relaxed", SEEN.format("relaxed", "READER"), "undecided"),
        ("relaxed", SEEN.format("acquire", "DONE"), "undecided"),
        ("release", SEEN.format("acquire", "READER"), "clean"),
        ("release", SEEN.format("acquire", "DONE"), "clean"),
    ],
)
def test_a_wait_for_a_later_phase_may_pass_on_an_earlier_one(store: str, reader: str, word: str) -> None:
    """What a relaxed flag says was done need not be performed at the object: a test of parity 1 may pass at once."""
    verdict = judged(LATER.format(object=obj(1), store=store, reader=reader), init="zero")
    assert verdict.word == word
    assert ("it may pass on another phase than 1" in "".join(verdict.open)) == (word == "undecided")


BEHIND = """
{object}
setp.gt.u32 %p2, %r0, 100;
@%p0 mbarrier.arrive.shared.b64 _, [%r4];
mov.u32 %r5, 0;
L: add.s32 %r5, %r5, 1;
mbarrier.try_wait.parity.shared.b64 %p1, [%r4], 0;
{failed}
@!%p1 bra L;
{behind}
"""
USED = "setp.eq.u32 %p3, %r5, 2;\n@%p3 st.global.u32 [%d0], %r0;"


@pytest.mark.parametrize(
    ("failed", "behind", "word"),
    [
        ("", USED, "undecided"),
        ("", f"@%p2 exit;\n{USED}", "undecided"),
        ("", f"mov.u32 %r6, 0;\nT: .branchtargets X;\nbrx.idx %r6, T;\nret;\nX:\n{USED}", "undecided"),
        ("", "@%p2 exit;", "clean"),
        ("@%p1 bra X;\n@%p2 trap;\nst.global.u32 [%d0], %r0;\nX:", "", "findings"),
        ("@%p1 bra X;\n@%p2 trap;\nX:", "", "clean"),
    ],
    ids=["used", "used behind an exit", "used behind a jump through a table", "not used", "a trap of some", "a trap"],
)  # fmt: skip
def test_an_end_that_some_threads_do_not_take(failed: str, behind: str, word: str) -> None:
    """What stands behind a guarded exit or trap is still done by others."""
    assert judged(BEHIND.format(object=obj(1), failed=failed, behind=behind)).word == word


BETWEEN = """
@!%p0 bra OTHERS;
{theirs}
bra END;
OTHERS: @!%p1 bra END;
{red}
{mine}
END:
"""


@pytest.mark.parametrize(
    "red, mine",
    [
        ("red.relaxed.gpu.shared.add.u32 [s], 1;", "st.shared.u32 [s], 5;"),
        ("red.relaxed.gpu.shared.add.u32 [s], 1;", "ld.shared.u32 %r6, [s];"),
        ("red.release.cta.shared.add.u32 [s], 1;", "st.weak.shared.u32 [s], 8;"),
        ("red.relaxed.gpu.shared.or.b32 [s], 1;", "fence.acq_rel.cta;\nld.shared.u32 %r6, [s];"),
    ],
)
def test_what_a_red_reads_orders_nothing_after_it(red: str, mine: str) -> None:
    """It may read from the store of another thread in this run; in another one it comes before it."""
    body = OTHER + BETWEEN.format(red=red, mine=mine, theirs="st.release.gpu.shared.u32 [s], 8;")
    assert "data-race" in {finding.rule for finding in judged(body).findings}


@pytest.mark.parametrize(("second", "word"), [("u32 [s+4]", "undecided"), ("u32 [s+8]", "clean"), ("u64 [s]", "clean")])
def test_sums_that_nobody_reads_over_words_that_overlap(second: str, word: str) -> None:
    where, _, place = second.partition(" ")
    red = "red.relaxed.gpu.shared.add"
    verdict = judged(f"{OTHER}\n@%p0 {red}.u64 [s], 1;\n@%p1 {red}.{where} {place}, 1;")
    assert verdict.word == word
    assert ("different sizes overlap" in str(verdict.open)) is (word == "undecided")
