// A stage is read with loads and handed back to TMA, which fills it again.
#include "steps.cuh"

extern "C" __global__ void kernel(const float* in, float* out, int tiles) {
  __shared__ alignas(128) float stage[32];
  __shared__ uint64_t full, empty;
  if (threadIdx.x == 0) {
    init(&full, 1);
    init(&empty, 32);
    fence_proxy();
  }
  __syncthreads();
  if (threadIdx.x == 32) {
    for (int t = 0; t < tiles; ++t) {
      wait(&empty, (t & 1) ^ 1);
      expect(&full, sizeof(stage));
      load(stage, in + 32 * t, sizeof(stage), &full);
    }
  } else if (threadIdx.x < 32) {
    float sum = 0;
    for (int t = 0; t < tiles; ++t) {
      wait(&full, t & 1);
      sum += stage[threadIdx.x];  // the bug: TMA may overwrite it before it is read
#ifdef FIXED
      fence_proxy();
#endif
      arrive(&empty);
    }
    out[threadIdx.x] = sum;
  }
}
