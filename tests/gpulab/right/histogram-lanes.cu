__global__ void count(const unsigned char *data, int *counts, int64_t n) {
    __shared__ int column[256][32];
    for (int i = threadIdx.x; i < 256 * 32; i += 256)
        column[i / 32][i % 32] = 0;
    __syncthreads();
    for (int64_t i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        atomicAdd(&column[data[i]][threadIdx.x % 32], 1);
    __syncthreads();
    int sum = 0;
    for (int k = 0; k < 32; k++)
        sum += column[threadIdx.x][(threadIdx.x + k) % 32];
    atomicAdd(&counts[threadIdx.x], sum);
}
void solve(const unsigned char *data, int *counts, int64_t bytes, int64_t percent, cudaStream_t stream) {
    cudaMemsetAsync(counts, 0, 256 * sizeof(int), stream);
    count<<<16, 256, 0, stream>>>(data, counts, bytes);
}
