// Chained scan: every CTA waits for the sum of the one before it and hands its own on (decoupled look-back, depth one).
// BROKEN: the flag is set without a fence after the sum.
extern "C" __global__ void scan(const int* in, int* out, int* sums, int* flags) {
  __shared__ int before;
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  int sum = in[at];
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x == 0) {
    int given = 0;
    if (blockIdx.x) {
      while (atomicAdd(&flags[blockIdx.x - 1], 0) == 0) {
      }
      __threadfence();
      given = sums[blockIdx.x - 1];
    }
    sums[blockIdx.x] = given + sum;
#ifndef BROKEN
    __threadfence();
#endif
    atomicExch(&flags[blockIdx.x], 1);
    before = given;
  }
  __syncthreads();
  out[at] = before + in[at];
}
