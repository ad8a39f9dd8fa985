// A CTA stores into the shared memory of its neighbour before anything has shown that the neighbour runs.
#include "steps.cuh"

STEP void store_there(uint32_t at, int value) { asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(at), "r"(value) : "memory"); }

extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(int* out) {
  __shared__ int slots[32];
  int rank = rank_in_cluster();
#ifdef FIXED
  cluster_sync();
#endif
  store_there(peer(&slots[threadIdx.x], rank ^ 1), rank);  // the bug: it may not have started
  cluster_sync();
  out[blockIdx.x * 32 + threadIdx.x] = slots[threadIdx.x];
}
