// The two CTAs of a cluster exchange a tile through distributed shared memory.
// BROKEN: a CTA may leave while the other one still reads its shared memory.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(2, 1, 1) dsmem(const float* in, float* out) {
  __shared__ float tile[128];
  cg::cluster_group cluster = cg::this_cluster();
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = in[at];
  cluster.sync();
  const float* other = cluster.map_shared_rank(tile, cluster.block_rank() ^ 1);
  out[at] = tile[threadIdx.x] + other[threadIdx.x];
#ifndef BROKEN
  cluster.sync();
#endif
}
