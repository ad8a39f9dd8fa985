// Tiles are transposed by CUB between loads and stores, and shared memory is used again in a loop.
// memmodel: launch {"grid": 1, "block": 64, "params": {"x": {"bytes": 2048}, "rounds": 2}}
#include <cub/block/block_exchange.cuh>

extern "C" __global__ void transpose(int* x, int rounds) {
  using Exchange = cub::BlockExchange<int, 64, 4>;
  __shared__ typename Exchange::TempStorage temp;
  for (int round = 0; round < rounds; ++round) {
    int items[4];
    for (int k = 0; k < 4; ++k) items[k] = x[round * 256 + threadIdx.x * 4 + k];
    Exchange(temp).BlockedToStriped(items);
    for (int k = 0; k < 4; ++k) x[round * 256 + k * 64 + threadIdx.x] = items[k];
    __syncthreads();
  }
}
