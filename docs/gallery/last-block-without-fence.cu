// The last block adds up what the others have stored. The counter is relaxed, and no fence stands before it.
#include "steps.cuh"

extern "C" __global__ void kernel(int* parts, int* counter, int* out) {
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = blockIdx.x;  // the bug: the last CTA may not see it
#ifdef FIXED
    __threadfence();
#endif
    if (atomicAdd(counter, 1) == int(gridDim.x) - 1) {
      __threadfence();
      int sum = 0;
      for (unsigned c = 0; c < gridDim.x; ++c) sum += parts[c];
      *out = sum;
    }
  }
}
