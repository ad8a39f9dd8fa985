"""Litmus tests as kernels: the table of all of them, a sample judged again on both roads, and random ones.

MEMMODEL_KERNEL_ALL=1 judges the whole table, as the night does; MEMMODEL_SAMPLE chooses the sample.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest
from helpers.examples import SAMPLE, TIMES, seeds
from helpers.kernel.random_tests import differing
from helpers.kernel.random_waits import KINDS
from helpers.kernel.roundtrip import ROOT, TABLE, compared, litmus_files
from helpers.kernel.roundtrip import found as on_the_kernel

from memmodel.emit import emit
from memmodel.library import parse

ROWS = [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines()]
RUN = {name: (answer, said) for name, answer, said in ROWS if answer != "not run"}
ALL = os.environ.get("MEMMODEL_KERNEL_ALL") == "1"
FIXED = [
    "async/undefined/tensor-map-acquired.litmus",
    "async/undefined/tensor-map-not-acquired.litmus",
    "async/undefined/state-from-a-peer.litmus",
    "async/undefined/inval-after-relaxed-flag.litmus",
    "async/instructions/mma-collector-fill.litmus",
    "async/instructions/mma-collector-not-filled.litmus",
    "async/pipelines/gemm-wgmma-2x2-loop.litmus",
]
CHOSEN = sorted(RUN) if ALL else random.Random(SAMPLE).sample(sorted(RUN), min(24 * TIMES, len(RUN)))


def test_the_table_has_every_test() -> None:
    assert {row[0] for row in ROWS} == {str(path.relative_to(ROOT / "litmus")) for path in litmus_files()}


def test_what_differs_is_explained() -> None:
    counts = Counter(row[1] for row in ROWS)
    assert set(counts) == {"same", "fewer", "differs", "not run"}
    assert counts["same"] > 20 * counts["differs"]
    assert not [row for row in ROWS if row[1] == "differs" and row[2].endswith("unexplained")]
    assert all(row[2] for row in ROWS)


@pytest.mark.share(2)
@pytest.mark.parametrize("name", dict.fromkeys([*FIXED, *CHOSEN]))
def test_no_row_of_the_table_gets_worse(name: str) -> None:
    """Both roads find the same, or they differ as the table says and explains."""
    answer, said = compared(ROOT / "litmus" / name)
    assert answer == "same" or (answer, said) == RUN[name]


@pytest.mark.generated
def test_random_tests_find_the_same_on_both_roads() -> None:
    counts, found = differing(seeds(10))
    assert not found and counts["same"] > 0.9 * sum(counts.values())


@pytest.mark.share(3)
@pytest.mark.generated
@pytest.mark.parametrize("kind", KINDS)
def test_random_waits_find_the_same_on_both_roads(kind: str) -> None:
    counts, found = differing(seeds(5), KINDS[kind])
    assert not found and counts["same"] > 0.7 * sum(counts.values())


IDLE = """PTX idle-warps
"The threads are in warps 0 and 4, since both access the same lanes of tensor memory; warps 1 to 3 have no thread."

.tensor .b32 t = 0;

thread P0 @ cta 0, cluster 0, gpu 0 {{
    mov.b32 %v1, 4;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [t], {{%v1}};
    {meet}
}}

thread P1 @ cta 0, cluster 0, gpu 0 {{
    {meet}
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r2}}, [t];
    tcgen05.wait::ld.sync.aligned;
}}

exists (true)
"""


@pytest.mark.parametrize("meet", ["barrier.cluster.arrive;\n    barrier.cluster.wait;", "bar.sync 0;"])
def test_barriers_do_not_wait_for_warps_without_a_thread(meet: str, tmp_path: Path) -> None:
    test = tmp_path / "idle.litmus"
    test.write_text(IDLE.format(meet=meet))
    assert compared(test) == ("same", "hazard")


GROUP = """PTX warpgroup
"What the first warp of a warpgroup gets back decides what all four do."

.shared .align 128 .u32 s[4];
.shared .align 8 .b64 bar = mbarrier(1);
.shared .align 16 .u64 n[2];

thread WG @ cta 0, gpu 0 {{
    mov.u64 %a, s;
    {first}
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%d0, %d1, %d2, %d3}}, %a, %a, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
NEXT:
}}

exists (true)
"""
SPREAD = {
    "state": "mbarrier.arrive.shared::cta.b64 %st, [bar];\nW:\n"
    "mbarrier.try_wait.shared::cta.b64 %p, [bar], %st;\n@!%p bra W;",
    "32 bits": "atom.shared.add.u32 %r, [n], 1;\nsetp.ne.u32 %p, %r, 0;\n@%p bra NEXT;",
    "64 bits": "atom.shared.add.u64 %x, [n], 1;\nsetp.ne.u64 %p, %x, 0;\n@%p bra NEXT;",
    "16 bits": "mov.b16 %h, 0;\natom.shared.cas.b16 %q, [n], %h, 1;\nsetp.ne.u16 %p, %q, 0;\n@%p bra NEXT;",
    "128 bits": "atom.shared.exch.b128 %b, [n], %b;",
}


@pytest.mark.share(2)
@pytest.mark.parametrize("first", SPREAD.values(), ids=SPREAD.keys())
def test_warps_of_a_group_have_what_the_first_one_got(first: str, tmp_path: Path) -> None:
    test = tmp_path / "group.litmus"
    test.write_text(GROUP.format(first=first))
    verdict, found = on_the_kernel(test)
    assert not found and "hang" not in {one.rule for one in verdict.findings}
    text = emit(parse(test)).text
    slot = "mm_pass0"
    assert f".shared .align 16 .b8 {slot}[16];" in text and text.count(f"[{slot}]") == 2
