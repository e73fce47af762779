__global__ void write_ids(int *ids) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    ids[2 * i] = blockIdx.x;
    ids[2 * i + 1] = threadIdx.x;
}

void solve(int *ids, int64_t blocks, int64_t threads, cudaStream_t stream) {
    write_ids<<<(unsigned)blocks, (unsigned)threads, 0, stream>>>(ids);
}
