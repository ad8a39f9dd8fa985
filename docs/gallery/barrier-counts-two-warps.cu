// A named barrier counts two warps, and three come.
#include "steps.cuh"

extern "C" __global__ void kernel(int* out) {
  __shared__ int words[96];
  words[threadIdx.x] = threadIdx.x;
#ifdef FIXED
  barrier(1, 96);
#else
  barrier(1, 64);  // the bug: the third warp waits for a fourth
#endif
  out[threadIdx.x] = words[95 - threadIdx.x];
}
