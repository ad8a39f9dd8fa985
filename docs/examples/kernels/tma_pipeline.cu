// Two stages of shared memory, filled by bulk copies of one producer warp and used up by 64 consumer threads.
// BROKEN: the producer does not wait until a stage has been read.
#include <cstdint>
#include <cuda/ptx>

namespace ptx = cuda::ptx;
constexpr int STAGES = 2, TILE = 256;  // floats in a stage

__device__ void wait(uint64_t* bar, uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(bar, parity)) {
  }
}

extern "C" __global__ void tma_pipeline(const float* in, float* out, int tiles) {
  __shared__ alignas(128) float stage[STAGES][TILE];
  __shared__ uint64_t full[STAGES], empty[STAGES];
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) {
      ptx::mbarrier_init(&full[s], 1);
      ptx::mbarrier_init(&empty[s], 64);
    }
    ptx::fence_proxy_async(ptx::space_shared);
  }
  __syncthreads();
  if (threadIdx.x >= 64) {
    if (threadIdx.x == 64) {
      for (int t = 0; t < tiles; ++t) {
        int s = t % STAGES;
#ifndef BROKEN
        wait(&empty[s], (t / STAGES & 1) ^ 1);
#endif
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[s], TILE * 4);
        ptx::cp_async_bulk(ptx::space_shared, ptx::space_global, stage[s], in + t * TILE, TILE * 4, &full[s]);
      }
    }
    return;
  }
  float sum = 0;
  for (int t = 0; t < tiles; ++t) {
    int s = t % STAGES, round = t / STAGES;
    wait(&full[s], round & 1);
    for (int i = threadIdx.x; i < TILE; i += 64) sum += stage[s][i];
    ptx::fence_proxy_async(ptx::space_shared);  // what was read is overwritten through another proxy
    ptx::mbarrier_arrive(&empty[s]);
  }
  out[threadIdx.x] = sum;
}
