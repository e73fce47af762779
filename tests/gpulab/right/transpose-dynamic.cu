// Rows of dynamic shared memory, and a barrier that also counts.
// exercise: transpose-tile
__global__ void t(const float *in, float *out, int64_t rows, int64_t columns) {
    extern __shared__ float tile[][33];
    int64_t r0 = (int64_t)blockIdx.y * 32, c0 = (int64_t)blockIdx.x * 32;
    for (int y = threadIdx.y; y < 32; y += blockDim.y) {
        int64_t r = r0 + y, c = c0 + threadIdx.x;
        tile[y][threadIdx.x] = r < rows && c < columns ? in[r * columns + c] : 0.f;
        __syncwarp();
    }
    if (__syncthreads_or(threadIdx.x == 77))
        return;
    for (int y = threadIdx.y; y < 32; y += blockDim.y)
        if (c0 + y < columns && r0 + threadIdx.x < rows)
            out[(c0 + y) * rows + r0 + threadIdx.x] = tile[threadIdx.x][y];
}
void solve(const float *in, float *out, int64_t rows, int64_t columns, cudaStream_t stream) {
    t<<<dim3((columns + 31) / 32, (rows + 31) / 32), dim3(32, 8), 32 * 33 * sizeof(float), stream>>>(in, out, rows,
                                                                                                     columns);
}
