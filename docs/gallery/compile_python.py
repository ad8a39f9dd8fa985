"""Compile the kernels of cute/ and gluon/ again, as they are and fixed. No GPU is needed.

pip install nvidia-cutlass-dsl triton memmodel   # tried with 4.8.1 and 3.9.0
python compile_python.py [NAME ...]   # writes NAME.ptx and NAME-fixed.ptx beside the sources

The launch stands in the PTX as a comment. Nobody writes it: it follows from what the kernel is called with, so
`memmodel kernel gluon/reload-without-fence.ptx` needs nothing else.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

from cases import CASES, Case
from compile import cleaned

import memmodel
from memmodel import FakeArray
from memmodel.kernel.question.comments import as_comment

HERE = Path(__file__).parent
os.environ["CUTE_DSL_DUMP_DIR"] = tempfile.mkdtemp()  # CuTe DSL keeps files of its own there
GLUON = {  # the length of the array and of the tile, and how many warps share it
    "read-and-read": (128, 128, 4),
    "reload-without-fence": (256, 128, 4),
    "waits-for-the-wrong-phase": (64, 32, 1),
}


def loaded(path: Path) -> ModuleType:
    """A file as a module, whatever its name."""
    spec = importlib.util.spec_from_file_location(path.stem.replace("-", "_"), path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cute_forms(case: Case, path: Path) -> Iterator[str]:
    """The PTX of both forms of a kernel of CuTe DSL."""
    import cutlass
    from cutlass import cute
    from cutlass.cute.runtime import make_fake_compact_tensor

    types = {"int32": cutlass.Int32, "float32": cutlass.Float32}
    arch = "sm_100a" if "tmem" in path.stem else "sm_90a"
    values = [
        make_fake_compact_tensor(types[str(value.dtype)], value.shape)
        if isinstance(value, FakeArray)
        else (cutlass.Float32 if isinstance(value, float) else cutlass.Int32)(value)
        for value in case.args
    ]
    for fixed in (False, True):
        options = f"--keep-ptx --generate-line-info --gpu-arch {arch}"
        text = cute.compile(loaded(path).launch, *values, fixed, options=options).artifacts.PTX
        cluster = case.grid if "cluster" in path.read_text() else 1
        verdict = memmodel.check_ptx(text, grid=case.grid, cluster=cluster, args=case.args)
        yield f"{text}\n{as_comment(verdict.launch)}\n"


def gluon_forms(case: Case, path: Path) -> Iterator[str]:
    """The PTX of both forms of a kernel of Gluon."""
    from triton.experimental.gluon import language as gl
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

    import memmodel.triton

    length, tile, warps = GLUON[path.stem]
    layout = gl.NVMMASharedLayout.get_default_for([tile], gl.float32)
    source = TensorDescriptor(FakeArray((length,), "float32"), [length], [1], [tile], layout)
    for fixed in (False, True):
        [result] = memmodel.triton.check(
            loaded(path).kernel, source, FakeArray((tile,), "float32"), fixed=fixed, grid=1, num_warps=warps,
            target=("cuda", 90),
        )  # fmt: skip
        yield Path(result.ptx).read_text() if result.ptx else sys.exit(result.text)


FORMS: dict[str, Callable[[Case, Path], Iterator[str]]] = {"cute": cute_forms, "gluon": gluon_forms}


def main(names: list[str]) -> None:
    """Write the PTX of the named kernels, or of all."""
    for case in CASES:
        for language in case.languages:
            path = HERE / language / f"{case.name}.py"
            if names and case.name not in names:
                continue
            for suffix, text in zip(("", "-fixed"), FORMS[language](case, path), strict=True):
                path.with_name(f"{path.stem}{suffix}.ptx").write_text(cleaned(text))


if __name__ == "__main__":
    main(sys.argv[1:])
