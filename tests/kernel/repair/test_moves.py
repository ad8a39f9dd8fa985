"""`memmodel kernel --fix` moves what stands on the wrong side of an access, and changes the number that is wrong."""

from pathlib import Path

from helpers.kernel.samples import entry, kernel_text, launch, module
from helpers.patience import PATIENCE

from memmodel import fix_kernel
from memmodel.cat.load import load_model
from memmodel.kernel.check.case import CheckOptions, KernelCase
from memmodel.kernel.check.conductor import judge_case
from memmodel.kernel.check.so_far import JudgedKernel
from memmodel.kernel.question.requests import LaunchWords
from memmodel.kernel.repair.search import KernelRepairs, is_nearer

HANDED_BACK = """
setp.ge.u32 %p2, %r0, 32;
xor.b32 %r5, %r3, 128;
@%p2 bra READER;
bar.sync 1, 64;
st.shared.u32 [%r3], %r0;
bra DONE;
READER:
bar.arrive 1, 64;
add.u32 %r5, %r5, 0;
ld.shared.u32 %r6, [%r5];
DONE:
"""

TWO_GROUPS = """
mul.wide.u32 %d1, %r0, 4;
add.s64 %d2, %d0, %d1;
cp.async.ca.shared.global [%r3], [%d2], 4;
cp.async.commit_group;
cp.async.ca.shared.global [%r3+256], [%d2], 4;
cp.async.commit_group;
cp.async.wait_group 1;
bar.sync 0;
cp.async.wait_group 1;
bar.sync 0;
xor.b32 %r5, %r3, 128;
ld.shared.u32 %r6, [%r5+256];
"""

BRANCH = """
setp.ge.u32 %p2, %r0, 32;
xor.b32 %r5, %r3, 128;
@%p2 bra JOIN;
st.shared.u32 [%r3], %r0;
JOIN:
add.u32 %r7, %r0, 1;
ld.shared.u32 %r6, [%r5];
"""


def repairs_of(tmp_path: Path, body: str, most: int = 3) -> KernelRepairs:
    path = tmp_path / "k.ptx"
    path.write_text(kernel_text(body))
    return fix_kernel(path, launch(), seconds=PATIENCE, most=most)


def test_an_arrival_moves_behind_the_access(tmp_path: Path) -> None:
    (repair,) = repairs_of(tmp_path, HANDED_BACK, most=1).repairs
    assert [edit.what for edit in repair.edits] == ["move bar.arrive from here", "bar.arrive after ld.shared.u32"]
    changed = [line for line in repair.diff.splitlines() if line[:1] in "+-" and line[1:2] not in "+-"]
    assert changed == ["-bar.arrive 1, 64;", "+bar.arrive 1, 64;"]


def test_the_last_wait_before_the_access_leaves_too_many_groups(tmp_path: Path) -> None:
    """No other repair commits a group that is empty, and none is listed twice."""
    found = repairs_of(tmp_path, TWO_GROUPS)
    (first, *others) = found.repairs
    assert [edit.what for edit in first.edits] == ["1 becomes 0"]
    assert f"at line {first.edits[0].line} does not wait" in found.base.serious[0].missing
    assert not any("commit_group" in edit.what for repair in others for edit in repair.edits)
    assert len({repair.diff for repair in found.repairs}) == len(found.repairs)


def test_a_barrier_stands_where_all_threads_come(tmp_path: Path) -> None:
    first = repairs_of(tmp_path, BRANCH).repairs[0]
    assert [edit.what for edit in first.edits] == ["bar.sync 0 before add.u32"]


HALF_EXPECTED = """
@!%p0 bra READY;
mbarrier.init.shared::cta.b64 [%r4], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 128;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d0], 128, [%r4];
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2+128], [%d0+128], 128, [%r4];
READY:
bar.sync 0;
W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;
@!%p2 bra W;
ld.shared.u32 %r6, [%r3];
"""

COUNTS_DIFFER = """
setp.ge.u32 %p2, %r0, 32;
@%p2 bra READER;
st.shared.u32 [%r3], %r0;
bar.arrive 1, 64;
bra DONE;
READER:
bar.sync 1, 96;
DONE:
"""


def test_a_phase_that_ends_without_a_copy_expects_more_bytes(tmp_path: Path) -> None:
    found = repairs_of(tmp_path, HALF_EXPECTED, most=1)
    assert "is over without the first access" in found.base.serious[0].missing
    assert [edit.what for edit in found.repairs[0].edits] == ["128 becomes 256"]


