// The two CTAs of a cluster send each other a tile with st.async, and wait for its bytes.
// BROKEN: the wait is relaxed, so that the tile may be read before it is there.
#include <cooperative_groups.h>
#include <cuda/ptx>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

extern "C" __global__ void __cluster_dims__(2, 1, 1) st_async(const int* in, int* out) {
  __shared__ int tile[128];
  __shared__ alignas(8) uint64_t arrived;
  cg::cluster_group cluster = cg::this_cluster();
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&arrived, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &arrived, sizeof(tile));
  }
  cluster.sync();
  unsigned other = cluster.block_rank() ^ 1;
  ptx::st_async(cluster.map_shared_rank(tile + threadIdx.x, other), in[at], cluster.map_shared_rank(&arrived, other));
#ifndef BROKEN
  while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &arrived, 0)) {}
#else
  while (!ptx::mbarrier_try_wait_parity(ptx::sem_relaxed, ptx::scope_cluster, &arrived, 0)) {}
#endif
  out[at] = tile[threadIdx.x];  // and no barrier: nothing is written to a CTA that has all bytes
}
