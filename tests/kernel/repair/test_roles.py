"""`memmodel kernel --fix` where an instruction is the right one but for a word: it arrives where it should wait,
signals another object, or takes a lock without acquire."""

from pathlib import Path

import pytest
from helpers.kernel.samples import entry, kernel_text, launch, module
from helpers.patience import PATIENCE

from memmodel import fix_kernel
from memmodel.kernel.question.requests import LaunchWords
from memmodel.kernel.repair.arrivals import committed_instead
from memmodel.kernel.repair.edits import PtxEdit, laid
from memmodel.kernel.repair.search import _same_but_wider
from memmodel.kernel.repair.words import _sem_words


def whats(tmp_path: Path, body: str, ctas: int = 1, most: int = 3) -> list[list[str]]:
    path = tmp_path / "k.ptx"
    path.write_text(kernel_text(body))
    found = fix_kernel(path, launch(ctas=ctas, init="zero"), seconds=PATIENCE, most=most)
    return [[edit.what for edit in repair.edits] for repair in found.repairs]


HANDED_OVER = """
setp.ge.u32 %p2, %r0, 32;
@%p2 bra READER;
st.shared.u32 [%r3], %r0;
bar.arrive 1, 64;
bra DONE;
READER:
bar.arrive 1, 64;
ld.shared.u32 %r6, [%r3+-128];
DONE:
"""


def test_who_reads_waits_where_it_only_arrives(tmp_path: Path) -> None:
    assert whats(tmp_path, HANDED_OVER, most=1) == [["bar.arrive becomes bar.sync"]]


CROSSED = """
setp.ge.u32 %p2, %r0, 32;
@%p2 bra READER;
bar.sync 2, 64;
st.shared.u32 [%r3], %r0;
bar.arrive 1, 64;
bra DONE;
READER:
bar.sync 1, 64;
ld.shared.u32 %r6, [%r3+-128];
bar.arrive 2, 64;
DONE:
"""


def test_a_place_is_handed_back_before_it_is_first_written(tmp_path: Path) -> None:
    """The writer waits until it was read, though nothing was written yet."""
    assert ["bar.arrive 2, 64 before bar.sync"] in whats(tmp_path, CROSSED)


ANNOUNCED = """
@%p0 mbarrier.init.shared::cta.b64 [%r4], 1;
@%p0 mbarrier.init.shared::cta.b64 [%r4+8], 1;
bar.sync 0;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 256;
@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d0], 256, [%r4];
W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], 0; @!%p1 bra W;
ld.shared.u32 %r5, [%r3];
"""


@pytest.mark.parametrize("wrong", ["[%r4+8], 256", "256, [%r4+8];"])
def test_what_signals_another_object_gets_the_one_that_is_waited_for(wrong: str, tmp_path: Path) -> None:
    body = ANNOUNCED.replace(wrong.replace("+8", ""), wrong)
    (first,) = whats(tmp_path, body, most=1)
    assert len(first) == 1 and first[0].startswith("[%r4+8] becomes [%r4] in ")


@pytest.mark.parametrize(
    ("words", "releases", "wanted"),
    [
        ("atom.relaxed.gpu.global.cas.b32", False, "atom.acquire.gpu.global.cas.b32"),
        ("atom.relaxed.gpu.global.cas.b32", True, "atom.release.gpu.global.cas.b32"),
        ("atom.acquire.gpu.global.cas.b32", True, "atom.acq_rel.gpu.global.cas.b32"),
        ("atom.global.cas.b32", False, "atom.acquire.gpu.global.cas.b32"),
        ("atom.acq_rel.gpu.global.cas.b32", False, None),
    ],
)
def test_an_atomic_that_takes_a_lock_acquires_and_does_no_more(words: str, releases: bool, wanted: str | None) -> None:
    instruction = next(it for it in entry(module(f"{words} %r5, [%d0], 0, 1;")).body or () if it.words[0] == "atom")
    changed = _sem_words(instruction, releases=releases)
    assert (None if changed is None else ".".join(changed)) == wanted


TOLD = """
@!%p0 bra N;
atom.relaxed.gpu.global.inc.u32 %r5, [%d0], 1;
st.shared.u32 [s], 1;
N:
ld.shared.u32 %r7, [s];
setp.eq.u32 %p3, %r7, 0;
@%p3 bra DONE;
st.global.u32 [%d0+64], 3;
DONE:
"""


