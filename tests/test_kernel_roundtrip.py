"""Litmus tests as kernels: the table of all of them, some of them judged again on both roads, and random ones.

MEMMODEL_KERNEL_ALL=1 judges all that the table calls the same, and 300 random ones.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest
from kernel_random import differing
from kernel_roundtrip import ROOT, TABLE, compared, litmus_files

ROWS = [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines()]
SAME = [row[0] for row in ROWS if row[1] == "same"]
ALL = os.environ.get("MEMMODEL_KERNEL_ALL") == "1"
FIXED = [
    "async/undefined/tensor-map-acquired.litmus",
    "async/undefined/tensor-map-not-acquired.litmus",
    "async/undefined/state-from-a-peer.litmus",
    "async/instructions/mma-collector-fill.litmus",
    "async/instructions/mma-collector-not-filled.litmus",
]
CHOSEN = SAME if ALL else random.Random(3).sample(SAME, 12)


def test_the_table_has_every_test() -> None:
    assert {row[0] for row in ROWS} == {str(path.relative_to(ROOT / "litmus")) for path in litmus_files()}


def test_what_differs_is_explained() -> None:
    counts = Counter(row[1] for row in ROWS)
    assert set(counts) == {"same", "fewer", "differs", "not run"}
    assert counts["same"] > 20 * counts["differs"]
    assert not [row for row in ROWS if row[1] == "differs" and row[2].endswith("unexplained")]
    assert all(row[2] for row in ROWS)


@pytest.mark.parametrize("name", [*FIXED, *CHOSEN])
def test_both_roads_find_the_same(name: str) -> None:
    answer, said = compared(ROOT / "litmus" / name)
    assert answer == "same", said


def test_random_tests_find_the_same_on_both_roads() -> None:
    counts, found = differing(range(300 if ALL else 10))
    assert not found and counts["same"] > 0.9 * sum(counts.values())


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
