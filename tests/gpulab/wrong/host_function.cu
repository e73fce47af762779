// A kernel calls a function of the host.
// exercise: vector-add
// told: write __device__ before that function|Write __device__ before that function

float plus(float x, float y) {
    return x + y;
}

__global__ void add(const float *a, const float *b, float *c, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = plus(a[i], b[i]);
}

void solve(const float *a, const float *b, float *c, int64_t n, cudaStream_t stream) {
    add<<<(unsigned)((n + 255) / 256), 256, 0, stream>>>(a, b, c, n);
}