def test_a_repair_that_leaves_the_verdict_open_gives_way_to_one_that_does_not(tmp_path: Path) -> None:
    """Warps may read the word before it is there: a barrier of the warp in front of the store only hides that."""
    assert all("bar.sync 0" in what[0] and "ld.shared" in what[0] for what in whats(tmp_path, TOLD))


IN_TURN = """
setp.ge.u32 %p2, %r0, 32;
mov.u32 %r8, 0;
@%p2 bra SECOND;
FIRST:
bar.sync 1, 64;
ld.shared.u32 %r6, [s];
bar.arrive 2, 64;
add.u32 %r8, %r8, 1;
setp.lt.u32 %p4, %r8, 2;
@%p4 bra FIRST;
bra DONE;
SECOND: bar.sync 2, 64;
ld.shared.u32 %r6, [s];
setp.lt.u32 %p4, %r8, 1;
@%p4 bar.arrive 1, 64;
add.u32 %r8, %r8, 1;
setp.lt.u32 %p4, %r8, 2;
@%p4 bra SECOND;
DONE:
"""


def test_of_warps_that_take_turns_one_is_let_go_first(tmp_path: Path) -> None:
    """In front of the loop: in each round would be one arrival too many."""
    path = tmp_path / "k.ptx"
    path.write_text(kernel_text(IN_TURN))
    (repair,) = fix_kernel(path, launch(), seconds=PATIENCE, most=1).repairs
    assert "+SECOND_20: bar.arrive 1, 64;\n SECOND: bar.sync 2, 64;" in repair.diff


UNFENCED = """
fence.proxy.async.shared::cta;
bar.sync 0;
shr.u32 %r5, %r2, 4;
cvt.u64.u32 %d1, %r5;
or.b64 %d2, %d1, 0x0000000400010000;
mov.f32 %f0, 0f00000000;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d2, %d2, 1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
"""


