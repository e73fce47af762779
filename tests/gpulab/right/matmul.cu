__global__ void multiply(const float *a, const float *b, float *c, int64_t M, int64_t N, int64_t K) {
    int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, m = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    if (m >= M || n >= N)
        return;
    float sum = 0.0f;
    for (int64_t k = 0; k < K; k++)
        sum += a[m * K + k] * b[k * N + n];
    c[m * N + n] = sum;
}

void solve(const float *a, const float *b, float *c, int64_t M, int64_t N, int64_t K, cudaStream_t stream) {
    dim3 grid((unsigned)((N + 31) / 32), (unsigned)((M + 7) / 8));
    multiply<<<grid, dim3(32, 8), 0, stream>>>(a, b, c, M, N, K);
}
