// The proxy fence covers all memory where shared memory is enough. Narrower is as good, and none is a bug.
#include "steps.cuh"

extern "C" __global__ void kernel(float* out) {
  __shared__ alignas(128) float tile[128];
  tile[threadIdx.x] = threadIdx.x;  // the bug, with a fence that covers another space
#ifdef FIXED
  fence_proxy();
#else
  asm volatile("fence.proxy.async.global;" ::: "memory");
#endif
  __syncthreads();
  if (threadIdx.x == 0) {
    store(out, tile, sizeof(tile));
    commit();
    wait_done<0>();
  }
}
