"""Findings about tensor memory that is allocated and freed, about one event, and about one instruction of a thread."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from helpers.kernel.samples import entry, launch, module

from kernel.export.test_cut_hangs import PAIR, POINTER, hangs
from memmodel import api
from memmodel.base.labels import Access, Family, Issue, Side
from memmodel.cat.load import load_model
from memmodel.kernel.check.case import CheckOptions, KernelCase
from memmodel.kernel.check.conductor import judge_case
from memmodel.kernel.export.issues import _released
from memmodel.kernel.export.litmus import best
from memmodel.kernel.export.write import Writer
from memmodel.kernel.launch import Launch, parse_launch
from memmodel.ptx.vocabulary import Scope, Sem

ALLOC = (
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32;\nbar.warp.sync -1;\nld.shared.u32 %r10, [s];\n"
)
STORE = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10], {%r0};\n"
WAIT = "tcgen05.wait::st.sync.aligned;\n"
FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 32;\n"
HANDED_OVER = f"""
setp.ge.s32 %p1, %r0, 32;
@%p1 bra OTHER;
{ALLOC}
bar.sync 0;
bar.sync 1;
{FREE}
bra OUT;
OTHER:
bar.sync 0;
ld.shared.u32 %r10, [s];
{{lanes}}
{STORE.replace("{", "{{").replace("}", "}}")}{{wait}}
bar.sync 1;
OUT:
"""
"""One warp allocates and frees what another one uses."""
OWN = "add.u32 %r10, %r10, 2097152;"
"""The lanes of the second warp."""

TWO_CTAS = parse_launch({**PAIR, "params": [POINTER]})


def found_in(body: str, given: Launch | None = None) -> dict[str, tuple[str | None, str]]:
    """The test of each rule that a kernel of one warp breaks."""
    read = module(body)
    kernel = judge_case(KernelCase(read, entry(read), given or launch(32), load_model("ptx-9.4"), CheckOptions()))
    return {one.rule: best(kernel.runs[id(one)], one, "cut") for one in kernel.verdict.findings}


CASES: list[tuple[str, str, Launch | None, str, list[str]]] = [
    ("freed in use", ALLOC + STORE + FREE, None, "undefined-tensor-memory", ["[t], {%v", "dealloc.cta_group::1"]),
    ("freed elsewhere", HANDED_OVER.format(wait="", lanes=OWN), launch(64), "undefined-tensor-memory", ["thread P1"]),
    ("kept", ALLOC + STORE + WAIT, None, "undefined-tensor-memory-kept", ["tcgen05.alloc", "exit;"]),
    ("freed twice", ALLOC + FREE + FREE, None, "undefined-tensor-memory-freed", ["mov.u32 %ta2, t;"]),
    ("not allocated", "mov.u32 %r10, 0;" + STORE, None, "undefined-tensor-memory", ["[t2], {%v"]),
    (
        "no right to it",
        "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n" + ALLOC + FREE,
        None, "undefined-tensor-memory-permit", ["relinquish"],
    ),
    ("no object", "@%p0 mbarrier.arrive.shared.b64 %d5, [%r4];", None, "undefined-mbarrier", ["bar;"]),
    (
        "an object that is one already",
        "@%p0 mbarrier.init.shared.b64 [%r4], 1;\n@%p0 mbarrier.init.shared.b64 [%r4], 1;",
        None, "undefined-mbarrier", ["mbarrier.init.shared::cta.b64 [bar], 1;\n    mbarrier.init"],
    ),
    (
        "an arrival too many",
        "@%p0 mbarrier.init.shared.b64 [%r4], 1;\n@%p0 mbarrier.arrive.expect_tx.shared.b64 %d5, [%r4], 16;\n"
        "@%p0 mbarrier.arrive.shared.b64 %d5, [%r4];",
        None, "undefined-mbarrier", ["bar = mbarrier(1);", "_, [bar], 16;"],
    ),
    ("misaligned", "ld.global.u32 %r9, [%d0+2];", None, "undefined-address", ["ld.global.u32 %v0, [x+2];"]),
    ("a vector", "ld.shared.v2.u32 {%r8, %r9}, [%r2+4];", None, "undefined-address", ["ld.shared.v2.u32", "[s+4];"]),
    ("behind the buffer", "st.global.u32 [%d0+65536], 1;", None, "undefined-address", ["st.global.u32 [x+16], 1;"]),
    ("outside all", "red.global.add.u32 [16], 1;", None, "undefined-address", ["red.global.add.u32 [x+16], 1;"]),
    (
        "twice at the barrier of the cluster",
        "barrier.cluster.arrive;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;",
        TWO_CTAS, "undefined-cluster-barrier", ["arrive;\n    barrier.cluster.arrive;"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("body", "given", "rule", "kept"), [one[1:] for one in CASES], ids=[one[0] for one in CASES])
def test_what_a_thread_does_by_itself(body: str, given: Launch | None, rule: str, kept: list[str]) -> None:
    """The test raises the flag of the finding."""
    text, why = found_in(body, given)[rule]
    assert text is not None and why == "" and all(line in text for line in kept), (text, why)
    assert rule in api.check(text).answer.flags


def test_what_is_waited_for_is_not_freed_in_use() -> None:
    """The cut of a kernel with a wait has the wait, if the finding is another one."""
    assert not found_in(ALLOC + STORE + WAIT + "bar.warp.sync -1;\n" + FREE)
    text, _ = found_in(ALLOC + STORE + FREE)["undefined-tensor-memory"]
    assert text is not None
    mended = text.replace("    mov.u32 %ta", "    tcgen05.wait::st.sync.aligned;\n    mov.u32 %ta")
    assert mended != text and api.check(mended).holds is False


def test_a_cta_of_a_pair_that_allocates_alone() -> None:
    body = (
        "mov.u32 %r7, %cluster_ctarank;\nsetp.ne.u32 %p1, %r7, 0;\n@%p1 bra L;\n"
        "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [s], 32;\nL:\n{}"
    )
    meet = "barrier.cluster.arrive;\nbarrier.cluster.wait;"
    for rest, kept in ((meet, "barrier.cluster.wait;"), ("", "thread P1 @ cta 1, cluster 0, gpu 0 {\n}")):
        text, why = hangs(body.format(rest), TWO_CTAS)[0]
        assert text is not None and why == "" and kept in text and "alloc.cta_group::2" in text, (text, why)


NOT_CUT = [
    ("bar.sync 1, 48;", "undefined-instruction", "operands"),
    (HANDED_OVER.format(wait=WAIT, lanes=""), "undefined-tensor-memory", "which lanes of tensor memory"),
    ("ld.shared.u32 %r9, [%r2+16777216];", "undefined-address", "the address"),
    ("trap;", "trap", "the kernel found wrong itself"),
]


@pytest.mark.parametrize(("body", "rule", "why"), NOT_CUT)
def test_what_is_no_part_of_a_test_is_said(body: str, rule: str, why: str) -> None:
    text, said = found_in(body, launch(64) if "tcgen05" in body else TWO_CTAS)[rule]
    assert text is None and why in said


@pytest.mark.parametrize(
    ("word", "opcode"), [("st", "st.async.release.gpu.global.u32"), ("red", "red.async.release.gpu.global.add.u32")]
)
def test_what_releases_beside_the_bytes_of_a_finding(word: str, opcode: str) -> None:
    names: Any = SimpleNamespace(beside=lambda space: f"{space}0")
    item: Any = SimpleNamespace(instruction=SimpleNamespace(words=(word,)), touched=None)
    issue: Any = SimpleNamespace(label=Issue(Family.ST_ASYNC, Sem.RELEASE, Scope.GPU))
    assert _released(names, item, issue, 0) == f"{opcode} [global0], 1;"


def test_values_are_in_the_order_of_the_run() -> None:
    def item(time: int) -> Any:
        event = SimpleNamespace(label=Access(Side.WRITE), time=time, block="x", first=0, partner=None)
        return SimpleNamespace(event=event, instruction=SimpleNamespace(words=("st",)), touched=None)

    items = [item(time) for time in (2, 3, 1)]
    writer = object.__new__(Writer)
    writer._reads, writer._values, writer._wrote = {}, {}, {}
    story: Any = SimpleNamespace(instructions=lambda: items)
    writer.story = story
    writer._replay()
    assert [writer.left(each.event) for each in items] == [2, 3, 1]
