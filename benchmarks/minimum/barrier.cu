// Two warps exchange their tiles through shared memory, three times, at a cuda::barrier.
// memmodel: launch {"grid": 1, "block": 64, "params": {"x": {"bytes": 768}}}
#include <cuda/barrier>

extern "C" __global__ void exchange(float* x) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ float tile[64];
  if (threadIdx.x == 0) init(&bar, 64);
  __syncthreads();
  for (int round = 0; round < 3; ++round) {
    tile[threadIdx.x] = x[round * 64 + threadIdx.x];
    bar.arrive_and_wait();
    x[round * 64 + threadIdx.x] = tile[63 - threadIdx.x];
    bar.arrive_and_wait();
  }
}
