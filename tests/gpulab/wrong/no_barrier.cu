// Shared memory is read before the other threads have written it.
// exercise: convolution-tile
// told: shared memory without __syncthreads|A barrier is missing

__global__ void convolve(const float *x, const float *h, float *out, int64_t n, int64_t taps) {
    __shared__ float window[256 + 1024];
    int64_t first = (int64_t)blockIdx.x * 256 - taps, i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    for (int64_t w = threadIdx.x; w < 256 + taps; w += 256)
        if (first + w < n)
            window[w] = x[first + w];
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int64_t k = 0; k < taps; k++)
        sum = fmaf(h[k], window[threadIdx.x + taps - k], sum);
    out[i] = sum;
}

void solve(const float *in, const float *h, float *out, int64_t n, int64_t taps, cudaStream_t stream) {
    const float *x = in + (taps + 31) / 32 * 32;
    convolve<<<(unsigned)((n + 255) / 256), 256, 0, stream>>>(x, h, out, n, taps);
}
