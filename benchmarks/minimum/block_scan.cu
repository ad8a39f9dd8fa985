// A prefix sum and then a sum with CUB, in the same temporary memory.
// memmodel: launch {"grid": 1, "block": 128, "params": {"x": {"bytes": 512}, "out": {"bytes": 516}}}
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

extern "C" __global__ void scan_and_sum(const int* x, int* out) {
  using Scan = cub::BlockScan<int, 128>;
  using Reduce = cub::BlockReduce<int, 128>;
  __shared__ union { typename Scan::TempStorage scan; typename Reduce::TempStorage reduce; } temp;
  int value = x[threadIdx.x], before;
  Scan(temp.scan).ExclusiveSum(value, before);
  __syncthreads();
  int sum = Reduce(temp.reduce).Sum(value);
  out[threadIdx.x] = before;
  if (threadIdx.x == 0) out[128] = sum;
}
