// Each block reverses 64 numbers.
extern "C" __global__ void reverse(const float* in, float* out) {
  __shared__ float tile[64];
  int i = threadIdx.x;
  int block = 64 * blockIdx.x;
  tile[i] = in[block + i];
  __syncthreads();
  out[block + i] = tile[63 - i];
}
