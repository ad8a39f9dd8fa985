// Data is handed over by a volatile flag: volatile is relaxed, and orders nothing.
#include "steps.cuh"

extern "C" __global__ void kernel(int* data, volatile int* flag, int* out) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    *data = 42;  // the bug: not ordered before the flag
#ifdef FIXED
    __threadfence_system();
#endif
    *flag = 1;
  } else {
    while (*flag == 0) {}
#ifdef FIXED
    __threadfence_system();
#endif
    *out = *data;
  }
}
