// The address of tensor memory is read without a barrier where there is no tile.
#include "steps.cuh"

extern "C" __global__ void kernel(int* out, int tiles) {
  __shared__ uint32_t address;
  if (threadIdx.x < 32) tmem_alloc(&address);  // the bug: another warp may read the word before
#ifdef FIXED
  __syncthreads();
#else
  if (tiles > 0) __syncthreads();
#endif
  uint32_t at = address;
  for (int t = 0; t < tiles; ++t) {
    tmem_store(at + ((threadIdx.x / 32) << 21), t);
    tmem_wait_store();
  }
  out[threadIdx.x] = at;
  __syncthreads();
  if (threadIdx.x < 32) tmem_free(at);
}
