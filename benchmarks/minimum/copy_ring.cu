// One warp loads three stages by bulk copies; 64 threads double them in place; one thread stores them by bulk copies.
// memmodel: launch {"grid": 1, "block": 96, "params": {"in": {"bytes": 1280}, "out": {"bytes": 1280}, "tiles": 5}}
#include <cstdint>
#include <cuda/ptx>

namespace ptx = cuda::ptx;
constexpr int STAGES = 3, TILE = 64;

__device__ void wait(uint64_t* bar, uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(bar, parity)) {
  }
}

extern "C" __global__ void copy_ring(const float* in, float* out, int tiles) {
  __shared__ alignas(128) float stage[STAGES][TILE];
  __shared__ uint64_t full[STAGES], empty[STAGES];
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) {
      ptx::mbarrier_init(&full[s], 1);
      ptx::mbarrier_init(&empty[s], 1);
    }
  }
  __syncthreads();
  if (threadIdx.x >= 64) {
    if (threadIdx.x == 64)
      for (int t = 0; t < tiles; ++t) {
        int s = t % STAGES;
        wait(&empty[s], (t / STAGES & 1) ^ 1);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[s], TILE * 4);
        ptx::cp_async_bulk(ptx::space_shared, ptx::space_global, stage[s], in + t * TILE, TILE * 4, &full[s]);
      }
    return;
  }
  for (int t = 0; t < tiles; ++t) {
    int s = t % STAGES;
    wait(&full[s], t / STAGES & 1);
    stage[s][threadIdx.x] *= 2;
    ptx::fence_proxy_async(ptx::space_shared);
    asm volatile("bar.sync 1, 64;" ::: "memory");
    if (threadIdx.x == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + t * TILE, stage[s], TILE * 4);
      ptx::cp_async_bulk_commit_group();
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
      ptx::mbarrier_arrive(&empty[s]);
    }
  }
  if (threadIdx.x == 0) ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}
