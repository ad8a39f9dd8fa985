"""Threads that do almost the same: what must not be taken for equal, and runs that cannot go on to the end."""

from __future__ import annotations

import pytest
from helpers.kernel.engines import rules, verdict_of, wait
from helpers.kernel.samples import judged

MEET = "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n"
TWO_OBJECTS = f"""@%p0 mbarrier.init.shared::cta.b64 [%r4], 2;
fence.mbarrier_init.release.cluster;
{MEET}
setp.lt.s32 %p1, %r0, 32;
@!%p1 bra WRITER;
sub.s32 %r30, %r0, 1;
setp.lt.u32 %p3, %r30, 2;
@!%p3 bra END;
ld.shared.b32 %r5, [%r3];
mapa.shared::cluster.u32 %r31, %r4, %r30;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r31];
bra END;
WRITER:
setp.eq.s32 %p3, %r0, 32;
@!%p3 bra END;
{wait("%r4", 0, ".acquire.cluster")}
mov.u32 %r32, %cluster_ctarank;
setp.eq.s32 %p4, %r32, 0;
@%p4 st.shared.b32 [%r2+{{at}}], %r0;
END:
{MEET}
"""
"""Lanes 1 and 2 read the tile, lane r + 1 arrives at the object of CTA r; CTA 0 then overwrites what one has read."""


@pytest.mark.parametrize(("at", "found"), [(4, set()), (8, {"data-race"})])
def test_lanes_that_arrive_in_different_ctas_are_not_equal(at: int, found: set[str]) -> None:
    assert rules(verdict_of(TWO_OBJECTS.replace("{at}", str(at)), threads=64, ctas=2, cluster=2)) == found


AWAY = """mapa.shared::cluster.u32 %r10, %r2, 0;
mapa.shared::cluster.u32 %r11, %r2, 1;
setp.eq.s32 %p3, %r0, 32;
and.pred %p3, %p3, %p1;
@%p2 st.shared::cluster.b32 [%r10], 7;
@%p2 st.shared::cluster.b32 [%r11+64], 7;
bar.sync 0;
@%p3 ld.shared::cluster.b32 %r12, [%r10];
@%p3 ld.shared::cluster.b32 %r13, [%r11+64];
"""
"""Two threads of CTA 0 do the same in its own memory and in that of CTA 1."""


@pytest.mark.parametrize(("last", "found"), [(MEET, set()), ("", {"undefined-after-exit"})])
@pytest.mark.parametrize("ctas", [2, 4])
def test_what_goes_to_another_cta_is_not_what_stays(last: str, found: set[str], ctas: int) -> None:
    assert rules(verdict_of(MEET + AWAY + last, threads=64, ctas=ctas, cluster=2)) == found


def test_a_lane_is_in_its_own_mask() -> None:
    body = "setp.lt.s32 %p1, %r0, {};\n@%p1 shfl.sync.idx.b32 %r5, %r1, 0, 31, 0xf;\n"
    assert judged(body.format(4), threads=32).word == "clean"
    assert [one.rule for one in judged(body.format(5), threads=32).serious] == ["undefined-instruction"]


def test_what_a_lane_that_is_not_there_would_give_is_not_known() -> None:
    body = """setp.lt.s32 %p1, %r0, 4;
@%p1 shfl.sync.idx.b32 %r5, %r1, {}, 31, 0xf;
setp.eq.s32 %p2, %r5, 0;
@!%p1 bra L;
@%p2 bra L;
st.global.u32 [%d0], %r0;
L:
"""
    assert judged(body.format(0), threads=32).word == "clean"
    assert judged(body.format(8), threads=32).word == "undecided"


FLAG = """mov.u32 %r8, 0;
@%p0 atom.global.inc.u32 %r8, [%d0], 7;
@%p0 st.shared.u32 [s], %r8;
{sync}
ld.shared.u32 %r9, [s];
setp.eq.s32 %p3, %r9, 9;
@%p3 bra L;
st.global.u32 [%d0+64], 1;
L:
"""


def test_a_run_that_cannot_go_on_is_judged_as_far_as_it_goes() -> None:
    assert judged(FLAG.format(sync="bar.sync 0;"), init="zero").word != "findings"
    late = FLAG.format(sync="").replace("@%p0 atom", "bar.warp.sync -1;\n@%p0 atom").replace("@%p0 st", "@%p1 st")
    late = late.replace("mov.u32 %r8, 0;", "mov.u32 %r8, 0;\nsetp.eq.s32 %p1, %r0, 32;")
    verdict = judged(late, init="zero")
    assert verdict.open
    assert [one.rule for one in verdict.serious if "shared" in one.where] == ["data-race"]


