// A compiler writes an operand of wgmma with stores and leaves out the proxy fence.
#include "steps.cuh"

extern "C" __global__ void kernel(float* out, uint32_t word) {
  __shared__ alignas(128) uint32_t b[64];
  float d[4] = {};
  uint32_t a[4] = {word, word, word, word};
  if (threadIdx.x < 64) b[threadIdx.x] = word;  // the bug: wgmma reads it through another proxy
#ifdef FIXED
  fence_proxy();
#endif
  __syncthreads();
  wgmma_fence(d, a);
  wgmma(d, a, b_matrix(b));
  wgmma_commit();
  wgmma_wait();
  out[threadIdx.x] = d[0];
}
