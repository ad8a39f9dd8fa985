"""The reason names what is there and does not do: a wait for other groups, a fence, an arrival, an expect_tx."""

from __future__ import annotations

import pytest
from helpers.executions import candidates, execution_of
from helpers.mistakes import HALF_ALONE, INIT_AGAIN, PASSED_EARLY, TWO_PAIRS

from memmodel import api
from memmodel.cat import load_model
from memmodel.why.flow import Flow
from memmodel.why.present.updates import lost_update
from memmodel.why.records import Reason

FLAG = "SPIN:\n    ld.acquire.gpu.global.u32 %f, [f];\n    setp.eq.u32 %p, %f, 0;\n    @%p bra SPIN;"
WAIT = "WAIT:\n    mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;\n    @!%p bra WAIT;"
BAR = ".shared .align 8 .b64 bar = mbarrier(1);"

NAMED = {
    "group-left-pending": (
        ".global .align 16 .u32 g[8] = {1, 0, 0, 0, 2};\n.shared .align 16 .u32 s[8];",
        "cp.async.cg.shared.global [s], [g], 16; cp.async.commit_group; "
        "cp.async.cg.shared.global [s+16], [g+16], 16; cp.async.commit_group; cp.async.wait_group 1; bar.sync 0;",
        "bar.sync 0; ld.shared.u32 %r, [s+16];",
        Reason.NOT_WAITED,
        "waits for older groups only, and leaves this one pending",
    ),
    "alias-fence-too-early": (
        ".global .u32 x;\ny aliases x;\n.global .u32 f;",
        "st.global.u32 [y], 1; st.release.gpu.global.u32 [f], 1;",
        f"fence.proxy.alias; {FLAG} ld.global.u32 %r, [x];",
        Reason.PROXY_FENCE_SIDE,
        "c: fence.proxy.alias",
    ),
    "arrives-before-its-store": (
        f".shared .u32 y;\n{BAR}",
        "mbarrier.arrive.shared::cta.b64 _, [bar]; st.shared.u32 [y], 2;",
        f"{WAIT} mbarrier.arrive.shared::cta.b64 _, [bar];\n{WAIT.replace('WAIT', 'NEXT').replace('0;', '1;')} "
        "ld.shared.u32 %r, [y];",
        Reason.NO_SYNCHRONIZATION,
        "stands before b",
    ),
    "releases-before-its-load": (
        f".shared .u32 s = 1;\n{BAR}\n.shared .align 8 .b64 full = mbarrier(1);",
        f"st.shared.u32 [s], 1; mbarrier.arrive.shared::cta.b64 _, [full];\n{WAIT} st.shared.u32 [s], 0;",
        f"{WAIT.replace('[bar]', '[full]')} mbarrier.arrive.shared::cta.b64 _, [bar]; ld.shared.u32 %r, [s];",
        Reason.NO_SYNCHRONIZATION,
        "mbarrier.arrive.shared::cta.b64 bar (Q, line 12) stands before g",
    ),
    "waits-behind-its-load": (
        f".global .align 16 .u32 g[4] = {{6}};\n.shared .align 16 .u32 s[4];\n{BAR}",
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16; "
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [bar];",
        f"ld.shared.u32 %r, [s]; {WAIT}",
        Reason.NOT_WAITED,
        "sees its end later",
    ),
    "waits-for-a-stage-twice": (
        ".global .align 16 .u32 g[8] = {1, 0, 0, 0, 2};\n.shared .align 16 .u32 s[8];\n"
        ".shared .align 8 .b64 full[2] = mbarrier(1);",
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;"
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full+8], 16;"
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [full];"
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s+16], [g+16], 16, [full+8];",
        f"{WAIT.replace('[bar]', '[full]')}\n{WAIT.replace('[bar]', '[full]').replace('WAIT', 'NEXT')} "
        "ld.shared.u32 %r, [s+16];",
        Reason.NOT_WAITED,
        "waits for what",
    ),
    "signals-before-its-copy": (
        f".global .u32 g = 1;\n.shared .u32 s;\n{BAR}",
        "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar]; cp.async.ca.shared.global [s], [g], 4;",
        f"{WAIT} ld.shared.u32 %r, [s];",
        Reason.NO_SYNCHRONIZATION,
        "stands before c",
    ),
    "arrives-and-does-not-wait": (
        ".shared .u32 s;",
        "st.shared.u32 [s], 1; bar.sync 1, 64;",
        "bar.arrive 1, 64; ld.shared.u32 %r, [s];",
        Reason.NO_SYNCHRONIZATION,
        "does not wait",
    ),
    "expects-behind-its-arrival": (
        f".global .align 16 .u32 g[4] = {{6}};\n.shared .align 16 .u32 s[4];\n{BAR}",
        "mbarrier.arrive.shared::cta.b64 _, [bar]; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16; "
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [bar];",
        f"{WAIT} ld.shared.u32 %r, [s];",
        Reason.BYTES,
        "b (P, line 5) comes after a (P, line 5), which ends it",
    ),
}
"""Variables, two threads of which the second should read what the first writes, the reason, and what it names."""


