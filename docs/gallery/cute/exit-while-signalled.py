"""A CTA leaves while its neighbour may still arrive at an mbarrier object in its shared memory."""

import cutlass
from cutlass import cute


@cute.kernel
def kernel(out: cute.Tensor, fixed: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    ready = cute.arch.alloc_smem(cutlass.Int64, 1)
    if thread == 0:
        cute.arch.mbarrier_init(ready, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    rank = cute.arch.block_idx_in_cluster()
    if rank == 0:
        if thread == 0:
            cute.arch.mbarrier_arrive(ready, 1)
    else:
        if thread == 0:
            cute.arch.mbarrier_arrive(ready, 0)  # the bug: CTA 0 may be gone
        cute.arch.mbarrier_wait(ready, 0)
    out[block * 32 + thread] = rank
    if cutlass.const_expr(fixed):
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()


@cute.jit
def launch(out: cute.Tensor, fixed: cutlass.Constexpr):
    kernel(out, fixed).launch(grid=(2, 1, 1), block=(32, 1, 1), cluster=(2, 1, 1))
