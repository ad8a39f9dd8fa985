"""A CTA writes into its neighbour's shared memory and arrives there, with the scope of its own CTA: the default."""

import cutlass
from cutlass import cute
from cutlass._mlir.dialects.nvvm import MemScopeKind

STORE = "st.shared::cluster.s32 [{$r0}], {$r1};"
WAIT = """{.reg .pred done;
again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [{$r0}], 0;
@!done bra again;}"""


@cute.kernel
def kernel(out: cute.Tensor, fixed: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    tile = cute.make_tensor(cute.arch.alloc_smem(cutlass.Int32, 32, 128), cute.make_layout(32))
    full = cute.arch.alloc_smem(cutlass.Int64, 1)
    if thread == 0:
        cute.arch.mbarrier_init(full, 32)
        cute.arch.mbarrier_init_fence()
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    other = cute.arch.block_idx_in_cluster() ^ 1
    place = cute.arch.map_dsmem_ptr(tile.iterator + thread, other)
    cute.arch.inline_ptx(STORE, read_only_args=[place.toint(), thread])  # the bug: not seen there
    if cutlass.const_expr(fixed):
        cute.arch.mbarrier_arrive(full, other, scope=MemScopeKind.CLUSTER)
    else:
        cute.arch.mbarrier_arrive(full, other)
    cute.arch.inline_ptx(WAIT, read_only_args=[full.toint()])
    out[block * 32 + thread] = tile[thread ^ 1]
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


@cute.jit
def launch(out: cute.Tensor, fixed: cutlass.Constexpr):
    kernel(out, fixed).launch(grid=(2, 1, 1), block=(32, 1, 1), cluster=(2, 1, 1))