def test_a_register_that_nothing_writes() -> None:
    body = "@%p0 mbarrier.init.shared.b64 [%r4], 64;\nbar.sync 0;\n{}W: mbarrier.try_wait.shared.b64 %p5, [%r4], %d5;\n"
    body += "@!%p5 bra W;\n"
    assert judged(body.format("mbarrier.arrive.shared.b64 %d5, [%r4];\n")).word == "clean"
    assert [one.rule for one in judged(body.format("")).serious] == ["undefined-register"]
    moved = body.replace("W: ", "mov.b64 %d6, %d5;\nW: ").replace("[%r4], %d5;\n@", "[%r4], %d6;\n@")
    assert moved != body and judged(moved.format("mbarrier.arrive.shared.b64 %d5, [%r4];\n")).word == "clean"
    assert [one.rule for one in judged(moved.format("")).serious] == ["undefined-register"]
    later = body + "setp.ne.u32 %p6, %r0, %r0;\nmbarrier.arrive.shared.b64 %d5, [%r4];\n@%p6 bra W;\n"
    assert [one.rule for one in judged(later.format("")).serious] == ["undefined-register"]
    loaded = moved.replace("mov.b64 %d6, %d5;", "add.s64 %d7, %d5, 1;\nld.global.u64 %d6, [%d0];")
    assert judged(loaded.format("")).word == "undecided"


RING = f"""@%p0 mbarrier.init.shared::cta.b64 [%r4], 1;
@%p0 mbarrier.init.shared::cta.b64 [%r4+8], 1;
fence.mbarrier_init.release.cluster;
bar.sync 0;
mov.u32 %r10, 0;
mov.b64 %d5, {1 << 62 | 64 << 32 | 1 << 16};
and.b32 %r12, %r2, 262143;
shr.u32 %r12, %r12, 4;
cvt.u64.u32 %d6, %r12;
or.b64 %d5, %d5, %d6;
setp.lt.s32 %p3, %r0, 128;
@%p3 bra FIRST;
setp.eq.s32 %p4, %r0, 128;
@!%p4 bra END;
PRODUCE:
and.b32 %r11, %r10, 1;
xor.b32 %r13, %r11, 1;
E0: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4+8], %r13;
@!%p5 bra E0;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 2048;
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d1, {{0, 0}}], [%r4];
add.s32 %r10, %r10, 1;
setp.lt.s32 %p6, %r10, 4;
@%p6 bra PRODUCE;
bra END;
FIRST:
sub.s32 %r14, %r0, 5;
setp.lt.u32 %p7, %r14, 3;
@%p7 red.relaxed.cta.shared::cta.add.u32 [%r4+64], 1;
@%p0 st.relaxed.cta.shared::cta.u32 [%r4+64], 1;
CONSUME:
and.b32 %r11, %r10, 1;
F0: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], %r11;
@!%p5 bra F0;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f0, %f1, %f2, %f3}}, %d5, %d5, 1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
@%p0 mbarrier.arrive.shared::cta.b64 _, [%r4+8];
add.s32 %r10, %r10, 1;
setp.lt.s32 %p6, %r10, 4;
@%p6 bra CONSUME;
END:
"""
"""A ring of one stage, which one thread of a warpgroup hands back. Lanes 5 to 7 are of one role, and all are judged."""


def test_a_wait_before_a_wgmma_comes_before_what_follows_it_in_the_warpgroup() -> None:
    verdict = verdict_of(RING, threads=160)
    assert verdict.word == "clean", (rules(verdict), verdict.open)
    assert verdict_of(RING.replace("wgmma.wait_group.sync.aligned 0;", ""), threads=160).word != "clean"


OWN_OBJECTS = """@%p0 mbarrier.init.shared.b64 [%r4], 1;
@%p0 mbarrier.init.shared.b64 [%r4+8], 1;
bar.sync 0;
setp.lt.s32 %p1, %r0, 2;
@!%p1 bra END;
shl.b32 %r5, %r0, 3;
add.s32 %r6, %r4, %r5;
@%p0 mbarrier.arrive.shared.b64 %d5, [%r4];
W: mbarrier.try_wait.parity.shared.b64 %p5, [%r6], 0;
@!%p5 bra W;
@%p0 mbarrier.arrive.shared.b64 %d5, [%r4+8];
END:
"""
"""Lane 1 waits for what lane 0 does behind its own wait."""


