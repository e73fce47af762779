__global__ void convolve(const float *x, const float *h, float *out, int64_t n, int64_t taps) {
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int64_t k = 0; k < taps; k++)
        sum = fmaf(h[k], x[i - k], sum);
    out[i] = sum;
}

void solve(const float *in, const float *h, float *out, int64_t n, int64_t taps, cudaStream_t stream) {
    const float *x = in + (taps + 31) / 32 * 32;
    convolve<<<(unsigned)((n + 255) / 256), 256, 0, stream>>>(x, h, out, n, taps);
}
