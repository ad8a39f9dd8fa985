// Two blocks enter a section if the other has not asked. A sequentially consistent store is compiled to a relaxed one
// with the fence before it, and not behind it: both may enter.
#include "steps.cuh"

extern "C" __global__ void kernel(int* asked, int* shared_word) {
  if (threadIdx.x != 0) return;
  int me = blockIdx.x;
#ifndef FIXED
  asm volatile("fence.sc.gpu;" ::: "memory");
#endif
  set_relaxed(&asked[me], 1);
#ifdef FIXED
  asm volatile("fence.sc.gpu;" ::: "memory");
#endif
  if (get_relaxed(&asked[1 - me]) == 0) *shared_word = me;  // the bug: both are here
}