@pytest.mark.parametrize("name", NAMED)
def test_what_is_there_and_does_not_do_is_named(name: str) -> None:
    variables, first, second, reason, text = NAMED[name]
    test = f"PTX t\n{variables}\nthread P @ cta 0 {{ {first} }}\nthread Q @ cta 0 {{\n{second} }}\nexists (Q:r == 0)\n"
    (obstacle,) = api.explain(test).stories[0].obstacles
    assert obstacle.reason is reason and text in obstacle.text


def test_bytes_are_announced_behind_the_arrival_of_another_thread() -> None:
    variables, first, second, reason, _ = NAMED["expects-behind-its-arrival"]
    arrival = "mbarrier.arrive.shared::cta.b64 _, [bar];"
    threads = (first.replace(arrival, ""), arrival, second)
    text = "".join(f"thread {name} @ cta 0 {{\n{body}\n}}\n" for name, body in zip("PAQ", threads, strict=True))
    (obstacle,) = api.explain(f"PTX t\n{variables}\n{text}exists (Q:r == 0)\n").stories[0].obstacles
    assert (
        obstacle.reason is reason
        and "(P, line 6) comes after" in obstacle.text
        and "(A, line 9), which" in obstacle.text
    )


OLD_STATE = """PTX state
.shared .u32 y;
.shared .align 8 .b64 bar = mbarrier(2);
thread A @ cta 0 {
    mbarrier.arrive.shared::cta.b64 %s0, [bar];
V:  mbarrier.try_wait.shared::cta.b64 %p, [bar], %s0;
    @!%p bra V;
    mbarrier.arrive.shared::cta.b64 %s1, [bar];
W:  mbarrier.try_wait.shared::cta.b64 %p, [bar], %s0;
    @!%p bra W;
    ld.shared.u32 %r, [y];
}
thread B @ cta 0 {
    mbarrier.arrive.shared::cta.b64 %s0, [bar];
V:  mbarrier.try_wait.shared::cta.b64 %p, [bar], %s0;
    @!%p bra V;
    st.shared.u32 [y], 1;
    mbarrier.arrive.shared::cta.b64 %s1, [bar];
}
~exists (A:r == 0)
"""
UNASKED_PEER = """PTX peer
.global .align 16 .u32 g[4] = {7};
.shared .align 16 .u32 s[4] = {1};
.shared .align 8 .b64 empty = mbarrier(1);
.shared .align 8 .b64 full = mbarrier(1);
thread L @ cta 0, cluster 0 {
E:  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [empty], 0;
    @!%p bra E;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], [g], 16, [full], 2;
}
thread C0 @ cta 0, cluster 0 { mbarrier.arrive.shared::cta.b64 _, [empty]; }
thread C1 @ cta 1, cluster 0 {
    ld.shared.u32 %r, [s];
    fence.proxy.async;
    mbarrier.arrive.shared::cta.b64 _, [empty];
}
~exists race
"""
BEHIND_THE_CHECK = """PTX check
.global .u32 seq;
.global .u32 b;
thread W @ cta 0 {
    st.relaxed.gpu.global.u32 [seq], 1;
    fence.acq_rel.gpu;
    st.relaxed.gpu.global.u32 [b], 1;
}
thread R @ cta 1 {
    ld.acquire.gpu.global.u32 %s1, [seq];
    fence.acq_rel.gpu;
    ld.relaxed.gpu.global.u32 %s2, [seq];
    ld.relaxed.gpu.global.u32 %y, [b];
}
~exists (R:s1 == 0 /\\ R:s2 == 0 /\\ R:y == 1)
"""


