// The kernel is called without a grid.
// exercise: vector-add
// told: kernel<<<blocks, threads, 0, stream>>>

__global__ void add(const float *a, const float *b, float *c, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

void solve(const float *a, const float *b, float *c, int64_t n, cudaStream_t stream) {
    add(a, b, c, n);
}
