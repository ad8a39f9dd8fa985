"""`memmodel kernel --fix` puts in a wait for a phase, an init, a commit, and an arrival in another CTA."""

import re
from pathlib import Path

import pytest
from helpers.kernel.samples import HEAD, entry, kernel_text, launch, module
from helpers.patience import PATIENCE

from memmodel import fix_kernel
from memmodel.kernel.order.verdict import KernelFinding
from memmodel.kernel.question.requests import LaunchWords
from memmodel.kernel.repair.lines import TENSOR_MAP, _barriers
from memmodel.kernel.repair.parities import flips

LOADED = """
@%p0 mbarrier.init.shared::cta.b64 [%r4], 1;
bar.sync 0;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 256;
@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d0], 256, [%r4];
W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], 0; @!%p1 bra W;
ld.shared.u32 %r5, [%r3];
add.u32 %r5, %r5, 1;
st.shared.u32 [%r3], %r5;
fence.proxy.async.shared::cta;
bar.sync 0;
@!%p0 bra DONE;
cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r2], 256;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
DONE:
"""

WAIT = "mbarrier.try_wait.parity.acquire.{}.shared::cta.b64 %seen0, [%r4], 0; @!%seen0 bra SEEN_0 before ld.shared.u32"


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (r"W: .*;", f".reg .pred %seen0; SEEN_0: {WAIT.format('cta')}"),
        (r"@%p0 mbarrier\.init.*;", "@%first0 mbarrier.init.shared::cta.b64 [bar], 1 before bar.sync"),
        (r"cp\.async\.bulk\.commit_group;", "cp.async.bulk.commit_group after cp.async.bulk.global"),
    ],
)
def test_a_line_that_is_left_out_is_put_in(line: str, wanted: str, tmp_path: Path) -> None:
    text = re.sub(line, "", LOADED, count=1)
    assert text != LOADED
    path = tmp_path / "k.ptx"
    path.write_text(kernel_text(text))
    (repair,) = fix_kernel(path, launch(), seconds=PATIENCE, most=1).repairs
    assert len(repair.edits) == 1 and wanted in repair.edits[0].what


def test_an_object_may_have_the_count_of_another_one(tmp_path: Path) -> None:
    """Nobody comes to arrive on it, so that no arrivals are there to be counted."""
    body = """@%p0 mbarrier.init.shared::cta.b64 [%r4], 64;
bar.sync 0;
W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4+8], 1; @!%p1 bra W;
mbarrier.arrive.shared::cta.b64 _, [%r4+8];
mbarrier.arrive.shared::cta.b64 _, [%r4];
V: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], 0; @!%p1 bra V;
X: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4+8], 0; @!%p1 bra X;
"""
    path = tmp_path / "k.ptx"
    path.write_text(kernel_text(body))
    (repair,) = fix_kernel(path, launch(), seconds=PATIENCE, most=1).repairs
    assert [change.what for change in repair.edits] == [
        "@%p0 mbarrier.init.shared::cta.b64 [%r4+8], 64 after mbarrier.init.shared::cta.b64"
    ]


EXCHANGE = f"""{HEAD}
.visible .entry k(.param .u64 k_param_0)
.reqnctapercluster 2
{{
.reg .pred %p<4>; .reg .b32 %r<16>;
.shared .align 4 .b8 box[128];
.shared .align 8 .b64 bar;
mov.u32 %r1, %tid.x;
mov.u32 %r2, %cluster_ctarank;
mov.u32 %r3, box;
mov.u32 %r4, bar;
xor.b32 %r5, %r2, 1;
setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r4], 32;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
mapa.shared::cluster.u32 %r6, %r3, %r5;
mapa.shared::cluster.u32 %r7, %r4, %r5;
shl.b32 %r8, %r1, 2;
add.u32 %r9, %r6, %r8;
st.shared::cluster.u32 [%r9], %r1;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];
W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r4], 0; @!%p2 bra W;
add.u32 %r10, %r3, %r8;
ld.shared.u32 %r11, [%r10];
ret;
}}
"""
"""The threads of two CTAs write to one another's memory."""


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (r"W: .*;", WAIT.format("cluster")),
        (r"@%p1 mbarrier\.init.*;", "mbarrier.init.shared::cta.b64 [bar], 32 before barrier.cluster.arrive"),
        (r"mbarrier\.arrive.*;", "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7] after st"),
        (
            r"mapa.shared::cluster.u32 %r7(.|\n)*?mbarrier\.arrive.*;",
            "mapa.shared::cluster.u32 %peer0, %r4, %r5; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%pe",
        ),
    ],
)
def test_a_hand_over_to_another_cta_is_put_in(line: str, wanted: str, tmp_path: Path) -> None:
    kept = "shl.b32 %r8, %r1, 2;\nadd.u32 %r9, %r6, %r8;\nst.shared::cluster.u32 [%r9], %r1;"
    text = re.sub(line, kept if "mapa" in line else "", EXCHANGE, count=1)
    path = tmp_path / "k.ptx"
    path.write_text(text)
    given = LaunchWords(grid=(2, 1, 1), block=(32, 1, 1))
    (repair,) = fix_kernel(path, words=given, seconds=PATIENCE, most=1).repairs
    assert len(repair.edits) == 1 and wanted in repair.edits[0].what


