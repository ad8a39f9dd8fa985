// Each block reverses 64 numbers; TMA stores them.
extern "C" __global__ void reverse(const float* in, float* out) {
  __shared__ alignas(16) float tile[64];
  int i = threadIdx.x;
  int block = 64 * blockIdx.x;
  tile[63 - i] = in[block + i];
  __syncthreads();
  if (i == 0) {
    unsigned source = __cvta_generic_to_shared(tile);
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(out + block), "r"(source) : "memory");
    asm volatile("cp.async.bulk.commit_group;");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
