// A compiler drops the barrier between two uses of one buffer.
#include "steps.cuh"

extern "C" __global__ void kernel(const int* in, int* out) {
  __shared__ int words[64];
  words[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  int other = words[63 - threadIdx.x];
#ifdef FIXED
  __syncthreads();
#endif
  words[threadIdx.x] = 2 * other;  // the bug: another thread may not have read it yet
  __syncthreads();
  out[threadIdx.x] = words[63 - threadIdx.x];
}