def test_both_ends_of_a_way_to_another_cta_are_changed(tmp_path: Path) -> None:
    """The arrival releases nothing, and the test, which acquires in the CTA, is too narrow."""
    path = tmp_path / "k.ptx"
    text = EXCHANGE.replace("arrive.release.cluster.shared", "arrive.relaxed.cluster.shared")
    path.write_text(text.replace(".parity.acquire.cluster.", ".parity."))
    given = LaunchWords(grid=(2, 1, 1), block=(32, 1, 1))
    repairs = fix_kernel(path, words=given, seconds=PATIENCE).repairs
    arrive, test = "mbarrier.arrive.{}.cluster.shared::cluster.b64", "mbarrier.try_wait.parity{}.shared::cta.b64"
    assert [
        f"{arrive.format('relaxed')} becomes {arrive.format('release')}",
        f"{test.format('')} becomes {test.format('.acquire.cluster')}",
    ] in [[edit.what for edit in repair.edits] for repair in repairs]


FLAG = """
@!%p0 bra DONE;
mov.u32 %r5, %ctaid.x;
setp.ne.u32 %p1, %r5, 0;
@%p1 bra READER;
st.global.u32 [%d0], 7;
st.release.gpu.global.u32 [%d0+64], 1;
bra DONE;
READER:
ld.acquire.gpu.global.u32 %r6, [%d0+64];
ld.global.u32 %r7, [%d0];
DONE:
"""


