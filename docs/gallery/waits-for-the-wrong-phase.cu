// The second wait for an mbarrier object has the parity of the first one, whose phase is over: it waits for
// nothing, or for ever.
#include "steps.cuh"

extern "C" __global__ void kernel(const float* in, float* out) {
  __shared__ alignas(128) float tile[2][32];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    init(&full, 1);
    fence_proxy();
  }
  __syncthreads();
  float sum = 0;
  for (int t = 0; t < 2; ++t) {
    if (threadIdx.x == 0) {
      expect(&full, 128);
      load(tile[t], in + 32 * t, 128, &full);
    }
#ifdef FIXED
    wait(&full, t & 1);
#else
    wait(&full, 0);  // the bug: it may wait for a third tile
#endif
    sum += tile[t][threadIdx.x];
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}
