__global__ void add(const float *a, const float *b, float *c, int64_t n) {
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        c[i] = a[i] + b[i];
}

void solve(const float *a, const float *b, float *c, int64_t n, cudaStream_t stream) {
    int processors = 1;
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    add<<<8 * processors, 256, 0, stream>>>(a, b, c, n);
}