def test_a_flag_that_is_looked_at_once_is_polled(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(kernel_text(FLAG))
    (repair,) = fix_kernel(path, launch(32, 2, "zero"), seconds=PATIENCE, most=1).repairs
    label, branch = (edit.text for edit in repair.edits)
    assert label == "AGAIN_0:" and branch.endswith("setp.ne.b32 %other0, %r6, 1; @%other0 bra AGAIN_0;")
    assert "+AGAIN_0:\n ld.acquire" in repair.diff


BINS = """
and.b32 %r4, %r1, 124;
add.u32 %r5, %r2, %r4;
setp.ge.u32 %p0, %r0, 32;
@!%p0 st.shared.u32 [%r5], 0;
bar.sync 0;
ld.shared.u32 %r6, [%r5];
add.u32 %r6, %r6, 1;
st.shared.u32 [%r5], %r6;
ret;
"""


def test_an_update_that_is_lost_becomes_an_atomic(tmp_path: Path) -> None:
    """With a barrier between load and store both lanes would store the same, and an update would still be lost."""
    path = tmp_path / "k.ptx"
    path.write_text(kernel_text(BINS))
    repairs = fix_kernel(path, launch(64), seconds=PATIENCE).repairs
    assert [repair.edits[0].text for repair in repairs] == ["atom.relaxed.cta.shared.add.u32 %r6, [%r5], 1"]


def test_an_update_that_lanes_of_a_warp_lost_before_is_still_lost_with_a_barrier(tmp_path: Path) -> None:
    """Lanes of one warp with one bin load and store together: their stores are equal from the beginning."""
    path = tmp_path / "k.ptx"
    path.write_text(kernel_text(BINS.replace("124", "12")))
    repairs = fix_kernel(path, launch(64), seconds=PATIENCE).repairs
    assert [repair.edits[0].text for repair in repairs] == ["atom.relaxed.cta.shared.add.u32 %r6, [%r5], 1"]


def test_equal_stores_that_were_there_before_refuse_no_repair(tmp_path: Path) -> None:
    """A line that is put in front of them moves them on."""
    path = tmp_path / "k.ptx"
    body = "xor.b32 %r4, %r1, 128;\nadd.u32 %r5, %r2, %r4;\nst.shared.u32 [%r3], %r0;\nld.shared.u32 %r6, [%r5];\n"
    path.write_text(kernel_text(f"{body}st.shared.u32 [%r2+512], 1;\nret;\n"))
    (repair,) = fix_kernel(path, launch(64), seconds=PATIENCE, most=1).repairs
    assert "bar.sync 0" in repair.edits[0].what


LANES = """
mov.u32 %r4, bar;
setp.ne.u32 %p0, %r0, 0;
@!%p0 mbarrier.init.shared::cta.b64 [%r4], 1;
bar.sync 0;
setp.ge.u32 %p1, %r0, 32;
@%p1 bra WRITE;
ld.shared.u32 %r5, [%r3];
@%p0 bra DONE;
mbarrier.arrive.shared::cta.b64 _, [%r4];
DONE: ret;
WRITE: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;
@!%p2 bra WRITE;
st.shared.u32 [%r3-128], %r0;
ret;
"""


def test_the_lanes_meet_before_one_arrives_for_all(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(kernel_text(LANES))
    (repair,) = fix_kernel(path, launch(64), seconds=PATIENCE, most=1).repairs
    assert [edit.what for edit in repair.edits] == ["bar.warp.sync 0xffffffff after ld.shared.u32"]


def test_a_guarded_exit_is_no_branch_around_an_access(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    body = "setp.ge.u32 %p0, %r0, 32;\n@%p0 exit;\nxor.b32 %r4, %r1, 4;\nadd.u32 %r5, %r2, %r4;\n"
    path.write_text(kernel_text(f"{body}st.shared.u32 [%r3], %r0;\nld.shared.u32 %r6, [%r5];\nret;\n"))
    repairs = fix_kernel(path, launch(64), seconds=PATIENCE, most=1).repairs
    assert repairs and "bar.warp.sync 0xffffffff" in repairs[0].edits[0].what


@pytest.mark.parametrize(
    ("wraps", "wanted"),
    [
        ("setp.ne.u32 %p3, %r6, 2; @%p3 bra STAY; mov.u32 %r6, 0; STAY:", "xor.b32 %r8, %r8, 1;"),
        ("setp.eq.u32 %p3, %r6, 2; @%p3 mov.u32 %r6, 0;", "@%p3 xor.b32 %r8, %r8, 1;"),
        ("setp.eq.u32 %p3, %r6, 2; selp.b32 %r6, 0, %r6, %p3;", "@%p3 xor.b32 %r8, %r8, 1;"),
        ("setp.ne.u32 %p3, %r6, 2; selp.b32 %r6, %r6, 0, %p3;", "@!%p3 xor.b32 %r8, %r8, 1;"),
    ],
)
def test_the_parity_turns_where_a_ring_begins_again(wraps: str, wanted: str) -> None:
    body = f"""
mov.u32 %r8, 0;
LOOP:
W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r7], %r8; @!%p2 bra W;
add.u32 %r6, %r6, 1; {wraps}
setp.lt.u32 %p4, %r9, 5;
@%p4 bra LOOP;
ret;
"""
    kernel = entry(module(body)).body or ()
    finding = KernelFinding("undefined-unobserved-phase", "", "", ())
    turned = [line for (line,) in flips(finding, kernel)]
    assert [line.text for line in turned] == [wanted, "xor.b32 %r8, %r8, 1;"]
    assert turned[0].at is not None and turned[0].at.words[0] in ("mov", "selp") and turned[0].after


def test_an_object_is_waited_for_before_it_goes(tmp_path: Path) -> None:
    """Only by the thread that invalidates it: the test of another one would come too late."""
    wait = next(line for line in LOADED.split("\n") if line.startswith("W:"))
    text = LOADED.split("ld.shared")[0].replace(wait, "@%p0 mbarrier.inval.shared::cta.b64 [%r4];")
    path = tmp_path / "k.ptx"
    path.write_text(kernel_text(text))
    (repair,) = fix_kernel(path, launch(), seconds=PATIENCE, most=1).repairs
    assert [change.what.split("; ")[1] for change in repair.edits] == ["@!%p0 bra PASSED_0"]
    assert "parity.acquire.cta.shared::cta.b64 %seen0, [%r4], 0" in repair.edits[0].what
    assert "+PASSED_0:\n" in repair.diff


def test_behind_a_hang_what_is_ignored_ends_no_judgement_and_the_rest_is_mended(tmp_path: Path) -> None:
    """With the hang mended there is a race that is ignored, and one that is not: if elect.sync takes the last lane."""
    wait = "W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], 1; @!%p1 bra W;"
    ignored = 'st.global.u32 [%d0], %r0; // memmodel: ignore data-race "the last one counts"'
    elected = "elect.sync _|%p1, 0xffffffff;\n@%p1 st.shared.u32 [%r3], %r0;\n@%p0 ld.shared.u32 %r5, [%r2+124];"
    path = tmp_path / "k.ptx"
    path.write_text(kernel_text("\n".join(("bar.sync 0;", wait, ignored, elected))))
    (repair,) = fix_kernel(path, launch(), seconds=PATIENCE, most=1).repairs
    init, meeting = (edit.what for edit in repair.edits)
    assert "mbarrier.init" in init and meeting == "bar.warp.sync 0xffffffff before ld.shared.u32"
    path.write_text(kernel_text("\n".join(("bar.sync 0;", wait, ignored))))
    assert fix_kernel(path, launch(), seconds=PATIENCE, most=1).repairs


def test_the_nearest_barrier_is_that_of_the_role() -> None:
    text = "bar.sync 0;\nbar.sync 1, 64;\nst.shared.u32 [%r3], %r0;\nld.shared.u32 %r6, [%r3];\nbar.sync 2, 32;"
    whole = entry(module(text))
    body = whole.body or ()
    store, load = (it for it in body if "shared" in it.words)
    assert _barriers(whole, store, load) == ["bar.sync 1, 64;", "bar.sync 0;", "bar.sync 2, 32;"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (
            "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd4, {%r2, %r3}], [%r5]",
            "%rd4",
        ),
        ("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd37 + 0, {%r2}], [%r1]", "%rd37 + 0"),
        (
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd2], [%r1], 128",
            "%rd2",
        ),
    ],
)
def test_the_tensor_map_of_a_copy(text: str, named: str) -> None:
    found = TENSOR_MAP.search(text)
    assert found is not None and (found[1] or found[2]).strip() == named
