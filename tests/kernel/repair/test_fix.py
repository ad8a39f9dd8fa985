"""`memmodel kernel --fix`: changes of a kernel's text after which nothing is found."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.kernel.samples import entry, kernel_text, launch, module
from helpers.patience import PATIENCE
from helpers.places import ROOT

from memmodel import fix_kernel
from memmodel.answer import Budget
from memmodel.base.labels import Action, Mbarrier
from memmodel.cat.load import load_model
from memmodel.kernel.check.case import CheckOptions
from memmodel.kernel.check.conductor import judge
from memmodel.kernel.launch import read_launch
from memmodel.kernel.order.missing_order import MissingOrder
from memmodel.kernel.output.text import repair_lines
from memmodel.kernel.question.requests import LaunchWords
from memmodel.kernel.repair.arrivals import _Lacking
from memmodel.kernel.repair.edits import PtxEdit, disjoint, inline, laid, original
from memmodel.kernel.repair.search import KernelMender
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.objects import AwaitedPhase, ObjectStep
from memmodel.memory.bytes import Instance
from memmodel.ptx.module.reader import parse_module
from memmodel.ptx.vocabulary import Space
from memmodel.repair.edits import diff
from memmodel.source import Source

pytestmark = pytest.mark.turns(2)

EXAMPLES = ROOT / "docs" / "examples" / "kernels"


def edit(start: int, text: str, end: int | None = None) -> PtxEdit:
    return PtxEdit(start, start if end is None else end, text, 1, "", 1.0)


def test_an_edit_keeps_the_lines_of_the_others() -> None:
    text = "\tst.global.u32 [%rd1], 1;\n\tbar.sync 0;\n\tret;\n"
    at = text.index("bar")
    edits = (edit(at, "fence.proxy.async;"), edit(text.index("ret"), "exit", text.index("ret") + 3))
    new = inline(text, edits)
    assert new == "\tst.global.u32 [%rd1], 1;\n\t fence.proxy.async; bar.sync 0;\n\texit;\n"
    for part in ("st.global", "1;", "bar", "\n\tret"):
        assert original(edits, new.index(part.replace("ret", "exit"))) == text.index(part)
    assert original(edits, new.index("bar")) == at
    assert original(edits, new.index("fence")) == at
    assert original(edits, len(new)) == len(text)
    assert "+\tfence.proxy.async;\n \tbar.sync 0;\n-\tret;\n+\texit;\n" in diff("k", text, laid(text, edits))


def test_edits_that_touch_are_refused() -> None:
    assert disjoint((edit(3, "a;"), edit(3, "b;"), edit(5, "c;", 8)))
    assert not disjoint((edit(3, "a;"), edit(3, "a;")))
    assert not disjoint((edit(3, "abc", 9), edit(5, "c;")))


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("dsmem", "barrier.cluster.arrive; barrier.cluster.wait after ld.shared::cluster.f32"),
        ("last_block", "fence.acq_rel.gpu before atom.global.inc.u32"),
        ("st_async", "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 becomes "
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64"),
    ],
)  # fmt: skip
def test_what_an_example_lacks_is_found(name: str, wanted: str) -> None:
    """Also: each repair, applied to the text, is right when it is judged from the beginning."""
    path = EXAMPLES / f"{name}-broken.ptx"
    given = read_launch(EXAMPLES / f"{name}.launch.json")
    found = fix_kernel(path, given, seconds=PATIENCE, most=1 if name == "st_async" else 3)
    assert found.base.word == "findings"
    assert any([one.what for one in repair.edits] == [wanted] for repair in found.repairs)
    text = path.read_text()
    for repair in found.repairs:
        module = parse_module(Source("mended", inline(text, repair.edits)))
        verdict = judge(module, module.entries[0], given, load_model("ptx-9.4"))
        assert verdict.word == repair.after.word
        assert not verdict.serious


TMA_STORE = """
st.shared.u32 [%r3], %r0;
{fence}
bar.sync 0;
@!%p0 bra DONE;
cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r2], 256;
cp.async.bulk.commit_group;
{wait}
DONE:
"""

NEIGHBOUR = """
st.shared.u32 [%r3], %r0;
{barrier}
xor.b32 %r5, %r3, 128;
ld.shared.u32 %r6, [%r5];
"""

CP_ASYNC = """
mul.wide.u32 %d1, %r0, 4;
add.s64 %d2, %d0, %d1;
cp.async.ca.shared.global [%r3], [%d2], 4;
cp.async.commit_group;
{wait}
bar.sync 0;
xor.b32 %r5, %r3, 128;
ld.shared.u32 %r6, [%r5];
"""

COUNT = """
@!%p0 bra READY;
mbarrier.init.shared::cta.b64 [%r4], {count};
READY:
bar.sync 0;
mbarrier.arrive.shared::cta.b64 %d5, [%r4];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], 0;
@!%p1 bra WAIT;
"""


def mended(tmp_path: Path, body: str) -> list[list[str]]:
    """What each repair changes."""
    path = tmp_path / "k.ptx"
    path.write_text(kernel_text(body))
    return [[one.what for one in repair.edits] for repair in fix_kernel(path, launch(), seconds=PATIENCE).repairs]


def test_a_proxy_fence(tmp_path: Path) -> None:
    wait = "cp.async.bulk.wait_group 0;"
    found = mended(tmp_path, TMA_STORE.format(fence="", wait=wait))
    fence = "fence.proxy.async.shared::cta"
    assert [f"{fence} before cp.async.bulk.global.shared::cta.bulk_group"] in found
    assert [f"{fence} before bar.sync"] in found
    assert mended(tmp_path, TMA_STORE.format(fence=f"{fence};", wait=wait)) == []
    wrong = TMA_STORE.format(fence="fence.proxy.async.global;", wait=wait)
    assert ["fence.proxy.async.global becomes fence.proxy.async"] in mended(tmp_path, wrong)


def test_two_causes_need_two_changes(tmp_path: Path) -> None:
    found = mended(tmp_path, TMA_STORE.format(fence="", wait=""))
    assert found
    assert all(any("fence.proxy" in what for what in repair) for repair in found)
    assert all(any("wait_group" in what for what in repair) for repair in found)
    assert all(len(repair) == 2 for repair in found)


def test_a_barrier(tmp_path: Path) -> None:
    assert ["bar.sync 0 after st.shared.u32"] in mended(tmp_path, NEIGHBOUR.format(barrier=""))


@pytest.mark.parametrize("wait", ["", "cp.async.wait_group 1;"])
def test_a_wait_for_copies(tmp_path: Path, wait: str) -> None:
    found = mended(tmp_path, CP_ASYNC.format(wait=wait))
    assert ["cp.async.wait_all before bar.sync"] in found or ["1 becomes 0"] in found


def test_a_count_of_arrivals(tmp_path: Path) -> None:
    assert ["65 becomes 64"] in mended(tmp_path, COUNT.format(count=65))
    assert mended(tmp_path, COUNT.format(count=64)) == []
    moved = "mov.u32 %r9, 65;" + COUNT.format(count="%r9")
    assert ["65 becomes 64"] in mended(tmp_path, moved)


def test_where_nothing_in_the_vocabulary_helps_what_comes_nearest_is_shown(tmp_path: Path) -> None:
    """A race of stores to one place has no repair; the missing barrier beside it has one."""
    path = tmp_path / "k.ptx"
    path.write_text(kernel_text(NEIGHBOUR.format(barrier="") + "st.global.u32 [%d0], %r0;"))
    found = fix_kernel(path, launch(), seconds=PATIENCE)
    assert not found.repairs
    assert found.complete
    assert found.best is not None
    assert len(found.best.left) == 1 < len(found.base.serious)


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "memmodel", "kernel", *words], capture_output=True, text=True, check=False
    )


def test_a_buffer_that_is_handed_back_needs_half_a_fence() -> None:
    """The consumer only reads it: a release of its reads alone is the cheapest fence (PTX 9.4). A repair of a launch
    that was guessed says so.
    """
    few = LaunchWords(block=(64, 1, 1), values={"2": "2"})
    repairs = fix_kernel(ROOT / "docs" / "gallery" / "reload-without-fence.ptx", words=few, most=1)
    half = "fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.cluster after ld.shared.f32"
    assert half in [change.what for change in repairs.shown[0].edits]
    assert "the verdict is: undecided, since the launch was guessed in part" in "\n".join(repair_lines(repairs))


def test_from_the_command_line(tmp_path: Path) -> None:
    file, given, out = EXAMPLES / "last_block-broken.ptx", EXAMPLES / "last_block.launch.json", tmp_path / "o.json"
    done = command(str(file), "--launch", str(given), "--fix", "--json", str(out))
    assert done.returncode == 1, done.stderr
    assert "repair 1: the finding is gone, and the verdict is: clean" in done.stdout
    assert "+\tatom.acq_rel.gpu.global.inc.u32" in done.stdout
    repairs = json.loads(out.read_text())["repairs"]
    assert [one["verdict"] for one in repairs] == ["clean"] * len(repairs)
    assert repairs[0]["changes"][0]["line"] == 91
    assert "fence.acq_rel.gpu" in repairs[0]["diff"]
    refused = command(str(file), "--launch", str(given), "--fix", "--readings")
    assert refused.returncode == 2
    assert "--fix goes with" in refused.stderr


DIVERGENT = """
setp.lt.u32 %p1, %r0, 40;
@!%p1 bra D;
st.shared.u32 [%r3], %r0;
xor.b32 %r5, %r3, 4;
ld.shared.u32 %r6, [%r5];
D:
"""


def test_where_a_warp_is_split_no_aligned_barrier_is_put_in(tmp_path: Path) -> None:
    found = mended(tmp_path, DIVERGENT)
    # The lanes that do not come there exit, and release those that wait.
    assert ["bar.warp.sync 0xffffffff after st.shared.u32"] in found
    assert not any(what.startswith("bar.sync") for repair in found for what in repair)
    whole = mended(tmp_path, DIVERGENT.replace("40", "32"))
    assert ["bar.warp.sync 0xffffffff after st.shared.u32"] in whole


def test_a_wait_for_a_phase_that_has_some_arrivals_keeps_its_parity(tmp_path: Path) -> None:
    """The test of another parity is true at once: that ends the hang, and the wait with it."""
    assert mended(tmp_path, COUNT.format(count=65)) == [["65 becomes 64"]]
    producer = "@!%p0 bra READY;\nmbarrier.init.shared::cta.b64 [%r4], 1;\nREADY:\nbar.sync 0;\nWAIT:\n"
    producer += "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], 0;\n@!%p1 bra WAIT;"
    assert ["parity 0 becomes 1"] in mended(tmp_path, producer)


BESIDE = """
@%p0 mbarrier.init.shared.b64 [%r4], 1;
@%p0 mbarrier.init.shared.b64 [%r4+8], 1;
bar.sync 0;
setp.ge.u32 %p2, %r0, 32;
@%p2 bra OTHER;
A: mbarrier.try_wait.parity.shared.b64 %p1, [%r4+8], 1;
@!%p1 bra A;
@%p0 mbarrier.arrive.shared.b64 %d5, [%r4];
B: mbarrier.try_wait.parity.shared.b64 %p1, [%r4+8], 0;
@!%p1 bra B;
@%p0 mbarrier.arrive.shared.b64 %d5, [%r4];
C: mbarrier.try_wait.parity.shared.b64 %p1, [%r4+8], 1;
@!%p1 bra C;
bra DONE;
OTHER:
setp.ne.u32 %p2, %r0, 32;
@%p2 bra DONE;
D: mbarrier.try_wait.parity.shared.b64 %p1, [%r4], 0;
@!%p1 bra D;
mbarrier.arrive.shared.b64 %d5, [%r4+8];
E: mbarrier.try_wait.parity.shared.b64 %p1, [%r4], 1;
@!%p1 bra E;
mbarrier.arrive.shared.b64 %d5, [%r4+8];
DONE:
"""
"""All lanes of the first warp wait for a free slot, and the first of them fills it."""


def test_lanes_that_wait_beside_the_one_that_acts_meet(tmp_path: Path) -> None:
    assert mended(tmp_path, BESIDE) == [["bar.warp.sync 0xffffffff after bra"] * 2]


TMA_LOAD = """
@%p0 mbarrier.init.shared.b64 [%r4], 1;
bar.sync 0;
mov.u32 %r20, 256;
{arrive}
@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%d0], %r20, [%r4];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], 0;
@!%p5 bra WAIT;
ld.shared.u32 %r21, [%r3];
"""


@pytest.mark.parametrize(
    ("arrive", "wanted"),
    [
        ("", "@%p0 mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%r4], 256 before cp.async.bulk"),
        (
            "@%p0 mbarrier.arrive.shared::cta.b64 _, [%r4];",
            "@%p0 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r4], %r20 before mbarrier.arrive",
        ),
    ],
)
def test_bytes_of_copies_that_nobody_announces(tmp_path: Path, arrive: str, wanted: str) -> None:
    found = mended(tmp_path, TMA_LOAD.format(arrive=arrive))
    assert any(len(one) == 1 and one[0].startswith(wanted) for one in found)


HANDED_BACK = """
@%p0 mbarrier.init.shared.b64 [%r4], {full};
@%p0 mbarrier.init.shared.b64 [%r4+8], 32;
bar.sync 0;
setp.ge.u32 %p2, %r0, 32;
@%p2 bra OTHER;
@!%p0 bra DONE;
st.shared.u32 [%r2], 1;
{filled}
A: mbarrier.try_wait.parity.shared.b64 %p1, [%r4+8], 0;
@!%p1 bra A;
st.shared.u32 [%r2], 2;
bra DONE;
OTHER:
mov.u32 %r7, %r4;
{lost}
B: mbarrier.try_wait.parity.shared.b64 %p1, [%r7], 0;
@!%p1 bra B;
ld.shared.u32 %r5, [%r2];
add.u32 %r5, %r5, 1;
{emptied}
DONE:
"""
"""A thread fills a word for a warp, and fills it again once all lanes of the warp have read it."""

FILLED, EMPTIED = "mbarrier.arrive.shared.b64 %d5, [%r4];", "mbarrier.arrive.shared.b64 %d5, [%r4+8];"


@pytest.mark.parametrize(
    ("lacking", "wanted"),
    [
        ({"filled": ""}, "mbarrier.arrive.release.cta.shared::cta.b64 _, [%r4] after st.shared.u32"),
        ({"emptied": ""}, "mbarrier.arrive.release.cta.shared::cta.b64 _, [%r4+8] after ld.shared.u32"),
        (
            {"emptied": "", "lost": "mov.u32 %r4, 0;"},
            "mbarrier.arrive.release.cta.shared::cta.b64 _, [%r7+8] after ld.shared.u32",
        ),
        ({"full": 2, "filled": "mbarrier.arrive.shared.b64 %d5, [%r4], 1;"}, "1 becomes 2"),
    ],
)
def test_who_has_accessed_memory_may_have_to_arrive(lacking: dict[str, object], wanted: str, tmp_path: Path) -> None:
    """As many threads as arrivals are lacking, by a name that they have; or one that arrives counts too little."""
    parts: dict[str, object] = {"full": 1, "filled": FILLED, "emptied": EMPTIED, "lost": ""}
    assert [wanted] in mended(tmp_path, HANDED_BACK.format_map({**parts, **lacking}))


def test_who_initialises_an_object_may_have_to_expect_the_bytes_of_stores(tmp_path: Path) -> None:
    text = (EXAMPLES / "st_async.ptx").read_text()
    path = tmp_path / "k.ptx"
    path.write_text(re.sub(r"mbarrier\.arrive\.expect_tx[^;]*;", "", text, count=1))
    (repair,) = fix_kernel(path, EXAMPLES / "st_async.launch.json", seconds=PATIENCE, most=1).repairs
    wanted = (
        "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%r2], 512 after fence.mbarrier_init.release.cluster"
    )
    assert [one.what for one in repair.edits] == [wanted]


def test_who_has_no_other_name_of_an_object_names_its_variable() -> None:
    text = (ROOT / "docs" / "gallery" / "tmem-fences-fixed.ptx").read_text()
    lacking = re.sub(r"mbarrier\.arrive[^;]*;", "", text, count=1)
    module = parse_module(Source("lacking", lacking))
    options, budget = CheckOptions(4), Budget(seconds=PATIENCE)
    mender = KernelMender(
        module, "kernel", launch(160), load_model("ptx-9.4"), options, budget=budget, seconds=PATIENCE, most=1
    )
    (repair,) = mender.repairs().repairs
    wanted = "mbarrier.arrive.release.cta.shared::cta.b64 _, [_ZZ6kernelE4full] after tcgen05.fence::before_thread_sync"
    assert [one.what for one in repair.edits] == [wanted]


def test_behind_a_matrix_operation_its_completion_may_arrive() -> None:
    text = """mbarrier.init.shared.b64 [%r4], 1;
    tcgen05.mma.cta_group::2.kind::f16 [%r5], %d1, %d2, %r6, %p1;"""
    body = entry(module(text)).body or ()
    init, multiply = (next(it for it in body if it.words[0] == head) for head in ("mbarrier", "tcgen05"))
    block = Block(Instance("bar", Space.SHARED, (0, (0, 0), 0)), 0, 16)
    step = ObjectStep(TraceEvent(0, 0, init.number, Mbarrier(Action.INIT)), True, 0, 0, 0, 0)
    lacking = _Lacking(body, LaunchTrace(objects={(block, 0): [step]}))
    awaited = AwaitedPhase(block, 0, 0, 1, 0, True)
    lines = [line for line, _ in lacking._arrives(awaited, multiply, {0}, remote=False)]
    assert lines == [
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%r4]",
        "mbarrier.arrive.release.cta.shared::cta.b64 _, [%r4]",
    ]


def test_fences_stand_beside_the_step_between_two_blocks(tmp_path: Path) -> None:
    """The thread that reads is another one than the one that the step leads to."""
    body = """
        @!%p0 bra ON;
        st.global.u32 [%d0+64], 1;
        atom.global.add.u32 %r8, [%d0], 1;
        st.shared.u32 [%r2], %r8;
        ON:
        bar.sync 0;
        ld.shared.u32 %r9, [%r2];
        setp.ne.u32 %p1, %r9, 1;
        @%p1 bra END;
        setp.ne.u32 %p2, %r0, 40;
        @%p2 bra END;
        ld.global.u32 %r10, [%d0+64];
        END:
    """
    body = body.replace("st.global.u32 [%d0+64], 1;", "mov.u32 %r7, %ctaid.x; setp.ne.u32 %p3, %r7, 0; "
                        "@!%p3 st.global.u32 [%d0+64], 1;")  # fmt: skip
    path = tmp_path / "k.ptx"
    path.write_text(kernel_text(body))
    found = fix_kernel(path, launch(ctas=2, init="zero"), seconds=PATIENCE)
    both = ["fence.acq_rel.gpu before atom.global.add.u32", "fence.acq_rel.gpu after atom.global.add.u32"]
    assert both in [[one.what for one in repair.edits] for repair in found.repairs]


def test_a_fence_that_is_too_narrow_is_named_and_widened(tmp_path: Path) -> None:
    """Not the atomic operations beside it, whose scopes are wide enough."""
    body = """
        mov.u32 %r7, %ctaid.x;
        setp.ne.u32 %p0, %r0, 0;
        @%p0 bra END;
        setp.ne.u32 %p3, %r7, 0;
        @!%p3 st.global.u32 [%d0+64], 1;
        membar.cta;
        atom.global.add.u32 %r8, [%d0], 1;
        fence.acq_rel.gpu;
        setp.ne.u32 %p1, %r8, 1;
        @!%p1 ld.global.u32 %r10, [%d0+64];
        END:
    """
    path = tmp_path / "k.ptx"
    path.write_text(kernel_text(body))
    found = fix_kernel(path, launch(ctas=2, init="zero"), seconds=PATIENCE, most=1)
    (race,) = (finding for finding in found.base.findings if finding.rule == "data-race")
    assert race.reason == MissingOrder.SCOPES.value and race.missing.startswith("membar.cta at line")
    assert "is too narrow for the step from atom.global.add.u32" in race.missing
    assert [[edit.what for edit in repair.edits] for repair in found.repairs] == [["membar.cta becomes membar.gl"]]


def test_a_cluster_barrier_that_has_lost_its_wait(tmp_path: Path) -> None:
    """Another change leaves fewer findings at first, and is in the way of the one that ends them all."""
    text = (EXAMPLES / "st_async.ptx").read_text().replace("barrier.cluster.wait;", "nanosleep.u32 0;", 1)
    path = tmp_path / "k.ptx"
    path.write_text(text)
    found = fix_kernel(path, EXAMPLES / "st_async.launch.json", seconds=PATIENCE, most=1)
    assert [[one.text for one in repair.edits] for repair in found.repairs] == [["barrier.cluster.wait;"]]


def test_a_diff_is_one_that_patch_takes() -> None:
    text = "\tst.global.u32 [%rd1], 1; // \f\u2028\n\tret;"
    said = diff("/tmp/k.ptx", text, laid(text, (edit(text.index("ret"), "bar.sync 0;"),)))
    assert said.startswith("--- a/tmp/k.ptx\n+++ b/tmp/k.ptx\n@@ -1,2 +1,3 @@\n")
    assert said.endswith("+\tbar.sync 0;\n \tret;\n\\ No newline at end of file\n")


def test_time_that_runs_out_is_said() -> None:
    found = fix_kernel(EXAMPLES / "splitk-broken.ptx", EXAMPLES / "splitk.launch.json", seconds=0)
    assert not found.complete or not found.base.serious
    assert not found.repairs


def test_a_search_that_is_stopped_keeps_what_it_has() -> None:
    """The first repair is found, and then somebody has had enough."""
    file, given = EXAMPLES / "dsmem-broken.ptx", EXAMPLES / "dsmem.launch.json"
    enough = fix_kernel(file, given, most=1).tried
    left = [enough]

    def progress(what: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt

    found = fix_kernel(file, given, progress=progress, kept=True)
    assert isinstance(found.signal, KeyboardInterrupt) and not found.complete and found.tried == enough + 1
    assert "repair 1: the finding is gone" in "\n".join(repair_lines(found))
    left[0] = 1
    with pytest.raises(KeyboardInterrupt):
        fix_kernel(file, given, progress=progress)
    left[0] = 0
    found = fix_kernel(file, given, progress=progress, kept=True)
    assert not found.repairs and repair_lines(found) == ["no repair: the search was stopped; 1 change judged"]