@pytest.mark.parametrize(
    ("test", "reason", "said"),
    [
        (OLD_STATE, Reason.EARLIER_PHASE, "bar (B, line 18): b (A, line 6) has waited for it"),
        (UNASKED_PEER, Reason.NO_SYNCHRONIZATION, "R s@cta1 = 1 (C1, line 13) before"),
        (BEHIND_THE_CHECK, Reason.NO_SYNCHRONIZATION, "which reads c (W, line 7), stands after f (R, line 12)"),
    ],
)
def test_the_order_that_was_meant_is_the_one_that_is_missing(test: str, reason: Reason, said: str) -> None:
    (obstacle,) = api.explain(test).stories[0].obstacles
    assert obstacle.reason is reason and said in obstacle.text


NO_EMPTY = """PTX empty
.shared .u32 buf = 0;
thread P @ cta 0 { st.shared.u32 [buf], 1; bar.arrive 1, 64; st.shared.u32 [buf], 2; bar.arrive 2, 64; }
thread C @ cta 0 { bar.sync 1, 64; ld.shared.u32 %r0, [buf]; bar.sync 2, 64; }
exists (C:r0 == 2)
"""


def test_a_race_is_about_the_order_that_forbids_the_outcome() -> None:
    outcome, race = api.explain(NO_EMPTY).stories
    assert race.about == "data-race" and race.obstacles == outcome.obstacles
    assert race.obstacles[0].reason is Reason.NO_SYNCHRONIZATION and race.first == outcome.first


COUNTED_TOO_FEW = """PTX count
.shared .u32 x[2];
.shared .align 8 .b64 bar;
thread A @ cta 0 {
    mbarrier.init.shared::cta.b64 [bar], 1;
    bar.sync 0;
    st.shared.u32 [x], 1;
    mbarrier.arrive.shared::cta.b64 _, [bar];
}
thread B @ cta 0 { bar.sync 0; st.shared.u32 [x+4], 1; mbarrier.arrive.shared::cta.b64 _, [bar]; }
thread C @ cta 0 {
    bar.sync 0;
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    @!%p bra WAIT;
    ld.shared.u32 %r0, [x];
}
~exists (C:r0 == 0)
"""


def test_an_init_is_no_arrival_of_an_earlier_phase() -> None:
    (obstacle,) = api.explain(COUNTED_TOO_FEW).stories[0].obstacles
    assert obstacle.reason is Reason.COUNT


LOCK = "L: atom.acquire.gpu.global.cas.b32 %o, [lock], 0, 1; setp.ne.u32 %p, %o, 0; @%p bra L; "
UNLOCKED_EARLY = f"""PTX lock
.global .u32 lock;
.global .u32 v;
thread A @ cta 0 {{ {LOCK} ld.global.u32 %r, [v]; st.release.gpu.global.u32 [lock], 0; st.global.u32 [v], 1; }}
thread B @ cta 1 {{ {LOCK} ld.global.u32 %r, [v]; st.global.u32 [v], 2; st.release.gpu.global.u32 [lock], 0; }}
~exists race
"""


def test_a_thread_that_comes_first_need_not_have_seen_the_other() -> None:
    """A unlocks before it stores. That it has not seen B unlock, which comes later, is no reason."""
    assert {obstacle.reason for story in api.explain(UNLOCKED_EARLY).stories for obstacle in story.obstacles} == {
        Reason.NO_SYNCHRONIZATION
    }


LOST = """PTX lost
.global .u32 sum;
thread A @ cta 0 { ld.relaxed.gpu.global.u32 %v, [sum]; add.u32 %v, %v, 2; st.relaxed.gpu.global.u32 [sum], %v; }
thread B @ cta 1 { red.relaxed.gpu.global.add.u32 [sum], 3; }
~exists (sum == 2)
"""


