"""Shared memory of another CTA is touched after that CTA is known to have started, and before it may have exited.

Programming guide, "Distributed Shared Memory": accesses to it require all the thread blocks to exist.
"""

from __future__ import annotations

import pytest
from helpers.kernel.engines import rules, verdict_of

PEER = """mapa.shared::cluster.u32 %r10, %r2, 1;
mov.u32 %r12, %cluster_ctarank;
setp.eq.s32 %p3, %r12, 0;
and.pred %p2, %p0, %p3;
"""
"""%r10: the tile of CTA 1. %p2: thread 0 of CTA 0."""
STORE = "@%p2 st.shared::cluster.b32 [%r10], 7;\n"
MEET = "barrier.cluster.arrive.{}aligned;\nbarrier.cluster.wait.aligned;\n"


def found(body: str) -> set[str]:
    return rules(verdict_of(PEER + body, threads=64, ctas=2, cluster=2))


@pytest.mark.parametrize("sem", ["", "relaxed."])
def test_a_cluster_barrier_shows_that_the_peer_has_started(sem: str) -> None:
    """Whatever its semantics: it orders no memory, and still all threads have come to it."""
    assert found(MEET.format(sem) + STORE + MEET.format("")) == set()


@pytest.mark.parametrize(
    "access",
    [
        "@%p2 ld.shared::cluster.b32 %r11, [%r10];\n",
        "@%p2 atom.relaxed.cluster.shared::cluster.add.u32 %r11, [%r10], 1;\n",
        "@%p2 red.relaxed.cluster.shared::cluster.add.u32 [%r10], 1;\n",
    ],
)
def test_any_access_touches_the_memory_of_a_cta_that_runs(access: str) -> None:
    assert found(access + MEET.format("")) == {"undefined-before-start"}
    assert found(MEET.format("relaxed.") + access + MEET.format("")) == set()


def test_nothing_shows_it_otherwise() -> None:
    assert found(STORE + MEET.format("")) == {"undefined-before-start"}
    assert found("bar.sync 0;\n" + STORE + MEET.format("")) == {"undefined-before-start"}


PAIR = """add.s32 %r22, %r4, 64;
tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r22], 32;
bar.warp.sync -1;
ld.shared.b32 %r23, [%r22];
{}tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r23, 32;
"""


@pytest.mark.parametrize(
    ("before", "between", "starts"),
    [("", "", False), ("", MEET.format(""), False), (MEET.format("relaxed."), "", True), ("bar.sync 0;\n", "", False)],
)
def test_tensor_memory_is_allocated_together_with_a_peer_that_runs(before: str, between: str, starts: bool) -> None:
    """ "When .cta_group::2 is specified, the issuing warp must make sure that peer CTA is launched" (tcgen05.alloc)."""
    verdict = verdict_of(before + PAIR.format(between), ctas=2, cluster=2)
    assert rules(verdict) == (set() if starts else {"undefined-before-start"})
    alone = verdict_of(before + PAIR.format(between).replace("cta_group::2", "cta_group::1"), ctas=2, cluster=2)
    assert rules(alone) == set()


def test_what_the_peer_has_done_shows_it_too() -> None:
    """Its arrival on an object of the own CTA, for which the thread has waited. The peer itself has to know that this
    CTA runs, which a first meeting of both shows."""
    told = """mapa.shared::cluster.u32 %r11, %r4, 0;
setp.eq.s32 %p4, %r12, 1;
and.pred %p4, %p4, %p0;
@%p4 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11];
@!%p2 bra STORED;
WAIT:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p5, [%r4], 0;
@!%p5 bra WAIT;
st.shared::cluster.b32 [%r10], 7;
STORED:
"""
    init = "@%p0 mbarrier.init.shared::cta.b64 [%r4], 1;\nfence.mbarrier_init.release.cluster;\n"
    assert found(init + MEET.format("") + told + MEET.format("")) == set()


def test_the_own_cta_runs() -> None:
    own = PEER.replace("%r2, 1", "%r2, 0") + STORE
    assert rules(verdict_of(own, threads=64, ctas=2, cluster=2)) == set()


CANCEL = """@%p0 mbarrier.init.shared::cta.b64 [%r4], 1;
fence.mbarrier_init.release.cluster;
{meet}@%p2 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.{all}b128 [%r2], [%r4];
"""


@pytest.mark.parametrize("everywhere", ["multicast::cluster::all.", ""])
@pytest.mark.parametrize("stays", [True, False])
def test_no_cta_that_a_response_goes_to_has_exited(everywhere: str, stays: bool) -> None:
    """ "The behavior of instruction with .multicast::cluster::all qualifier is undefined if any CTA in the cluster is
    exited" ("clusterlaunchcontrol.try_cancel").
    """
    wait = "AGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], 0;\n@!%p5 bra AGAIN;\n"
    expect = "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 16;\n"
    body = expect + CANCEL.format(meet=MEET.format(""), all=everywhere)
    body = body.replace(expect, "").replace(MEET.format(""), expect + MEET.format(""))
    last = wait + MEET.format("") if stays and everywhere else MEET.format("") if stays else ""
    assert ("undefined-after-exit" in found(body + last)) is (bool(everywhere) and not stays)


READ = "@%p2 ld.shared::cluster.b32 %r11, [%r10];\n"
COPY_OUT = "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r2], 16;\n@%p0 cp.async.bulk.commit_group;\n"
READ_OUT = "@%p0 cp.async.bulk.wait_group.read 0;\n"


def test_reads_count_where_nothing_is_written() -> None:
    """Memory that no thread writes has no race, and a CTA that does not run has no memory."""
    assert found(READ + MEET.format("")) == {"undefined-before-start"}
    assert found(MEET.format("") + READ) == {"undefined-after-exit"}
    assert found(MEET.format("") + READ + MEET.format("")) == set()


@pytest.mark.parametrize(
    "copy",
    [
        COPY_OUT,
        COPY_OUT.replace("cp.async.bulk.global", "cp.reduce.async.bulk.global").replace(
            "bulk_group [", "bulk_group.add.u32 ["
        ),
    ],
)
def test_a_copy_out_of_memory_that_is_not_written_has_read_it_before_the_end(copy: str) -> None:
    assert rules(verdict_of(copy)) == {"undefined-after-exit"}
    assert rules(verdict_of(copy + READ_OUT)) == set()


def test_an_mbarrier_object_is_not_loaded() -> None:
    init = "@%p0 mbarrier.init.shared::cta.b64 [%r4], 1;\n"
    assert rules(verdict_of(init)) == set()
    assert rules(verdict_of(init + "@%p0 ld.shared.b64 %d3, [%r4];\n")) == {"undefined-mbarrier-access"}


def test_tensor_memory_that_is_not_written_is_loaded_while_it_is_allocated() -> None:
    alloc = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 32;\nbar.warp.sync -1;\n"
    alloc += "ld.shared.b32 %r11, [%r2];\n"
    load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r12}, [%r11];\ntcgen05.wait::ld.sync.aligned;\n"
    free = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r11, 32;\n"
    assert rules(verdict_of(alloc + load + free)) == set()
    assert rules(verdict_of(alloc + free + load)) == {"undefined-tensor-memory"}
