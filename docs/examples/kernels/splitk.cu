// Split-k: CTAs of one tile add their partial sums to it one after the other, under a lock.
// BROKEN: the lock is given back without a fence before it.
extern "C" __global__ void splitk(const float* partial, float* tile, int* lock) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
  }
  __syncthreads();
  int at = threadIdx.x;
  tile[at] += partial[blockIdx.x * blockDim.x + at];
  __syncthreads();
  if (threadIdx.x == 0) {
#ifndef BROKEN
    __threadfence();
#endif
    atomicExch(lock, 0);
  }
}