def test_an_update_is_lost_between_a_read_and_a_write() -> None:
    (obstacle,) = api.explain(LOST).stories[0].obstacles
    assert "comes between" in obstacle.text and obstacle.repair.startswith("an atomic operation in place of")


RESET = """PTX reset
.shared .u32 n @ cta 1 = 0;
.shared .align 8 .b64 bar @ cta 1 = mbarrier(1);
thread A @ cta 0, cluster 0 {
    red.async.relaxed.cluster.mbarrier::complete_tx::bytes.shared::cluster.add.u32 [n@cta1], 4, [bar@cta1];
}
thread B @ cta 1, cluster 0 {
    st.shared::cta.u32 [n], 0;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 4;
WAIT:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [bar], 0;
    @!%p bra WAIT;
    ld.shared::cta.u32 %r0, [n];
}
~exists (B:r0 != 4)
"""


def test_a_race_is_not_explained_by_the_order_that_loses_the_outcome() -> None:
    """To wait for the reduction before the reset would end the race, and make every outcome a wrong one."""
    stories = api.explain(RESET).stories
    assert len(stories) > 1 and {it.reason for story in stories for it in story.obstacles} == {
        Reason.NO_SYNCHRONIZATION
    }


INVALIDATED = """PTX inval
.shared .align 8 .b64 bar = mbarrier(1);
thread A @ cta 0 { mbarrier.arrive.shared::cta.b64 _, [bar]; mbarrier.inval.shared::cta.b64 [bar]; }
thread B @ cta 0 {
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    @!%p bra WAIT;
}
~exists undefined
"""


def test_an_object_is_used_before_it_is_invalidated() -> None:
    (story,) = api.explain(INVALIDATED).stories
    assert story.first is not None and "try_wait" in story.first.text
    assert story.second is not None and "inval" in story.second.text


TWO_REDUCTIONS = """PTX hist
.shared .u32 n @ cta 1 = 0;
.shared .align 8 .b64 bar @ cta 1 = mbarrier(1);
thread A @ cta 0, cluster 0 {
    red.async.relaxed.cluster.mbarrier::complete_tx::bytes.shared::cluster.add.u32 [n@cta1], 1, [bar@cta1];
    red.async.relaxed.cluster.mbarrier::complete_tx::bytes.shared::cluster.add.u32 [n@cta1], 1, [bar@cta1];
}
thread B @ cta 1, cluster 0 {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 4;
WAIT:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [bar], 0;
    @!%p bra WAIT;
    ld.shared::cta.u32 %r0, [n];
}
~exists (B:r0 != 2)
"""

NOT_YET = """PTX alloc
.shared .align 4 .b32 slot = 0;
.tensor .b32 t[1];
thread A @ cta 0 { tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32; bar.sync 1; }
thread B @ cta 0 {
    ld.shared.b32 %ta, [slot];
    mov.u32 %v, 1;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%ta], {%v};
    tcgen05.wait::st.sync.aligned;
    bar.sync 1;
}
~exists undefined
"""


@pytest.mark.parametrize(("text", "reason"), [(TWO_REDUCTIONS, Reason.BYTES), (NOT_YET, Reason.NO_SYNCHRONIZATION)])
def test_what_races_is_not_to_be_made_a_flag(text: str, reason: Reason) -> None:
    stories = [story for story in api.explain(text).stories if story.second is not None and story.second != story.first]
    assert len(stories) > 1 and {obstacle.reason for story in stories for obstacle in story.obstacles} == {reason}


IN_A_VECTOR = """PTX vector
.global .align 8 .u32 box[2];
thread A @ cta 0 { st.relaxed.gpu.global.v2.u32 [box], {7, 1}; }
thread B @ cta 1 { ld.relaxed.gpu.global.v2.u32 {%d, %f}, [box]; }
~exists (B:f == 1 /\\ B:d == 0)
"""


def test_elements_of_a_vector_are_in_no_order() -> None:
    (obstacle,) = api.explain(IN_A_VECTOR).stories[0].obstacles
    assert obstacle.text.count("is in one instruction with") == 2
    assert obstacle.repair.startswith("one scalar access to both")