def test_counts_at_one_barrier_are_made_equal(tmp_path: Path) -> None:
    found = repairs_of(tmp_path, COUNTS_DIFFER, most=1)
    assert any("ask for different counts" in finding.missing for finding in found.base.serious)
    assert [edit.what for edit in found.repairs[0].edits] == ["96 becomes 64"]


EVERY_LANE = """
@!%p0 bra READY;
mbarrier.init.shared::cta.b64 [%r4], 1;
READY:
bar.sync 0;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 256;
@!%p0 bra W;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d0], 256, [%r4];
W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;
@!%p2 bra W;
"""

ROUNDS = """
@!%p0 bra READY;
mbarrier.init.shared::cta.b64 [%r4], 64;
READY:
bar.sync 0;
mov.u32 %r9, 0;
mov.u32 %r10, 0;
LOOP:
mbarrier.arrive.shared::cta.b64 _, [%r4];
W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], %r10;
@!%p2 bra W;
add.u32 %r9, %r9, 1;
setp.lt.u32 %p3, %r9, 3;
@%p3 bra LOOP;
"""


def test_one_lane_expects_the_bytes_of_a_copy(tmp_path: Path) -> None:
    (repair,) = repairs_of(tmp_path, EVERY_LANE, most=1).repairs
    arrive, copy = "mbarrier.arrive.expect_tx.shared::cta.b64", "cp.async.bulk.shared::cluster.global"
    assert [edit.what[:60] for edit in repair.edits] == [
        f"move {arrive} from here"[:60],
        f"{arrive} before {copy}"[:60],
    ]


def test_a_loop_takes_the_other_parity_in_its_next_round(tmp_path: Path) -> None:
    (repair,) = repairs_of(tmp_path, ROUNDS, most=1).repairs
    assert [edit.what for edit in repair.edits] == ["xor.b32 %r10, %r10, 1 before bra"]


RELAXED_ARRIVAL = """
mov.u32 %r5, %cluster_ctarank;
xor.b32 %r6, %r5, 1;
mapa.shared::cluster.u32 %r7, %r3, %r6;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
st.shared::cluster.u32 [%r7], %r0;
barrier.cluster.arrive.relaxed.aligned;
barrier.cluster.wait.acquire.aligned;
ld.shared.u32 %r8, [%r3];
"""


def test_an_arrival_at_the_cluster_barrier_releases(tmp_path: Path) -> None:
    """It answers two findings at once: the race, and the end of the CTA."""
    path = tmp_path / "k.ptx"
    path.write_text(kernel_text(RELAXED_ARRIVAL))
    words = LaunchWords(grid=(2, 1, 1), block=(32, 1, 1), cluster=(2, 1, 1), values={"0": "256"})
    (repair,) = fix_kernel(path, words=words, seconds=PATIENCE, most=1).repairs
    assert [edit.what for edit in repair.edits] == [
        "barrier.cluster.arrive.relaxed.aligned becomes barrier.cluster.arrive.release.aligned"
    ]


LOOP_HEAD = """
@!%p0 bra W;
mbarrier.init.shared::cta.b64 [%r4], 1;
mbarrier.arrive.shared::cta.b64 _, [%r4];
W:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;
@!%p2 bra W;
"""


def test_a_barrier_stands_in_front_of_a_loop_that_a_branch_leads_to(tmp_path: Path) -> None:
    (repair,) = repairs_of(tmp_path, LOOP_HEAD, most=1).repairs
    first, second = repair.edits
    assert first.text.startswith("@!%p0 bra W_") and second.what == "bar.sync 0 before the loop at W"
    assert f"+{first.text.rpartition(' ')[2]}: bar.sync 0;\n W:" in repair.diff


COUNTED_TOO_MANY = """
setp.ge.u32 %p2, %r0, 32;
@%p2 bra READER;
st.shared.u32 [%r3], %r0;
bar.arrive 1, 96;
bra DONE;
READER:
bar.sync 1, 96;
ld.shared.u32 %r6, [%r2];
DONE:
"""


def test_threads_that_arrive_at_another_barrier_are_met_there(tmp_path: Path) -> None:
    body = COUNTED_TOO_MANY.replace("96", "64").replace("bar.sync 1", "bar.sync 2")
    whats = [[edit.what for edit in repair.edits] for repair in repairs_of(tmp_path, body).repairs]
    assert ["barrier 2 becomes 1"] in whats


