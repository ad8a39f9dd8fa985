"""A named barrier counts two warps, and three come."""

import cutlass
from cutlass import cute


@cute.kernel
def kernel(out: cute.Tensor, fixed: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    words = cute.make_tensor(cute.arch.alloc_smem(cutlass.Int32, 96, 128), cute.make_layout(96))
    words[thread] = thread
    if cutlass.const_expr(fixed):
        cute.arch.barrier(barrier_id=1, number_of_threads=96)
    else:
        cute.arch.barrier(barrier_id=1, number_of_threads=64)  # the bug: the third warp waits for a fourth
    out[thread] = words[95 - thread]


@cute.jit
def launch(out: cute.Tensor, fixed: cutlass.Constexpr):
    kernel(out, fixed).launch(grid=(1, 1, 1), block=(96, 1, 1))
