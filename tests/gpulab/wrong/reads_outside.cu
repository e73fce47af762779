// The last thread reads one element beyond the input; the result is right.
// exercise: vector-add
// told: Invalid __global__ read|reads a[1], but a has 1 element

__global__ void add(const float *a, const float *b, float *c, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i] + (a[i + 1] > 1e30f ? 0.0f : 0.0f * b[i]);
}

void solve(const float *a, const float *b, float *c, int64_t n, cudaStream_t stream) {
    add<<<(unsigned)((n + 255) / 256), 256, 0, stream>>>(a, b, c, n);
}
