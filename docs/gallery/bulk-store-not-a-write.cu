// st.bulk clears a buffer that is then used without a barrier: it writes, though no operand is written back.
#include "steps.cuh"

extern "C" __global__ void kernel(int* out) {
  __shared__ alignas(16) int words[64];
  if (threadIdx.x == 0)
    asm volatile("st.bulk.weak.shared::cta [%0], %1, 0;" ::"r"(shared(words)), "l"(256ul) : "memory");  // the bug
#ifdef FIXED
  __syncthreads();
#endif
  words[threadIdx.x] += threadIdx.x;
  out[threadIdx.x] = words[threadIdx.x];
}
