"""The same under Triton itself, which compiles without a GPU; skipped where it is not installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.places import ROOT

triton = pytest.importorskip("triton")
pytest.importorskip("triton.knobs")

import memmodel.triton  # noqa: E402
import triton.language as tl  # noqa: E402
from memmodel import FakeArray as F  # noqa: E402
from memmodel.triton.compiling import _target  # noqa: E402


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMMODEL_CACHE", str(tmp_path))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton-cache"))  # its key leaves out where a kernel stands


@triton.jit
def added(x_ptr, y_ptr, out, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x_ptr + i, i < n) + scale * tl.load(y_ptr + i, i < n), i < n)


@triton.jit
def total(x_ptr, out, n, BLOCK: tl.constexpr, ATOMIC: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + i, i < n, 0.0))
    if ATOMIC:
        tl.atomic_add(out, part, sem="relaxed")
    else:
        tl.store(out, tl.load(out) + part)


@triton.jit
def multiplied(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, BK), num_stages=3):
        acc = tl.dot(a.load([row, k * BK]), b.load([column, k * BK]).T, acc)
    c.store([row, column], acc.to(tl.float16))


@pytest.mark.parametrize("capability", [80, 90, 100])
def test_a_race_between_programs_names_its_python_line(capability: int) -> None:
    x, out = F((1000,)), F((1,))
    target = ("cuda", capability)
    good = memmodel.triton.check(total, x, out, 1000, BLOCK=256, ATOMIC=True, grid=(4,), target=target)
    assert good.clean, good
    (bad,) = memmodel.triton.check(total, x, out, 1000, BLOCK=256, ATOMIC=False, grid=(4,), target=target)
    line = total.fn.__code__.co_firstlineno + 7
    assert bad.rules == ("data-race",) and f"{__file__}:{line}:" in bad.text


def test_autotuned_with_fakes_of_stride_0() -> None:
    configs = [triton.Config({"BLOCK": size}, num_warps=warps) for size, warps in ((128, 4), (512, 8))]
    tuned = triton.autotune(configs, key=["n"])(added)
    grid = lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)  # noqa: E731
    x, same, out = F((1000,)), F((1000,), "float32", (0,)), F((1000,))
    results = memmodel.triton.check(tuned, x, out, out, 1000, 0.5, grid=grid)
    assert [(result.word, result.label) for result in results] == [
        ("clean", "BLOCK=128"), ("clean", "BLOCK=512, num_warps=8"),
    ]  # fmt: skip
    (result,) = memmodel.triton.check(added, x, same, out, 1000, 0.5, BLOCK=128, grid=(8,))
    assert result.rules == ("undefined-address",), "an array of stride 0 has four bytes"


@pytest.mark.parametrize("capability", [90, 100])
def test_tensor_descriptors_of_the_host(capability: int) -> None:
    from triton.tools.tensor_descriptor import TensorDescriptor

    a, b, c = F((128, 256), "float16"), F((64, 256), "float16"), F((128, 64), "float16")
    described = [
        TensorDescriptor.from_tensor(array, block) for array, block in ((a, [128, 64]), (b, [64, 64]), (c, [128, 64]))
    ]
    (result,) = memmodel.triton.check(
        multiplied, *described, 256, BM=128, BN=64, BK=64, grid=(1, 1), target=("cuda", capability)
    )
    if capability == 90:
        assert result.clean, result.text
    else:  # the word in which tcgen05.alloc leaves an address is overwritten by TMA, without a proxy fence
        assert result.rules == ("data-race",) and "tcgen05.alloc" in result.text


def test_launches_under_its_own_hooks() -> None:
    from triton.backends.compiler import GPUTarget

    class Utils:
        def load_binary(self, *_: Any) -> tuple[int, ...]:
            return 1, 2, 0, 0, 1024

        def unload_module(self, *_: Any) -> None: ...

        def get_device_properties(self, _: Any) -> dict[str, int]:
            return {"max_shared_mem": 232448}

    class Launcher:
        def __init__(self, *_: Any) -> None: ...

        def __call__(self, x: int, y: int, z: int, stream: Any, function: Any, packed: Any, *rest: Any) -> None:
            lazy, enter, leave, *_ = rest
            enter(lazy)
            leave(lazy)

    class Driver:
        utils, launcher_cls = Utils(), Launcher

        def get_current_target(self) -> Any:
            return GPUTarget("cuda", 90, 32)

        def get_current_device(self) -> int:
            return 0

        def get_current_stream(self, _: Any) -> int:
            return 0

    before = triton.runtime.driver._active
    triton.runtime.driver.set_active(Driver())
    try:
        x, out = F((1000,)), F((1,))
        with memmodel.triton.checked(wait=120) as launches:
            for _ in range(3):
                total[(4,)](x, out, 1000, BLOCK=256, ATOMIC=False)
                total[(4,)](x, out, 1000, BLOCK=256, ATOMIC=True)
    finally:
        triton.runtime.driver.set_active(before)
    assert sorted(result.word for result in launches.results) == ["clean", "findings"], launches.results
    assert total.launch_metadata is None


def test_a_compiled_kernel_is_asserted_to_be_clean() -> None:
    from memmodel.testing import assert_clean

    x, out = F((1000,)), F((1,))
    with _target(("cuda", 90)):
        good, bad = (total.warmup(x, out, 1000, BLOCK=256, ATOMIC=atomic, grid=(4,)) for atomic in (True, False))
    assert assert_clean(good, (x, out, 1000, 256, True), (4,)).word == "clean"
    with pytest.raises(AssertionError, match="data-race"):
        assert_clean(bad, {"x_ptr": x, "out": out, "n": 1000}, 4)


def test_the_pages_show_what_the_example_prints() -> None:
    example = ROOT / "docs" / "examples" / "triton" / "total.py"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    run = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, env=environment, timeout=300)
    printed = re.sub(r"^PTX: .*\n", "", run.stdout.replace(f"{example.parent}/", ""), flags=re.MULTILINE)
    code = example.read_text().partition("@triton.jit")[2].partition("\n\n\n")[0]
    for page, shown in (("docs/triton.md", printed), ("README.md", "".join(printed.splitlines(keepends=True)[:6]))):
        text = (ROOT / page).read_text()
        assert f"```text\n{shown}" in text and code in text, page
