// A chained scan: a block waits for the flag of its predecessor, which is set and read without order.
#include "steps.cuh"

extern "C" __global__ void kernel(int* sums, int* flags, int* out) {
  if (threadIdx.x == 0) {
    int block = blockIdx.x, sum = block;
    if (block > 0) {
#ifdef FIXED
      while (get_acquire(&flags[block - 1]) == 0) {}
#else
      while (get_relaxed(&flags[block - 1]) == 0) {}
#endif
      sum += sums[block - 1];
    }
    sums[block] = sum;  // the bug: the next block may read what was there before
#ifdef FIXED
    set_release(&flags[block], 1);
#else
    set_relaxed(&flags[block], 1);
#endif
    out[block] = sum;
  }
}