def test_half_a_proxy_fence_lacks_the_other_half() -> None:
    (obstacle,) = api.explain(HALF_ALONE).stories[0].obstacles
    assert obstacle.reason is Reason.NO_PROXY_FENCE and obstacle.text.endswith("is the release half alone")
    assert obstacle.repair.endswith("(acquire half)")


TOLD_TO_NOBODY = """PTX nobody
.global .align 16 .u32 g[4];
.shared .align 16 .u32 s[4] @ cta 1;
.shared .align 8 .b64 full @ cta 1 = mbarrier(1);
.shared .align 8 .b64 empty = mbarrier(1);
thread L @ cta 0, cluster 0 {
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s@cta1], [g], 16, [full@cta1];
    mbarrier.arrive.shared::cta.b64 _, [empty];
W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [empty], 0; @!%p bra W;
    st.shared::cluster.u32 [s@cta1], 1;
}
thread R @ cta 1, cluster 0 {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [full], 0; @!%p bra W;
    mbarrier.arrive.shared::cta.b64 _, [empty];
}
~exists undefined
"""


def test_an_arrival_may_tell_nobody_of_the_end() -> None:
    (story, *_) = api.explain(TOLD_TO_NOBODY).stories
    assert story.obstacles[0].text.endswith("(R, line 15) tells of it on an object that no thread waits for")


def reasons_of(text: str) -> list[str]:
    return [obstacle.text for story in api.explain(text).stories for obstacle in story.obstacles]


BY_TWO_NAMES = """PTX names
.global .u32 x;
.global .u32 y;
.global .u32 d;
.global .u32 both = multimem(x, y);
thread A @ cta 0, gpu 0 { st.global.u32 [d], 1; multimem.red.release.sys.global.add.u32 [both], 1; }
thread B @ cta 0, gpu 1 { ld.acquire.sys.global.u32 %t, [y]; setp.eq.u32 %p, %t, 1; @%p ld.global.u32 %r, [d]; }
~exists race
"""
TOO_MANY = """PTX many
.shared .align 8 .b64 bar = mbarrier(1);
thread A @ cta 0 { mbarrier.arrive.shared::cta.b64 _, [bar], 2; }
~exists undefined
"""
READ_ONLY = """PTX nc
.global .u32 d;
.global .u32 f;
thread A @ cta 0 { st.global.u32 [d], 1; st.release.gpu.global.u32 [f], 1; }
thread B @ cta 1 {
SPIN: ld.acquire.gpu.global.u32 %f, [f]; setp.eq.u32 %p, %f, 0; @%p bra SPIN;
    ld.global.nc.u32 %r, [d];
}
~exists (B:r == 0)
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BY_TWO_NAMES, "are about one location by two names, and do not synchronize"),
        (TWO_PAIRS, "are of two generations of one barrier, which other threads complete"),
        (INIT_AGAIN, "the object is initialised already, and no mbarrier.inval comes before"),
        (TOO_MANY, "it brings 2 arrivals, and the phase expects 1 more"),
        (PASSED_EARLY, "stands before f (E, line 9)"),
    ],
)
def test_what_breaks_the_order_or_the_rule_is_said(text: str, said: str) -> None:
    assert any(said in reason for reason in reasons_of(text))


def test_no_order_is_asked_from_a_read_to_what_it_reads() -> None:
    """Without the flag the outcome would be another one."""
    story, *_ = api.explain(READ_ONLY).stories
    assert story.about == "outcome" and [obstacle.reason for obstacle in story.obstacles] == [Reason.READ_ONLY]


NEXT_REQUEST = """PTX next
.global .align 16 .u32 g[8] = {1, 0, 0, 0, 2};
.shared .align 16 .u32 s[4];
.shared .align 8 .b64 bar = mbarrier(1);
thread S @ cta 0 {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [bar];
W: mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0; @!%p bra W;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g+16], 16, [bar];
}
thread C @ cta 0 {
W: mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0; @!%p bra W;
    ld.shared.u32 %r, [s];
}
~exists race
"""


def test_who_waited_for_a_copy_reads_before_the_next_one() -> None:
    story, *_ = api.explain(NEXT_REQUEST).stories
    assert story.first is not None and story.first.thread == "C"
    assert Reason.NOT_WAITED not in {obstacle.reason for obstacle in story.obstacles}


def explained(text: str) -> list[str]:
    """The obstacles of the outcome of a test."""
    return [obstacle.text for obstacle in api.explain(text).stories[0].obstacles]


def test_of_several_updates_the_one_that_is_lost_is_named() -> None:
    """Both threads read the first value; the one that writes last loses what the other one has written."""
    texts = explained("""PTX two
