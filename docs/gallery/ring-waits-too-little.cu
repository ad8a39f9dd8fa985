// A ring of two stages is copied out by TMA. A stage is written again when the copy before the last one has read it.
#include "steps.cuh"

extern "C" __global__ void __launch_bounds__(32) kernel(int* out, int rounds) {
  __shared__ alignas(128) int stage[2][32];
  for (int r = 0; r < rounds; ++r) {
#ifdef FIXED
    if (threadIdx.x == 0) wait_read<1>();
#else
    if (threadIdx.x == 0) wait_read<2>();
#endif
    __syncwarp();
    stage[r % 2][threadIdx.x] = r;  // the bug: the copy of two rounds ago may still read it
    fence_proxy();
    __syncwarp();
    if (threadIdx.x == 0) {
      store(out + 32 * r, stage[r % 2], 128);
      commit();
    }
  }
  if (threadIdx.x == 0) wait_done<0>();
}
