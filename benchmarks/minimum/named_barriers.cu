// A producer warp and a consumer warp around two buffers: bar.arrive and bar.sync with numbers of threads.
// memmodel: launch {"grid": 1, "block": 64, "params": {"in": {"bytes": 640}, "out": {"bytes": 128}, "tiles": 5}}
__device__ void sync(int id) { asm volatile("bar.sync %0, 64;" ::"r"(id) : "memory"); }
__device__ void arrive(int id) { asm volatile("bar.arrive %0, 64;" ::"r"(id) : "memory"); }

extern "C" __global__ void named_barriers(const float* in, float* out, int tiles) {
  __shared__ float buffer[2][32];
  int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int t = 0; t < tiles; ++t) {
      if (t >= 2) sync(3 + t % 2);
      buffer[t % 2][lane] = in[t * 32 + lane];
      arrive(1 + t % 2);
    }
  } else {
    float sum = 0;
    for (int t = 0; t < tiles; ++t) {
      sync(1 + t % 2);
      sum += buffer[t % 2][31 - lane];
      if (t + 2 < tiles) arrive(3 + t % 2);
    }
    out[lane] = sum;
  }
}