def test_lanes_that_wait_for_different_objects_go_on_by_themselves() -> None:
    assert judged(OWN_OBJECTS, threads=32).word == "clean"
    assert "hang" in {
        one.rule for one in judged(OWN_OBJECTS.replace("%d5, [%r4+8]", "%d5, [%r4]"), threads=32).findings
    }


@pytest.mark.parametrize("before", ["", "@%p0 red.relaxed.cta.shared.add.u32 [%r2+64], 1;\n"])
def test_lanes_that_store_together_may_have_done_something_else_before(before: str) -> None:
    """One store of all lanes to one place: the race has the same name whatever one of them did before."""
    unknown = judged(
        "mul.lo.u32 %r5, %r0, 3;\nmov.u32 %r6, %smid;\nadd.u32 %r5, %r5, %r6;\n" + before + "st.shared.u32 [%r2], %r5;",
        32,
    )
    assert {one.rule for one in unknown.findings} == {"same-store-race"}
    equal = judged("mov.u32 %r5, %nctaid.x;\n" + before + "st.shared.u32 [%r2], %r5;", 32)
    assert {one.rule for one in equal.findings} == {"equal-store-race"} and equal.word == "clean"


LATCH = """@%p0 st.shared.b64 [%r4], COUNT;
bar.sync 0;
setp.lt.u32 %p1, %r0, COUNT;
@!%p1 bra WAITS;
st.shared.b32 [%r3], %r0;
atom.shared.add.SEM.cta.u64 %d5, [%r4], -1;
bra END;
WAITS:
AGAIN: ld.acquire.cta.shared.b64 %d6, [%r4];
setp.ne.b64 %p2, %d6, 0;
@%p2 bra AGAIN;
ld.shared.b32 %r10, [%r2+AT];
END:
"""
"""A latch: all threads of some warps count down, each after it has written a word."""


@pytest.mark.share(2)
@pytest.mark.parametrize(("sem", "found"), [("release", set()), ("relaxed", {"data-race"})])
def test_one_comes_after_all_operations_that_others_left(sem: str, found: set[str]) -> None:
    body = LATCH.replace("COUNT", "96").replace("SEM", sem)
    assert rules(judged(body.replace("AT", "380"), threads=128)) == found


COUNTED = """mov.u32 %r20, %ctaid.x;
setp.eq.u32 %p1, %r20, 3;
add.s64 %d1, %d0, 4096;
@%p1 bra WAITS;
mad.lo.u32 %r21, %r20, 32, %r0;
mad.wide.u32 %d2, %r21, 4, %d1;
st.global.b32 [%d2], 1;
red.release.SCOPE.global.add.u32 [%d0], 1;
bra END;
WAITS:
AGAIN: ld.acquire.gpu.global.b32 %r22, [%d0];
setp.ne.b32 %p2, %r22, 96;
@%p2 bra AGAIN;
ld.global.b32 %r23, [%d1];
END:
"""


@pytest.mark.parametrize(("scope", "threads", "found"), [("gpu", 32, set()), ("cta", 8, {"data-race"})])
def test_operations_of_many_ctas(scope: str, threads: int, found: set[str]) -> None:
    """As many operations as threads; with fewer of these, what is found is found in a quarter of the time."""
    body = COUNTED.replace("SCOPE", scope).replace("96", str(3 * threads)).replace("%r20, 32", f"%r20, {threads}")
    verdict = judged(body, threads, ctas=4, init="zero")
    assert {one.rule for one in verdict.serious} == found


TILE = """@%p0 cp.async.ca.shared.global [%r2], [%d0], 4;
@%p0 cp.async.wait_all;
bar.sync 0;
mov.u32 %r8, 0;
setp.lt.s32 %p2, %r0, {lanes};
@%p2 ld.shared.b32 %r8, [%r2];
bar.sync 0;
@%p0 st.shared.b32 [%r2], 0;
"""
"""A tile comes in, some lanes read it, one of them its writer, and then it is overwritten."""