def test_a_wgmma_fence_in_front_of_the_first_multiplication(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(kernel_text(UNFENCED).replace("sm_90", "sm_90a"))
    (repair,) = fix_kernel(path, launch(threads=128), seconds=PATIENCE).repairs
    assert [edit.text for edit in repair.edits] == ["wgmma.fence.sync.aligned;"]


LEADER = """
mov.u32 %r9, %cluster_ctarank;
mapa.shared::cluster.u32 %r10, %r4, %r9;
@%p0 mbarrier.init.shared::cta.b64 [%r4], 2;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
@%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r10];
setp.ne.u32 %p2, %r9, 0;
@%p2 bra DONE;
W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r4], 0;
@!%p3 bra W;
DONE:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
"""


def test_an_arrival_for_another_cta_gets_its_rank(tmp_path: Path) -> None:
    """Each CTA arrives on its own object, and the first one waits for two arrivals."""
    path = tmp_path / "k.ptx"
    path.write_text(kernel_text(LEADER))
    words = LaunchWords(grid=(2, 1, 1), block=(64, 1, 1), cluster=(2, 1, 1))
    found = fix_kernel(path, words=words, seconds=PATIENCE)
    assert ["rank %r9 becomes 0"] in [[edit.what for edit in repair.edits] for repair in found.repairs]


RELEASED_BY_ALL = """
@!%p0 bra READY;
mbarrier.init.shared::cta.b64 [%r4], 1;
READY:
bar.sync 0;
ld.shared.u32 %r6, [%r3];
mbarrier.arrive.shared::cta.b64 _, [%r4];
@!%p0 bra DONE;
W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], 0;
@!%p1 bra W;
st.shared.u32 [s+252], 1;
DONE:
"""


def test_an_object_is_initialised_for_as_many_threads_as_arrive(tmp_path: Path) -> None:
    """Each arrival ends a phase, so that one thread writes what others may not have read."""
    assert whats(tmp_path, RELEASED_BY_ALL)[0] == ["1 becomes 64"]


OLD_STATE = """
@!%p0 bra READY;
mbarrier.init.shared::cta.b64 [%r4], 64;
READY:
bar.sync 0;
mbarrier.arrive.shared::cta.b64 %d8, [%r4];
W: mbarrier.try_wait.shared::cta.b64 %p1, [%r4], %d8;
@!%p1 bra W;
st.shared.u32 [%r3], 1;
mbarrier.arrive.shared::cta.b64 %d9, [%r4];
V: mbarrier.try_wait.shared::cta.b64 %p1, [%r4], %d8;
@!%p1 bra V;
xor.b32 %r5, %r3, 128;
ld.shared.u32 %r6, [%r5];
"""


def test_a_test_by_state_gets_the_state_of_the_arrive_in_front_of_it(tmp_path: Path) -> None:
    assert whats(tmp_path, OLD_STATE, most=1) == [["state %d8 becomes %d9"]]


def test_threads_that_meet_in_two_groups_by_chance_meet_all_at_once(tmp_path: Path) -> None:
    """Any two of four warps may meet at the barrier first."""
    body = "st.shared.u32 [%r3], %r0; bar.sync 1, 64; xor.b32 %r5, %r3, 128; ld.shared.u32 %r6, [%r5];"
    path = tmp_path / "k.ptx"
    path.write_text(kernel_text(body))
    first = fix_kernel(path, launch(threads=128), seconds=PATIENCE).repairs[0]
    assert [edit.what for edit in first.edits] == ["64 becomes 128"] and first.after.word == "clean"


def test_an_arrive_behind_a_matrix_operation_becomes_its_commit() -> None:
    """The reads of the operation may not be over when the thread arrives."""
    mma = "tcgen05.mma.cta_group::1.kind::f16 [%r9], %d2, %d2, %r10, %p5;"
    read = module(f"{mma} @%p0 mbarrier.arrive.shared::cta.b64 _, [%r4+8];")
    first = next(it for it in entry(read).body or () if it.words[0] == "tcgen05")
    (change,) = committed_instead(first, entry(read).body or ())
    assert change.text == "@%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4+8]"


TWO_PARTS = """
mov.u32 %r8, %ctaid.x;
setp.ne.u32 %p1, %r8, 0;
@!%p0 bra DONE;
@%p1 bra READER;
st.release.gpu.global.u32 [%d0+4096], 1;
st.global.u32 [%d0+64], 6;
st.release.gpu.global.u32 [%d0+4096], 2;
bra DONE;
READER: ld.acquire.gpu.global.u32 %r9, [%d0+4096];
setp.lt.u32 %p2, %r9, 1;
@%p2 bra READER;
ld.global.u32 %r10, [%d0+64];
DONE:
"""


def test_a_flag_is_compared_with_the_number_that_is_stored_behind_the_access(tmp_path: Path) -> None:
    assert whats(tmp_path, TWO_PARTS, ctas=2, most=1) == [["1 becomes 2 in setp.lt.u32"]]


def test_a_wait_in_front_of_the_use_of_an_accumulator(tmp_path: Path) -> None:
    fenced = UNFENCED.replace("wgmma.mma_async", "wgmma.fence.sync.aligned;\nwgmma.mma_async", 1)
    path = tmp_path / "k.ptx"
    used = fenced.replace("wait_group.sync.aligned 0;", "wait_group.sync.aligned 1; add.f32 %f5, %f0, %f0;")
    path.write_text(kernel_text(used).replace("sm_90", "sm_90a"))
    (repair,) = fix_kernel(path, launch(threads=128), seconds=PATIENCE, most=1).repairs
    assert [edit.text for edit in repair.edits] == ["wgmma.wait_group.sync.aligned 0;"]


def test_a_line_between_a_label_and_its_instruction_is_set_apart() -> None:
    edit = PtxEdit(3, 3, "bar.sync 0;", 1, "", 0.0)
    assert laid("L: ret;\n", (edit,)) == "L: bar.sync 0; ret;\n"


def test_a_line_in_front_of_an_instruction_is_no_wider_form_of_its_words() -> None:
    fence, released = PtxEdit(7, 7, "fence;", 1, "", 500.0), PtxEdit(7, 20, "red.release", 1, "", 300.0)
    assert not _same_but_wider((fence,), (released,))
    assert _same_but_wider((PtxEdit(7, 20, "red.release.sys", 1, "", 900.0),), (released,))
