// One warp writes tensor memory, another reads it after an mbarrier. Are the two tcgen05 fences needed around it?
#include "steps.cuh"

extern "C" __global__ void kernel(int* out) {
  __shared__ uint32_t address;
  __shared__ uint64_t full;
  if (threadIdx.x < 32) tmem_alloc(&address);
  if (threadIdx.x == 0) init(&full, 32);
  __syncthreads();
  uint32_t at = address;
  if (threadIdx.x < 32) {
    tmem_store(at, threadIdx.x);  // the bug, where the documents want the fences
    tmem_wait_store();
#ifdef FIXED
    tmem_before();
#endif
    arrive(&full);
  } else if (threadIdx.x >= 128) {
    wait(&full, 0);
#ifdef FIXED
    tmem_after();
#endif
    uint32_t word = tmem_load(at);
    tmem_wait_load();
    out[threadIdx.x & 31] = word;
  }
  __syncthreads();
  if (threadIdx.x < 32) tmem_free(at);
}
