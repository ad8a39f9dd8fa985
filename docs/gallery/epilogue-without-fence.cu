// An epilogue writes its tile with stores, meets at a barrier, and has TMA copy it out.
#include "steps.cuh"

extern "C" __global__ void kernel(float* out, float scale) {
  __shared__ alignas(128) float tile[128];
  tile[threadIdx.x] = scale * threadIdx.x;  // the bug: TMA may copy what was there before
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
