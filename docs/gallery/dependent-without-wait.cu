// A grouped product may begin before the kernel has ended that writes its sizes (programmatic dependent launch), and reads
// them without a wait.
__global__ void sizes(int* k) {
  asm volatile("griddepcontrol.launch_dependents;");
  k[threadIdx.x] = 64;
}

__global__ void grouped(const int* k, float* out) {
#ifdef FIXED
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  out[32 * blockIdx.x + threadIdx.x] = 2.0f * k[blockIdx.x];  // the bug
}
