constexpr int T = 32;

__global__ void multiply(const float *a, const float *b, float *c, int64_t M, int64_t N, int64_t K) {
    __shared__ float as[T][T], bs[T][T];
    int x = threadIdx.x, y = threadIdx.y;
    int64_t n = (int64_t)blockIdx.x * T + x, m = (int64_t)blockIdx.y * T + y;
    float sum = 0.0f;
    for (int64_t k = 0; k < K; k += T) {
        as[y][x] = m < M && k + x < K ? a[m * K + k + x] : 0.0f;
        bs[y][x] = k + y < K && n < N ? b[(k + y) * N + n] : 0.0f;
        __syncthreads();
        for (int i = 0; i < T; i++)
            sum = fmaf(as[y][i], bs[i][x], sum);
        __syncthreads();
    }
    if (m < M && n < N)
        c[m * N + n] = sum;
}

void solve(const float *a, const float *b, float *c, int64_t M, int64_t N, int64_t K, cudaStream_t stream) {
    dim3 grid((unsigned)((N + T - 1) / T), (unsigned)((M + T - 1) / T));
    multiply<<<grid, dim3(T, T), 0, stream>>>(a, b, c, M, N, K);
}
