// Three blocks in a chain: each waits for a flag of the block before it, and hands on a sum.
// memmodel: launch {"grid": 3, "block": 64, "params": {"x": {"bytes": 768}, "sum": {"bytes": 16}, "flag": {"bytes": 16, "init": "zero"}}}
#include <cuda/atomic>

extern "C" __global__ void chain(const int* x, int* sum, int* flag) {
  __shared__ int mine[2];
  int lanes = __reduce_add_sync(~0u, x[blockIdx.x * 64 + threadIdx.x]);
  if (threadIdx.x % 32 == 0) mine[threadIdx.x / 32] = lanes;
  __syncthreads();
  if (threadIdx.x != 0) return;
  int before = 0;
  if (blockIdx.x > 0) {
    cuda::atomic_ref<int, cuda::thread_scope_device> ready(flag[blockIdx.x - 1]);
    while (ready.load(cuda::memory_order_acquire) == 0) {
    }
    before = sum[blockIdx.x - 1];
  }
  sum[blockIdx.x] = before + mine[0] + mine[1];
  cuda::atomic_ref<int, cuda::thread_scope_device>(flag[blockIdx.x]).store(1, cuda::memory_order_release);
}
