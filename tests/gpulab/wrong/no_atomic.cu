// All threads add to one sum without an atomic operation.
// exercise: reduction
// told: atomic

__global__ void sum_all(const float *a, float *sum, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        *sum += a[i];
}

void solve(const float *a, float *sum, int64_t n, cudaStream_t stream) {
    cudaMemsetAsync(sum, 0, sizeof *sum, stream);
    sum_all<<<(unsigned)((n + 255) / 256), 256, 0, stream>>>(a, sum, n);
}
