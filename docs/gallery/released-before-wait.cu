// A stage is released to the producer before the wgmma that reads it is waited for.
#include "steps.cuh"

extern "C" __global__ void kernel(const uint32_t* in, float* out, uint32_t word) {
  __shared__ alignas(128) uint32_t b[64];
  __shared__ uint64_t full, empty;
  if (threadIdx.x == 0) {
    init(&full, 1);
    init(&empty, 128);
    fence_proxy();
  }
  __syncthreads();
  if (threadIdx.x == 128) {
    for (int t = 0; t < 2; ++t) {
      wait(&empty, (t & 1) ^ 1);
      expect(&full, sizeof(b));
      load(b, in + 64 * t, sizeof(b), &full);
    }
  } else if (threadIdx.x < 128) {
    float d[4] = {};
    uint32_t a[4] = {word, word, word, word};
    for (int t = 0; t < 2; ++t) {
      wait(&full, t & 1);
      wgmma_fence(d, a);
      wgmma(d, a, b_matrix(b));  // the bug: it may still read the stage
      wgmma_commit();
#ifdef FIXED
      wgmma_wait();
#endif
      arrive(&empty);
    }
    wgmma_wait();
    out[threadIdx.x] = d[0];
  }
}
