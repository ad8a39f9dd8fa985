"""Tensor memory is freed while a tcgen05.ld of it may still run."""

import cutlass
from cutlass import cute
from cutlass.cute.nvgpu import tcgen05


@cute.kernel
def kernel(out: cute.Tensor, fixed: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    address = cute.arch.alloc_smem(cutlass.Int32, 1)
    cute.arch.alloc_tmem(32, address)
    cute.arch.sync_threads()
    columns = cute.arch.retrieve_tmem_ptr(cutlass.Int32, 16, address)
    lanes = cute.make_tensor(columns, cute.make_layout(((32, 1), 1), stride=((1 << 16, 1), 0)))
    word = cute.make_rmem_tensor(((1, 1), 1), cutlass.Int32)
    word[0] = thread
    repeat = tcgen05.Repetition(1)
    cute.copy(cute.make_copy_atom(tcgen05.St32x32bOp(repeat), cutlass.Int32), word, lanes)
    cute.arch.fence_view_async_tmem_store()
    cute.copy(cute.make_copy_atom(tcgen05.Ld32x32bOp(repeat), cutlass.Int32), lanes, word)  # the bug: nobody waits
    if cutlass.const_expr(fixed):
        cute.arch.fence_view_async_tmem_load()
    cute.arch.dealloc_tmem(columns, 32)
    if cutlass.const_expr(not fixed):
        cute.arch.fence_view_async_tmem_load()
    out[thread] = word[0]


@cute.jit
def launch(out: cute.Tensor, fixed: cutlass.Constexpr):
    kernel(out, fixed).launch(grid=(1, 1, 1), block=(32, 1, 1))
