// Tiles of 256 by Hillis and Steele; the sums of the tiles are scanned by the same kernel, level by level.
__global__ void tile_scan(const int *a, int *out, int *sums, int64_t n) {
    __shared__ int s[2][256];
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    int t = threadIdx.x, from = 0;
    s[0][t] = i < n ? a[i] : 0;
    __syncthreads();
    for (int by = 1; by < 256; by *= 2) {
        s[1 - from][t] = s[from][t] + (t >= by ? s[from][t - by] : 0);
        from = 1 - from;
        __syncthreads();
    }
    if (i < n)
        out[i] = s[from][t];
    if (t == 255)
        sums[blockIdx.x] = s[from][t];
}
__global__ void add(int *out, const int *sums, int64_t n) {
    int64_t i = (int64_t)(blockIdx.x + 1) * 256 + threadIdx.x;
    if (i < n)
        out[i] += sums[blockIdx.x];
}
static void scan(const int *a, int *out, int *sums, int64_t n, cudaStream_t stream) {
    unsigned tiles = (unsigned)((n + 255) / 256);
    tile_scan<<<tiles, 256, 0, stream>>>(a, out, sums, n);
    if (tiles > 1) {
        scan(sums, sums, sums + tiles, tiles, stream);
        add<<<tiles - 1, 256, 0, stream>>>(out, sums, n);
    }
}
void solve(const int *a, int *out, int64_t elements, cudaStream_t stream) {
    int *sums;
    cudaMallocAsync(&sums, (elements / 128 + 64) * sizeof(int), stream);
    scan(a, out, sums, elements, stream);
    cudaFreeAsync(sums, stream);
}
