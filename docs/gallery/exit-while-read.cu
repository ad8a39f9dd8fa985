// A value goes to all CTAs of a cluster from the shared memory of one of them, which leaves while the others read it.
#include "steps.cuh"

STEP int load_there(uint32_t at) {
  int value;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(at) : "memory");
  return value;
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(int* out) {
  __shared__ int told;
  if (rank_in_cluster() == 0 && threadIdx.x == 0) told = atomicAdd(out, 1);
  cluster_sync();
  int value = load_there(peer(&told, 0));  // the bug: CTA 0 may be gone
  out[1 + blockIdx.x * 32 + threadIdx.x] = value;
#ifdef FIXED
  cluster_sync();
#endif
}
