__global__ void blur(const float *in, float *out, int64_t width, int64_t height) {
    int64_t x = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, y = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    float sum = 0.0f;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            int64_t column = min(max(x + dx, (int64_t)0), width - 1);
            int64_t row = min(max(y + dy, (int64_t)0), height - 1);
            sum += (dx == 0 ? 2 : 1) * (dy == 0 ? 2 : 1) * in[row * width + column];
        }
    out[y * width + x] = sum / 16;
}

void solve(const float *in, float *out, int64_t width, int64_t height, cudaStream_t stream) {
    dim3 block(32, 8), grid((unsigned)((width + 31) / 32), (unsigned)((height + 7) / 8));
    blur<<<grid, block, 0, stream>>>(in, out, width, height);
}
