// Loads and a TMA store read the same tile. Does a proxy fence have to stand between them? No: nobody writes.
#include "steps.cuh"

extern "C" __global__ void kernel(const float* in, float* out, float* copy) {
  __shared__ alignas(128) float tile[32];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    init(&full, 1);
    fence_proxy();
    expect(&full, sizeof(tile));
    load(tile, in, sizeof(tile), &full);
  }
  __syncthreads();
  wait(&full, 0);
#ifdef FIXED
  out[threadIdx.x] = tile[threadIdx.x];
#else
  out[threadIdx.x] = ++tile[threadIdx.x];  // the bug, once somebody writes
#endif
  __syncthreads();
  if (threadIdx.x == 0) {
    store(copy, tile, sizeof(tile));
    commit();
    wait_done<0>();
  }
}
