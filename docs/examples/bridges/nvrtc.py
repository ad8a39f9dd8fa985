"""CUDA C++ as text, compiled by NVRTC without a GPU and judged: pip install cuda-bindings nvidia-cuda-nvrtc (13.5)."""

from cuda.bindings import nvrtc

import memmodel
from memmodel import FakeArray

SOURCE = r"""
extern "C" __global__ void reverse(const int* in, int* out) {
  __shared__ int tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = tile[63 - threadIdx.x];
}
"""


def check(source, *args, grid, block, arch="sm_90a", name="kernel.cu", **options):
    """Judge the one kernel of a text. Its findings name lines of the text."""
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), name.encode(), 0, [], [])
    flags = [f"--gpu-architecture={arch}".encode(), b"--generate-line-info", b"--std=c++17"]
    (error,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
    assert not error, error
    text = bytes(nvrtc.nvrtcGetPTXSize(program)[1])
    nvrtc.nvrtcGetPTX(program, text)
    return memmodel.check_ptx(text, grid=grid, block=block, args=args, **options)


if __name__ == "__main__":
    arrays = FakeArray((64,), "int32"), FakeArray((64,), "int32")
    print(memmodel.explain_kernel(check(SOURCE, *arrays, grid=1, block=64)))
