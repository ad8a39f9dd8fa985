// Tensor memory is freed while a tcgen05.ld of it may still run.
#include "steps.cuh"

extern "C" __global__ void __launch_bounds__(32) kernel(int* out) {
  __shared__ uint32_t address;
  tmem_alloc(&address);
  __syncthreads();
  uint32_t at = address;
  tmem_store(at, threadIdx.x);
  tmem_wait_store();
  uint32_t word = tmem_load(at);  // the bug: nobody waits for it
#ifdef FIXED
  tmem_wait_load();
#endif
  tmem_free(at);
#ifndef FIXED
  tmem_wait_load();
#endif
  out[threadIdx.x] = word;
}
