// Without tiles, the consumer leaves out its loop and with it an arrival that the producer waits for.
#include "steps.cuh"

extern "C" __global__ void kernel(int* out, int tiles) {
  if (threadIdx.x < 32) {
    barrier(2, 64);  // the bug: with no tile, nobody else arrives
    out[threadIdx.x] = tiles;
  } else {
#ifdef FIXED
    barrier_arrive(2, 64);
#else
    if (tiles > 0) barrier_arrive(2, 64);
#endif
  }
}
