"""The proxy fence covers another space than the tile stands in. One for shared memory is enough, and none is a bug."""

import cutlass
from cutlass import cute
from cutlass.cute.nvgpu import cpasync


@cute.kernel
def kernel(out: cute.Tensor, fixed: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    tile = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 128, 128), cute.make_layout(128))
    tile[thread] = cutlass.Float32(thread)  # the bug, with a fence that covers another space
    if cutlass.const_expr(fixed):
        cute.arch.fence_proxy("async.shared", space="cta")
    else:
        cute.arch.fence_proxy("async.global")
    cute.arch.sync_threads()
    if thread == 0:
        cute.copy(cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cutlass.Float32), tile, out)
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0)


@cute.jit
def launch(out: cute.Tensor, fixed: cutlass.Constexpr):
    kernel(out, fixed).launch(grid=(1, 1, 1), block=(128, 1, 1))
