// The sum of a block with cooperative groups: shuffles in tiles, shared memory between them.
// memmodel: launch {"grid": 2, "block": 128, "params": {"x": {"bytes": 1024}, "out": {"bytes": 1024}}}
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

extern "C" __global__ void normalize(const float* x, float* out) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<32>(block);
  __shared__ float part[4];
  int i = blockIdx.x * 128 + threadIdx.x;
  float mine = x[i], sum = cg::reduce(tile, mine, cg::plus<float>());
  if (tile.thread_rank() == 0) part[tile.meta_group_rank()] = sum;
  block.sync();
  out[i] = mine / (part[0] + part[1] + part[2] + part[3]);
}
