// CTA 0 fills the tiles of both CTAs by multicast, when both have said that theirs is free: with the scope of a CTA.
#include "steps.cuh"

extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const float* in, float* out) {
  __shared__ alignas(128) float tile[32];
  __shared__ uint64_t full, empty;
  int rank = rank_in_cluster();
  if (threadIdx.x == 0) {
    init(&full, 1);
    init(&empty, 64);
    expect(&full, sizeof(tile));
    fence_init();
    fence_proxy();
  }
  cluster_sync();
  tile[threadIdx.x] = rank;
  float mine = tile[threadIdx.x ^ 1] = rank;  // the bug: in the other CTA, it may come after the copy
  fence_proxy_all();
#ifdef FIXED
  arrive_cluster(peer(&empty, 0));
#else
  arrive_cta(peer(&empty, 0));
#endif
  if (rank == 0 && threadIdx.x == 0) {
    wait_cluster(&empty, 0);
    load_multicast(tile, in, sizeof(tile), &full, 3);
  }
  wait_cluster(&full, 0);
  out[32 * rank + threadIdx.x] = mine + tile[threadIdx.x];
  cluster_sync();
}
