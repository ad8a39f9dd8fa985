// The proxy fence stands before the stores that it should cover, and not behind them.
#include "steps.cuh"

extern "C" __global__ void kernel(float* out, const float* in) {
  __shared__ alignas(128) float tile[128];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    init(&full, 1);
    fence_proxy();
    expect(&full, sizeof(tile));
    load(tile, in, sizeof(tile), &full);
  }
  __syncthreads();
  wait(&full, 0);
  float value = tile[threadIdx.x];
  __syncthreads();
#ifdef FIXED
  tile[threadIdx.x ^ 1] = value;
  fence_proxy();
#else
  fence_proxy();
  tile[threadIdx.x ^ 1] = value;  // the bug: the fence comes before what it should cover
#endif
  __syncthreads();
  if (threadIdx.x == 0) {
    store(out, tile, sizeof(tile));
    commit();
    wait_done<0>();
  }
}