NUMBERED = ROUNDS.replace("mov.u32 %r10, 0;\n", "").replace("%r10", "0")

HANDED_OVER = """
@!%p0 bra READY;
mbarrier.init.shared::cta.b64 [%r4], 64;
READY:
bar.sync 0;
cp.async.ca.shared.global [%r3], [%d0], 4;
mbarrier.arrive.shared::cta.b64 _, [%r4];
W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;
@!%p2 bra W;
xor.b32 %r5, %r3, 128;
ld.shared.u32 %r6, [%r5];
"""

COMMITTED = """
@!%p0 bra READY;
cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r2], 256;
cp.async.bulk.commit_group;
READY:
bar.sync 0;
st.shared.u32 [%r3], %r0;
"""


def test_all_counts_at_a_barrier_become_the_threads_that_come(tmp_path: Path) -> None:
    (repair,) = repairs_of(tmp_path, COUNTED_TOO_MANY, most=1).repairs
    assert [edit.what for edit in repair.edits] == ["96 becomes 64", "96 becomes 64"]


def test_a_loop_that_names_one_parity_gets_a_register_for_it(tmp_path: Path) -> None:
    (repair,) = repairs_of(tmp_path, NUMBERED, most=1).repairs
    begins, test, turned = (edit.what for edit in repair.edits)
    assert begins.startswith(".reg .b32 %parity0; mov.b32 %parity0, 0 before")
    assert (test, turned) == ("parity 0 becomes %parity0", "xor.b32 %parity0, %parity0, 1 before bra")


def test_what_threads_do_not_come_to_is_not_mended(tmp_path: Path) -> None:
    """With 65 arrivals all threads wait in the first round, and the barrier behind it is not met."""
    further = ROUNDS.replace("add.u32 %r9, %r9, 1;", "bar.sync 0;\nadd.u32 %r9, %r9, 1;")
    late, early = (_judged(text) for text in (further, further.replace("[%r4], 64", "[%r4], 65")))
    assert 0 < len(early.verdict.serious) < len(late.verdict.serious)
    assert not is_nearer(early, late)


def _judged(body: str) -> JudgedKernel:
    read = module(body)
    return judge_case(KernelCase(read, entry(read), launch(), load_model("ptx-9.4"), CheckOptions()))


def test_an_object_that_is_waited_for_is_told_of_a_copy(tmp_path: Path) -> None:
    whats = [[edit.what for edit in repair.edits] for repair in repairs_of(tmp_path, HANDED_OVER).repairs]
    assert ["cp.async.mbarrier.arrive.shared::cta.b64 [%r4] after cp.async.ca.shared.global"] in whats


def test_a_copy_that_is_in_a_group_is_waited_for_behind_its_commit(tmp_path: Path) -> None:
    whats = [[edit.what for edit in repair.edits] for repair in repairs_of(tmp_path, COMMITTED).repairs]
    assert ["cp.async.bulk.wait_group.read 0 after cp.async.bulk.commit_group"] in whats
    assert not any("commit_group;" in what for edits in whats for what in edits)


RING = """
mov.u32 %r5, 0;
mov.u32 %r6, 0;
@!%p0 bra READY;
mbarrier.init.shared::cta.b64 [%r4], 1;
mbarrier.init.shared::cta.b64 [%r4+8], 32;
READY:
bar.sync 0;
setp.ge.u32 %p3, %r0, 32;
@%p3 bra CONSUMER;
@!%p0 bra DONE;
PRODUCER:
E: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4+8], %r6;
@!%p1 bra E;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 256;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%d0], 256, [%r4];
xor.b32 %r6, %r6, 1;
add.u32 %r5, %r5, 1;
setp.lt.u32 %p2, %r5, 2;
@%p2 bra PRODUCER;
bra DONE;
CONSUMER:
F: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], %r6;
@!%p1 bra F;
ld.shared.u32 %r7, [%r3];
mbarrier.arrive.shared::cta.b64 _, [%r4+8];
xor.b32 %r6, %r6, 1;
add.u32 %r5, %r5, 1;
setp.lt.u32 %p2, %r5, 2;
@%p2 bra CONSUMER;
DONE:
"""


def test_behind_a_hang_that_is_mended_what_shows_is_mended_too(tmp_path: Path) -> None:
    """The producer waits for the wrong parity in its first round; the slot is handed back without a proxy fence."""
    (repair,) = repairs_of(tmp_path, RING, most=1).repairs
    first, *fences = (edit.what for edit in repair.edits)
    assert first == "xor.b32 %r6, %r6, 1 after bra"
    assert [what[:27] for what in fences] == ["fence.proxy.async::generic."] * 2


