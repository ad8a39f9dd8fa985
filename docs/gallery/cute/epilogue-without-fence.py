"""An epilogue writes its tile with stores, meets at a barrier, and has a bulk copy take it out."""

import cutlass
from cutlass import cute
from cutlass.cute.nvgpu import cpasync


@cute.kernel
def kernel(out: cute.Tensor, scale: cutlass.Float32, fixed: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    tile = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float32, 128, 128), cute.make_layout(128))
    tile[thread] = scale * thread  # the bug: the copy may read what was there before
    if cutlass.const_expr(fixed):
        cute.arch.fence_view_async_shared()
    cute.arch.sync_threads()
    if thread == 0:
        cute.copy(cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cutlass.Float32), tile, out)
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0)


@cute.jit
def launch(out: cute.Tensor, scale: cutlass.Float32, fixed: cutlass.Constexpr):
    kernel(out, scale, fixed).launch(grid=(1, 1, 1), block=(128, 1, 1))
