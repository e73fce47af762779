__global__ void count(const unsigned char *data, int *counts, int64_t n) {
    __shared__ int own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int64_t i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        atomicAdd(&own[data[i]], 1);
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}
void solve(const unsigned char *data, int *counts, int64_t bytes, int64_t percent, cudaStream_t stream) {
    cudaMemsetAsync(counts, 0, 256 * sizeof(int), stream);
    count<<<16, 256, 0, stream>>>(data, counts, bytes);
}
