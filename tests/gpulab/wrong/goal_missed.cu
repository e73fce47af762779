// Right, but without the tile that the exercise is about: the writes are far apart.
// exercise: transpose-tile
// told: has not reached the goal yet, "padded tile"
__global__ void transpose(const float *in, float *out, int64_t rows, int64_t columns) {
    int64_t c = (int64_t)blockIdx.x * 32 + threadIdx.x, r = (int64_t)blockIdx.y * 8 + threadIdx.y;
    if (r < rows && c < columns)
        out[c * rows + r] = in[r * columns + c];
}

void solve(const float *in, float *out, int64_t rows, int64_t columns, cudaStream_t stream) {
    dim3 grid((unsigned)((columns + 31) / 32), (unsigned)((rows + 7) / 8));
    transpose<<<grid, dim3(32, 8), 0, stream>>>(in, out, rows, columns);
}
