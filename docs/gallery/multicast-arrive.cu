// One thread arrives at the mbarrier objects of both CTAs with one instruction of PTX 9.4. Its mask names only one.
#include "steps.cuh"

extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(int* out) {
  __shared__ uint64_t ready;
  if (threadIdx.x == 0) {
    init(&ready, 1);
    fence_init();
  }
  cluster_sync();
#ifdef FIXED
  uint32_t mask = 3;
#else
  uint32_t mask = 1;
#endif
  if (rank_in_cluster() == 0 && threadIdx.x == 0)
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.multicast::cluster::32b.b64 _, [%0], 1, %1;" ::"r"(shared(&ready)), "r"(mask) : "memory");
  wait_cluster(&ready, 0);  // the bug: CTA 1 waits for ever
  out[blockIdx.x * 32 + threadIdx.x] = mask;
  cluster_sync();
}
