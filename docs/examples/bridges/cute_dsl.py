"""A kernel of CuTe DSL, compiled without a GPU and judged: pip install nvidia-cutlass-dsl (tried with 4.8.1)."""

import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import make_fake_compact_tensor

import memmodel
from memmodel import FakeArray


@cute.kernel
def reverse(x: cute.Tensor, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    tile = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(64), 16)
    tile[thread] = x[thread]
    out[thread] = tile[63 - thread]


@cute.jit
def launch(x: cute.Tensor, out: cute.Tensor):
    reverse(x, out).launch(grid=(1, 1, 1), block=(64, 1, 1))


def check(fn, *shapes, grid, dynamic_shared=0, arch="sm_90a", **options):
    """Judge the one kernel that `fn` launches. The block stands in its PTX; the grid does not."""
    fakes = [make_fake_compact_tensor(cutlass.Float32, shape) for shape in shapes]
    compiled = cute.compile(fn, *fakes, options=f"--keep-ptx --generate-line-info --gpu-arch {arch}")
    arrays = [FakeArray(shape, "float32") for shape in shapes]
    text = compiled.artifacts.PTX
    return memmodel.check_ptx(text, grid=grid, args=arrays, dynamic_shared=dynamic_shared, **options)


if __name__ == "__main__":
    print(memmodel.explain_kernel(check(launch, (64,), (64,), grid=1, dynamic_shared=256)))