.global .u32 m;
thread A @ cta 0 {
    ld.relaxed.gpu.global.u32 %r, [m];
    setp.ge.u32 %p, %r, 3;
    @!%p st.relaxed.gpu.global.u32 [m], 3;
}
thread B @ cta 1 {
    ld.relaxed.gpu.global.u32 %r, [m];
    setp.ge.u32 %p, %r, 5;
    @!%p st.relaxed.gpu.global.u32 [m], 5;
}
exists (m != 5)
""")
    assert len(texts) == 1 and "comes between a (A, line 4) and b (A, line 6)" in texts[0]


def test_data_that_is_read_from_the_future_hands_nothing_over() -> None:
    text = """PTX count
.global .u32 x = 5;
.global .u32 n = 2;
thread A @ cta 0, gpu 0 { ld.global.u32 %r, [x]; atom.relaxed.gpu.global.add.u32 %t, [n], -1; }
thread B @ cta 1, gpu 0 {
    atom.relaxed.gpu.global.add.u32 %t, [n], -1;
    setp.ne.u32 %p, %t, 1;
    @%p bra OUT;
    st.global.u32 [x], 0;
OUT: mov.u32 %z, 0;
}
exists (A:r == 0)
"""
    texts = explained(text)
    assert len(texts) == 2 and all(" n = 1 (" in text and "is relaxed where" in text for text in texts)


def test_a_finding_does_not_ask_for_what_the_outcome_must_not_be() -> None:
    """That C waits for the copy before it reads would order the two, and it would read 7 then."""
    stories = api.explain("""PTX refilled
.global .align 16 .u32 g[4] = {7};
.shared .align 16 .u32 s[4] = {1};
.shared .align 8 .b64 bar = mbarrier(1);
thread T @ cta 0 {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [bar];
}
thread C @ cta 0 {
    ld.shared.u32 %r, [s];
W:  mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    @!%p bra W;
}
~exists (C:r == 7)
""").stories
    reasons = [{obstacle.reason for obstacle in story.obstacles} for story in stories]
    assert len(reasons) == 3 and all(Reason.NO_SYNCHRONIZATION in each for each in reasons)
    assert not any(Reason.NOT_WAITED in each for each in reasons)


def test_a_copy_of_the_grid_before_is_waited_for_by_the_grid() -> None:
    story = api.explain("""PTX grids
.global .align 16 .u32 w[4] = {1};
.shared .align 16 .u32 s[4];
.shared .align 8 .b64 bar = mbarrier(1);
thread A @ cta 0 {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [w], 16, [bar];
W:  mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    @!%p bra W;
}
thread B @ cta 0, grid 1 { st.global.u32 [w], 2; }
exists (s@A == 2)
""").stories[0]
    assert [obstacle.repair for obstacle in story.obstacles] == ["griddepcontrol.wait before k (B, line 11)"]


TWO_STEPS = """S:  ld.acquire.cta.shared.u32 %t, [l];
    setp.ne.u32 %p, %t, 0;
    @%p bra S;
    {}
    st.release.cta.shared.u32 [l], 0;"""


@pytest.mark.parametrize(
    ("inside", "question"),
    [
        ("st.relaxed.cta.shared.u32 [l], 1; st.shared.u32 [c], {};", "~exists race"),
        (
            "atom.acquire.cta.shared.exch.b32 %o, [l], 1; "
            "ld.shared.u32 %c, [c]; add.u32 %c, %c, 1; st.shared.u32 [c], %c;",
            "~exists (c == 1)",
        ),
    ],
)
def test_a_lock_that_is_taken_in_two_steps_is_named(inside: str, question: str) -> None:
    threads = "\n".join(
        f"thread {name} @ cta 0 {{\n{TWO_STEPS.format(inside.format(n))}\n}}" for n, name in enumerate("AB", 1)
    )
    story = api.explain(f"PTX lock\n.shared .u32 l;\n.shared .u32 c;\n{threads}\n{question}\n").stories[0]
    assert [obstacle.repair[:29] for obstacle in story.obstacles] == ["an atomic operation in place "]
    lost = [event.where.split(",")[0] for event in story.obstacles[0].events]
    assert sorted(lost) in (["A", "A", "B"], ["A", "B", "B"])


@pytest.mark.parametrize("between", [0, 5])
def test_nothing_is_lost_if_an_atomic_operation_reads_the_same_value_again(between: int) -> None:
    """As of a lock that another thread takes and gives back between the test and the compare-and-swap."""
    test = api.lowered(f"""PTX again
