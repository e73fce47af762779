// The exercise's hints, followed to the end: X outputs per thread.
constexpr int X = 16, BLOCK = 256;

__constant__ float taps[1024];

__global__ void __launch_bounds__(BLOCK) convolve(const float *x, float *out, int64_t n, int count) {
    int64_t i = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) * X;
    if (i >= n)
        return;
    float w[X], sum[X];
#pragma unroll
    for (int r = 0; r < X; r++) {
        w[r] = x[i + r];
        sum[r] = 0.0f;
    }
    for (int k = 0; k < count; k += X) {
        float next[X];
#pragma unroll
        for (int q = 0; q < X; q += 4) {
            float4 v = *(const float4 *)(x + i - k - X + q);
            next[q] = v.x, next[q + 1] = v.y, next[q + 2] = v.z, next[q + 3] = v.w;
        }
#pragma unroll
        for (int q = 0; q < X; q++) {
#pragma unroll
            for (int r = 0; r < X; r++)
                sum[r] = fmaf(taps[k + q], w[(r - q + X) % X], sum[r]);
            w[X - 1 - q] = next[X - 1 - q];
        }
    }
#pragma unroll
    for (int r = 0; r < X; r++)
        if (i + r < n)
            out[i + r] = sum[r];
}

void solve(const float *in, const float *h, float *out, int64_t n, int64_t count, cudaStream_t stream) {
    int padded = (int)((count + 31) / 32 * 32);
    cudaMemcpyToSymbolAsync(taps, h, padded * sizeof(float), 0, cudaMemcpyDeviceToDevice, stream);
    convolve<<<(unsigned)((n + BLOCK * X - 1) / (BLOCK * X)), BLOCK, 0, stream>>>(in + padded, out, n, padded);
}
