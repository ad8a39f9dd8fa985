// A CTA leaves while its neighbour may still arrive at an mbarrier object in its shared memory.
#include "steps.cuh"

extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(int* out) {
  __shared__ uint64_t ready;
  if (threadIdx.x == 0) {
    init(&ready, 1);
    fence_init();
  }
  cluster_sync();
  int rank = rank_in_cluster();
  if (rank == 0) {
    if (threadIdx.x == 0) arrive_cluster(peer(&ready, 1));
  } else {
    if (threadIdx.x == 0) arrive_cluster(peer(&ready, 0));  // the bug: CTA 0 may be gone
    wait_cluster(&ready, 0);
  }
  out[blockIdx.x * 32 + threadIdx.x] = rank;
#ifdef FIXED
  cluster_sync();
#endif
}
