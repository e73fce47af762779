// A loop has no end.
// exercise: vector-add-stride
// told: endless loop

__global__ void add(const float *a, const float *b, volatile float *c, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < n; i += 0)
        c[i] = a[i] + b[i];
}

void solve(const float *a, const float *b, float *c, int64_t n, cudaStream_t stream) {
    add<<<(unsigned)((n + 255) / 256), 256, 0, stream>>>(a, b, c, n);
}