def test_one_of_equal_readers_stands_for_them() -> None:
    two, many = (judged(TILE.format(lanes=lanes), threads=32) for lanes in (2, 9))
    assert two.word == many.word == "clean"
    assert many.statistics.judged == two.statistics.judged
    late = TILE.format(lanes=9).replace("bar.sync 0;\n@%p0 st", "@%p0 st")
    assert rules(judged(late, threads=32)) == {"data-race"}


HALVES = f"""@%p0 mbarrier.init.shared::cta.b64 [%r4], 1;
bar.sync 0;
setp.lt.s32 %p1, %r0, 32;
@!%p1 bra READER;
@!%p0 bra END;
st.shared.b32 [%r2+{{at}}], %r0;
cp.async.ca.shared.global [%r2], [%d0], 4;
cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r4];
bra END;
READER:
{wait("%r4", 0)}
setp.eq.s32 %p3, %r0, 37;
@%p3 ld{{sem}}.shared.b64 %d9, [%r2];
END:
"""
"""Thread 0 writes four bytes and copies to four; the end of the copy tells of what the copy wrote, and of what its
thread had written there before."""


@pytest.mark.parametrize("sem", ["", ".relaxed.cta"])
@pytest.mark.parametrize(("at", "found"), [(0, set()), (4, {"mixed-size-race"})])
def test_a_copy_to_one_half_of_what_is_read_orders_nothing_in_the_other(sem: str, at: int, found: set[str]) -> None:
    assert rules(verdict_of(HALVES.replace("{at}", str(at)).replace("{sem}", sem), threads=64)) == found


OUT_AND_IN = f"""@%p0 mbarrier.init.shared::cta.b64 [%r4], 1;
fence.mbarrier_init.release.cluster;
{MEET}
mov.u32 %r20, 16;
setp.eq.s32 %p3, %r0, 32;
mapa.shared::cluster.u32 %r10, %r2, %r6;
mapa.shared::cluster.u32 %r11, %r4, %r6;
@!%p1 bra OTHER;
@%p3 mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [%r4], %r20;
@%p0 st.shared.b32 [%r2], %r0;
@%p0 fence.proxy.async;
@%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r10], [%r2+{{from}}], %r20, [%r11];
@!%p3 bra END;
{wait("%r4", 0)}
ld{{sem}}.shared.b32 %r12, [%r2];
bra END;
OTHER:
@!%p3 bra END;
mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [%r4], %r20;
{wait("%r4", 0)}
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [%d0], %r20, [%r11];
END:
{MEET}
"""
"""CTA 0 writes a word and copies bytes to CTA 1, which then copies others over that word; then it is read. Only the
copy from there comes between the write and what overwrites it."""


@pytest.mark.parametrize("sem", ["", ".relaxed.cta"])
@pytest.mark.parametrize(("source", "found"), [(0, set()), (16, {"data-race", "undefined-unfinished-copy"})])
def test_a_third_access_orders_strong_ones_as_it_does_weak_ones(sem: str, source: int, found: set[str]) -> None:
    body = OUT_AND_IN.replace("{from}", str(source)).replace("{sem}", sem)
    assert rules(verdict_of(body, threads=64, ctas=2, cluster=2)) == found


IN_TURN = """setp.lt.u32 %p3, %r0, LANES;
@!%p3 bra END;
setp.eq.s32 %p4, %r0, WRITER;
setp.eq.s32 %p5, %r0, READER;
@%p4 st.global.b32 [%d0+4], 1;
atom.acq_rel.gpu.global.add.u32 %r5, [%d0], 1;
setp.eq.u32 %p6, %r5, TURN;
and.pred %p6, %p6, %p5;
@%p6 ld.global.b32 %r6, [%d0+4];
END:
"""
"""Threads that synchronize by one atomic operation: the one that comes second sees what the first one did before."""


@pytest.mark.parametrize("lanes", [(0, 1), (1, 0)])
@pytest.mark.parametrize(("turn", "found"), [(0, {"data-race"}), (1, set())])
def test_it_matters_which_of_two_threads_comes_first(lanes: tuple[int, int], turn: int, found: set[str]) -> None:
    body = IN_TURN.replace("LANES", "2").replace("TURN", str(turn))
    body = body.replace("WRITER", str(lanes[0])).replace("READER", str(lanes[1]))
    verdict = verdict_of("@%p0 st.global.b32 [%d0], 0;\nbar.sync 0;\n" + body)
    assert rules(verdict) == found and verdict.word == ("findings" if found else "clean")
