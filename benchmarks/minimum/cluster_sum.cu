// Four CTAs of a cluster send their sums to the first with st.async; it sends the total back through its shared memory.
// memmodel: launch {"grid": 4, "block": 32, "cluster": 4, "params": {"in": {"bytes": 512}, "out": {"bytes": 16}}}
#include <cooperative_groups.h>
#include <cstdint>
#include <cuda/ptx>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

extern "C" __global__ void __cluster_dims__(4) cluster_sum(const int* in, int* out) {
  __shared__ int part[4], total;
  __shared__ uint64_t bar;
  cg::cluster_group cluster = cg::this_cluster();
  unsigned rank = cluster.block_rank();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&bar, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    if (rank == 0) ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, 16);
  }
  cluster.sync();
  int sum = __reduce_add_sync(~0u, in[rank * 32 + threadIdx.x]);
  if (threadIdx.x == 0) ptx::st_async(cluster.map_shared_rank(&part[rank], 0), sum, cluster.map_shared_rank(&bar, 0));
  if (rank == 0 && threadIdx.x == 0) {
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &bar, 0)) {
    }
    total = part[0] + part[1] + part[2] + part[3];
  }
  cluster.sync();
  if (threadIdx.x == 0) out[rank] = *cluster.map_shared_rank(&total, 0);
  cluster.sync();
}
