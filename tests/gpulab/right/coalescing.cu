__global__ void twice(const float *in, float *out, int64_t rows, int64_t columns) {
    int64_t c = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    if (r < rows && c < columns)
        out[r * columns + c] = 2 * in[r * columns + c];
}

void solve(const float *in, float *out, int64_t rows, int64_t columns, cudaStream_t stream) {
    dim3 block(32, 8), grid((unsigned)((columns + 31) / 32), (unsigned)((rows + 7) / 8));
    twice<<<grid, block, 0, stream>>>(in, out, rows, columns);
}