ANNOUNCED = """
@!%p0 bra READY;
mbarrier.init.shared::cta.b64 [%r4], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 16;
READY:
bar.sync 0;
setp.lt.u32 %p1, %r0, 4;
mad.lo.u32 %r5, %r0, 16, %r2;
@!%p1 bra W;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r5], [%d0], 16, [%r4];
W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;
@!%p2 bra W;
ld.shared.u32 %r6, [%r2];
"""


def test_as_many_bytes_are_announced_as_come(tmp_path: Path) -> None:
    """Copies of four threads bring 16 bytes each, and the phase is over after one of them."""
    (repair,) = repairs_of(tmp_path, ANNOUNCED, most=1).repairs
    assert [edit.what for edit in repair.edits] == ["16 becomes 64"]


UNLOCKED_EARLY = """
@!%p0 bra DONE;
S: atom.acquire.gpu.global.cas.b32 %r5, [%d0+64], 0, 1;
setp.ne.u32 %p1, %r5, 0;
@%p1 bra S;
ld.global.u32 %r6, [%d0];
add.u32 %r6, %r6, 1;
st.release.gpu.global.u32 [%d0+64], 0;
st.global.u32 [%d0], %r6;
DONE:
"""


def test_what_opens_a_lock_moves_behind_the_store_that_the_lock_guards(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(kernel_text(UNLOCKED_EARLY))
    (repair,) = fix_kernel(path, launch(32, 2, "zero"), seconds=PATIENCE, most=1).repairs
    store = "st.release.gpu.global.u32"
    assert [edit.what for edit in repair.edits] == [f"move {store} from here", f"{store} after st.global.u32"]


MULTIPLIED = """
setp.lt.u32 %p1, %r0, 32;
@!%p0 bra INIT;
mbarrier.init.shared::cta.b64 [%r4], 1;
INIT:
@!%p1 bra READY;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r4+8], 32;
READY:
tcgen05.fence::before_thread_sync;
bar.sync 0;
tcgen05.fence::after_thread_sync;
ld.shared.u32 %r9, [%r4+8];
@!%p0 bra MULTIPLIED;
shr.u32 %r12, %r2, 4;
cvt.u64.u32 %d10, %r12;
or.b64 %d11, %d10, 0x4000000000010000;
mov.u32 %r13, 0x08040010;
setp.ne.b32 %p5, 0, 0;
tcgen05.mma.cta_group::1.kind::f16 [%r9], %d11, %d11, %r13, %p5;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];
MULTIPLIED:
W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0; @!%p2 bra W;
tcgen05.fence::after_thread_sync;
and.b32 %r10, %r0, 32;
shl.b32 %r10, %r10, 16;
add.u32 %r10, %r10, %r9;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r11}, [%r10];
tcgen05.wait::ld.sync.aligned;
tcgen05.fence::before_thread_sync;
bar.sync 0;
@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32;
"""
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"


def multiplied(tmp_path: Path, left_out: str) -> KernelRepairs:
    lines = [line for line in MULTIPLIED.splitlines() if not line.startswith(left_out)]
    path = tmp_path / "k.ptx"
    path.write_text(kernel_text("\n".join(lines)).replace("sm_90", "sm_100a"))
    return fix_kernel(path, launch(), seconds=PATIENCE, most=1)


def test_a_thread_that_multiplies_may_wait_for_its_commit(tmp_path: Path) -> None:
    """It tells of the operation before it waits."""
    (repair,) = multiplied(tmp_path, "tcgen05.commit").repairs
    assert [edit.what for edit in repair.edits] == [f"{COMMIT} [%r4] after tcgen05.mma.cta_group::1.kind::f16"]


def test_of_a_matrix_operation_that_nobody_waits_for_the_commit_is_named(tmp_path: Path) -> None:
    """The load behind it in its thread is not what it has to come after."""
    found = multiplied(tmp_path, "W:")
    (hazard,) = (finding for finding in found.base.serious if finding.rule == "tensor-memory-hazard")
    assert [side.instruction.words[1] for side in hazard.sides] == ["mma", "ld"]
    assert hazard.missing.startswith(COMMIT) and "tells of the end of the first access" in hazard.missing
    assert "mbarrier.try_wait" in found.repairs[0].edits[0].what
