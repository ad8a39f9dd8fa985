"""A sum over several programs that loses parts of it, and the same with an atomic operation."""

import triton
import triton.language as tl

import memmodel.triton
from memmodel import FakeArray


@triton.jit
def total(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x + i, i < n, 0.0))
    tl.store(out, tl.load(out) + part)


@triton.jit
def total_atomic(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x + i, i < n, 0.0))
    tl.atomic_add(out, part)


if __name__ == "__main__":
    for kernel in (total, total_atomic):
        print(memmodel.triton.check(kernel, FakeArray((1000,)), FakeArray((1,)), 1000, BLOCK=256, grid=(4,)))
