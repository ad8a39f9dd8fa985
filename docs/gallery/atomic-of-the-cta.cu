// An atomic operation of device scope is compiled to one of the CTA: CTAs do not see each other's data.
#include "steps.cuh"

extern "C" __global__ void kernel(int* parts, int* counter, int* out) {
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = blockIdx.x;  // the bug: the last CTA may not see it
#ifdef FIXED
    int before = add_gpu(counter, 1);
#else
    int before = add_cta(counter, 1);
#endif
    if (before == int(gridDim.x) - 1) {
      int sum = 0;
      for (unsigned c = 0; c < gridDim.x; ++c) sum += parts[c];
      *out = sum;
    }
  }
}
