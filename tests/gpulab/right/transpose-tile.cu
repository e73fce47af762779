__global__ void transpose(const float *in, float *out, int64_t rows, int64_t columns) {
    __shared__ float tile[32][33];
    int64_t r0 = (int64_t)blockIdx.y * 32, c0 = (int64_t)blockIdx.x * 32;
    for (int y = threadIdx.y; y < 32; y += 8)
        if (r0 + y < rows && c0 + threadIdx.x < columns)
            tile[y][threadIdx.x] = in[(r0 + y) * columns + c0 + threadIdx.x];
    __syncthreads();
    for (int y = threadIdx.y; y < 32; y += 8)
        if (c0 + y < columns && r0 + threadIdx.x < rows)
            out[(c0 + y) * rows + r0 + threadIdx.x] = tile[threadIdx.x][y];
}

void solve(const float *in, float *out, int64_t rows, int64_t columns, cudaStream_t stream) {
    dim3 grid((unsigned)((columns + 31) / 32), (unsigned)((rows + 31) / 32));
    transpose<<<grid, dim3(32, 8), 0, stream>>>(in, out, rows, columns);
}
