// The proxy fence stands in a loop that may run no round.
#include "steps.cuh"

extern "C" __global__ void kernel(float* out, const float* in, int parts) {
  __shared__ alignas(128) float tile[128];
  tile[threadIdx.x] = 0;  // the bug: with no part, no fence follows
  for (int p = 0; p < parts; ++p) {
    tile[threadIdx.x] += in[128 * p + threadIdx.x];
#ifndef FIXED
    fence_proxy();
#endif
  }
#ifdef FIXED
  fence_proxy();
#endif
  __syncthreads();
  if (threadIdx.x == 0) {
    store(out, tile, sizeof(tile));
    commit();
    wait_done<0>();
  }
}
