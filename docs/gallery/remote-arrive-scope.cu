// A CTA writes into its neighbour's shared memory and arrives there, with the scope of its own CTA.
#include "steps.cuh"

extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(int* out) {
  __shared__ int tile[32];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    init(&full, 32);
    fence_init();
  }
  cluster_sync();
  int other = rank_in_cluster() ^ 1;
  asm volatile("st.shared::cluster.s32 [%0], %1;" ::"r"(peer(&tile[threadIdx.x], other)), "r"(int(threadIdx.x)) : "memory");  // the bug: not seen there
#ifdef FIXED
  arrive_cluster(peer(&full, other));
#else
  arrive_cta(peer(&full, other));
#endif
  wait_cluster(&full, 0);
  out[blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x ^ 1];
  cluster_sync();
}
