// All lanes of a warp wait for a free slot, and one of them fills it. A lane that comes late may miss two phases.
#include "steps.cuh"

extern "C" __global__ void kernel(const float* in, float* out) {
  __shared__ alignas(128) float slot[32];
  __shared__ uint64_t full, empty;
  const int t = threadIdx.x;
  if (t == 0) {
    init(&full, 1);
    init(&empty, 1);
    fence_init();
  }
  __syncthreads();
  for (int tile = 0; tile < 3; ++tile) {
    if (t < 32) {
      wait(&empty, (tile + 1) & 1);  // the bug: the other lanes have to meet the first one behind the wait
#ifdef FIXED
      __syncwarp();
#endif
      if (t == 0) {
        expect(&full, 128);
        load(slot, in + 32 * tile, 128, &full);
      }
    } else {
      wait(&full, tile & 1);
      out[32 * tile + t - 32] = slot[t - 32];
      fence_proxy();
      __syncwarp();
      if (t == 32) arrive(&empty);
    }
  }
}