.global .u32 l;
.global .u32 f;
thread A @ cta 0 {{
    ld.relaxed.gpu.global.u32 %t, [l];
    st.release.gpu.global.u32 [f], 1;
    atom.relaxed.gpu.global.exch.b32 %o, [l], 1;
}}
thread B @ cta 1 {{
    {FLAG}
    st.relaxed.gpu.global.u32 [l], {between};
}}
exists (l == 1)
""")
    executions = [execution_of(candidate) for candidate in candidates(test, load_model("ptx-9.4"))]
    cells = {event.point.cell for event in executions[0].events if event.point.thread is not None}
    lost = [lost_update(execution, Flow(execution), cell) for execution in executions for cell in cells]
    assert any(lost) is (between != 0)


def test_two_threads_that_met_before_lack_another_barrier() -> None:
    """The next barrier comes after both accesses; it is no barrier that others complete."""
    texts = explained("""PTX rounds
.shared .u32 s;
thread A @ cta 0 { st.shared.u32 [s], 1; bar.sync 0; st.shared.u32 [s], 2; bar.sync 0; }
thread B @ cta 0 { bar.sync 0; ld.shared.u32 %r, [s]; bar.sync 0; }
exists (B:r == 2)
""")
    assert len(texts) == 1 and texts[0].startswith("nothing orders")


def test_a_weak_update_is_one_if_what_is_stored_depends_on_what_was_loaded() -> None:
    body = "ld.global.u32 %r, [x]; add.u32 %r, %r, 1; st.global.u32 [x], %r;"
    threads = "".join(f"thread {name} @ cta {n} {{ {body} }}\n" for n, name in enumerate("AB"))
    assert "comes between" in explained(f"PTX sum\n.global .u32 x;\n{threads}exists (x == 1)\n")[0]


def test_the_reason_of_the_outcome_explains_its_hazard_though_it_is_the_longer_one() -> None:
    """A commit, and nothing else, would order the two as well, but the second mma has to come after the load."""
    stories = api.explain("""PTX overwritten
.tensor .b32 acc[1] = {0};
.shared .align 16 .u32 sa[4] = {2};
.shared .align 16 .u32 sb[4] = {3};
.shared .align 8 .b64 over = mbarrier(1);
.shared .align 8 .b64 empty = mbarrier(1);
thread M @ cta 0 {
    mov.u64 %a, sa; mov.u64 %b, sb; mov.pred %p, 0; mov.pred %q, 1;
    tcgen05.mma.cta_group::1.kind::f16 [acc], %a, %b, 0, %p;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [over];
    tcgen05.mma.cta_group::1.kind::f16 [acc], %a, %b, 0, %q;
}
thread E @ cta 0 {
W:  mbarrier.try_wait.parity.shared::cta.b64 %p, [over], 0;
    @!%p bra W;
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r}, [acc];
    tcgen05.wait::ld.sync.aligned;
    tcgen05.fence::before_thread_sync;
    mbarrier.arrive.shared::cta.b64 _, [empty];
}
~exists (E:r == 12)
""").stories
    outcome, hazard = ([obstacle.reason for obstacle in story.obstacles] for story in stories)
    assert outcome == hazard and Reason.NO_SYNCHRONIZATION in hazard
