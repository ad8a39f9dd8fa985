// The registers of A are written for the next product before the last one has been waited for.
#include "steps.cuh"

extern "C" __global__ void kernel(float* out, uint32_t word) {
  __shared__ alignas(128) uint32_t b[64];
  float d[4] = {};
  uint32_t a[4] = {word, word, word, word};
  if (threadIdx.x < 64) b[threadIdx.x] = word;
  fence_proxy();
  __syncthreads();
  wgmma_fence(d, a);
  wgmma(d, a, b_matrix(b));
  wgmma_commit();
#ifdef FIXED
  wgmma_wait();
#endif
  asm volatile("mov.b32 %0, 7;" : "+r"(a[0])::"memory");  // the bug: the first product may still read it
  wgmma_fence(d, a);
  wgmma(d, a, b_matrix(b));
  wgmma_commit();
  wgmma_wait();
  out[threadIdx.x] = d[0];
}
