// Three stages of cp.async groups: every thread loads, the block reads what the others loaded.
// memmodel: launch {"grid": 1, "block": 64, "params": {"in": {"bytes": 5120}, "out": {"bytes": 256}, "tiles": 5}}
#include <cuda_pipeline.h>

extern "C" __global__ void cp_async(const float4* in, float* out, int tiles) {
  __shared__ float4 stage[3][64];
  auto load = [&](int t) {
    if (t < tiles) __pipeline_memcpy_async(&stage[t % 3][threadIdx.x], &in[t * 64 + threadIdx.x], 16);
    __pipeline_commit();
  };
  load(0);
  load(1);
  float sum = 0;
  for (int t = 0; t < tiles; ++t) {
    __pipeline_wait_prior(1);
    __syncthreads();
    load(t + 2);
    sum += stage[t % 3][63 - threadIdx.x].x;
  }
  out[threadIdx.x] = sum;
}
