"""The kernels of docs/examples/kernels: the right ones are clean, each broken one shows its bug, sources name it.

MEMMODEL_KERNEL_ALL=1 judges the large ones too.
"""

from __future__ import annotations

import json
import os

import pytest
from helpers.places import ROOT

from memmodel.kernel.check.conductor import check_kernel
from memmodel.kernel.order.verdict import KernelVerdict

KERNELS = ROOT / "docs" / "examples" / "kernels"
ALL = os.environ.get("MEMMODEL_KERNEL_ALL") == "1"

CASES = {
    "tma_pipeline": "clean",
    "dsmem": "clean",
    "st_async": "clean",
    "splitk": "clean",
    "scan": "clean",
    "last_block": "clean",
    "gemm_sm90": "clean",
    "gemm_sm100": "findings",  # tensor memory without fences: docs/kernels-in-the-wild.md
}
BROKEN = {
    "tma_pipeline": {"hang", "data-race", "undefined-unfinished-copy", "undefined-unobserved-phase"},
    "dsmem": {"undefined-after-exit"},
    "st_async": {"data-race", "undefined-after-exit", "undefined-unfinished-copy"},
    "splitk": {"data-race"},
    "scan": {"data-race"},
    "last_block": {"data-race"},
    "gemm_sm90": {"data-race"},
    "gemm_sm100": {"tensor-memory-hazard"},
}
LARGE = ("gemm_sm90", "gemm_sm100")
NAMES = [name for name in CASES if ALL or name not in LARGE]


def verdict(name: str) -> KernelVerdict:
    return check_kernel(KERNELS / f"{name}.ptx", KERNELS / f"{name.removesuffix('-broken')}.launch.json")


def test_every_example_is_here() -> None:
    assert (
        {path.name.removesuffix(".launch.json") for path in KERNELS.glob("*.launch.json")} == set(CASES) == set(BROKEN)
    )
    assert {path.stem for path in KERNELS.glob("*.ptx")} == set(CASES) | {f"{name}-broken" for name in CASES}
    for path in KERNELS.glob("*.launch.json"):
        assert json.loads(path.read_text(encoding="utf-8"))["kernel"]


@pytest.mark.share(2)
@pytest.mark.parametrize("name", NAMES)
def test_a_right_kernel(name: str) -> None:
    found = verdict(name)
    assert found.word == CASES[name], (found.findings, found.open)


@pytest.mark.share(2)
@pytest.mark.parametrize("name", NAMES)
def test_a_broken_kernel(name: str) -> None:
    found = verdict(f"{name}-broken")
    assert found.word == "findings"
    right = {one.rule for one in verdict(name).serious} if CASES[name] == "findings" else set()
    assert {one.rule for one in found.serious} <= BROKEN[name] | right
    assert BROKEN[name] & {one.rule for one in found.serious}
    sources = {str(side.instruction.location).split(":")[0] for one in found.serious for side in one.sides}
    assert any(source.startswith(("cp_async", "sm_", name.split("_sm")[0])) for source in sources)
