"""One warp writes tensor memory, another reads it after an mbarrier. Are the two tcgen05 fences needed around it?"""

import cutlass
from cutlass import cute
from cutlass.cute.nvgpu import tcgen05


@cute.kernel
def kernel(out: cute.Tensor, fixed: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    address = cute.arch.alloc_smem(cutlass.Int32, 1)
    full = cute.arch.alloc_smem(cutlass.Int64, 1)
    if thread < 32:
        cute.arch.alloc_tmem(32, address)
    if thread == 0:
        cute.arch.mbarrier_init(full, 32)
    cute.arch.sync_threads()
    columns = cute.arch.retrieve_tmem_ptr(cutlass.Int32, 16, address)
    lanes = cute.make_tensor(columns, cute.make_layout(((32, 1), 1), stride=((1 << 16, 1), 0)))
    word = cute.make_rmem_tensor(((1, 1), 1), cutlass.Int32)
    repeat = tcgen05.Repetition(1)
    if thread < 32:
        word[0] = thread
        store = cute.make_copy_atom(tcgen05.St32x32bOp(repeat), cutlass.Int32)
        cute.copy(store, word, lanes)  # the bug, where the documents want the fences
        cute.arch.fence_view_async_tmem_store()
        if cutlass.const_expr(fixed):
            cute.arch.inline_ptx("tcgen05.fence::before_thread_sync;")
        cute.arch.mbarrier_arrive(full)
    elif thread >= 128:
        cute.arch.mbarrier_wait(full, 0)
        if cutlass.const_expr(fixed):
            cute.arch.inline_ptx("tcgen05.fence::after_thread_sync;")
        load = cute.make_copy_atom(tcgen05.Ld32x32bOp(repeat), cutlass.Int32)
        cute.copy(load, lanes, word)
        cute.arch.fence_view_async_tmem_load()
        out[thread - 128] = word[0]
    cute.arch.sync_threads()
    if thread < 32:
        cute.arch.dealloc_tmem(columns, 32)


@cute.jit
def launch(out: cute.Tensor, fixed: cutlass.Constexpr):
    kernel(out, fixed).launch(grid=(1, 1, 1), block=(160, 1, 1))
