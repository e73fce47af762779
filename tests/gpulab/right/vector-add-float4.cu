// Loads of 16 bytes, helpers in a namespace, and a second launch for the rest.
// exercise: vector-add
namespace {
struct Pair {
    float a, b;
    __device__ float sum() const {
        return a + b;
    }
};
__device__ __forceinline__ float plus(Pair p) {
    return p.sum();
}
__host__ __device__ inline int64_t up(int64_t n, int64_t by) {
    return (n + by - 1) / by;
}
__global__ void __launch_bounds__(256) add4(const float4 *a, const float4 *b, float4 *c, int64_t n) {
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < n) {
        float4 x = a[i], y = __ldg(&b[i]);
        c[i] = make_float4(plus({x.x, y.x}), x.y + y.y, x.z + y.z, x.w + y.w);
    }
}
__global__ void rest(const float *a, const float *b, float *c, int64_t from, int64_t n) {
    for (int64_t i = from + threadIdx.x; i < n; i += blockDim.x)
        c[i] = a[i] + b[i];
}
} // namespace
void solve(const float *a, const float *b, float *c, int64_t n, cudaStream_t stream) {
    const int threads = 256;
    if (n / 4)
        add4<<<up(n / 4, threads), threads, 0, stream>>>((const float4 *)a, reinterpret_cast<const float4 *>(b),
                                                         (float4 *)c, n / 4);
    rest<<<1, 32>>>(a, b, c, n / 4 * 4, n);
}
