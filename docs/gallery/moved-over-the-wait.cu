// The wait has no "memory" clobber: the compiler may move a load in front of it, and does.
#include "steps.cuh"

STEP void weak_wait(uint64_t* bar, int parity) {
  uint32_t done = 0;
  while (!done)
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(shared(bar)), "r"(parity));
}

extern "C" __global__ void kernel(const float* in, float* out) {
  __shared__ alignas(128) float tile[32];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    init(&full, 1);
    fence_proxy();
    expect(&full, sizeof(tile));
    load(tile, in, sizeof(tile), &full);
  }
  __syncthreads();
  const float* from = &tile[threadIdx.x];
#ifdef FIXED
  wait(&full, 0);
  float value = *from;
#else
  float value = *from;  // the bug: where the compiler puts the load
  weak_wait(&full, 0);
#endif
  out[threadIdx.x] = value;
}
