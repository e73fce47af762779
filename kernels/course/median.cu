/* The median of three through dynamic shared memory: `each` elements a block and one on either side. */
#include "course.cuh"

using namespace course;

namespace {

enum { THREADS = 1024, SMALL = 1024, LARGE = 16384 };

__device__ __forceinline__ void filter(const float *in, float *out, int64_t n, int each) {
    extern __shared__ float tile[];
    int64_t first = (int64_t)blockIdx.x * each;
    for (int i = threadIdx.x; i < each + 2; i += THREADS) {
        int64_t from = first + i - 1;
        if (from >= 0 && from < n)
            tile[i] = in[from];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < each && first + i < n; i += THREADS) {
        float a = tile[i], b = tile[i + 1], c = tile[i + 2];
        bool end = first + i == 0 || first + i == n - 1;
        out[first + i] = end ? b : fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
    }
}

__global__ void __launch_bounds__(THREADS) plain(const float *in, float *out, int64_t n, int each) {
    filter(in, out, n, each);
}

/* A kernel of its own, so that its wish for the carve-out is its own. */
__global__ void __launch_bounds__(THREADS) carved(const float *in, float *out, int64_t n, int each) {
    filter(in, out, n, each);
}

typedef void kernel(const float *, float *, int64_t, int);

size_t bytes_of(int each) {
    return (size_t)(each + 2) * sizeof(float);
}

int launch(kernel *k, int each, const gc_lab_run *run) {
    k<<<pieces(run->size[0], each), THREADS, bytes_of(each), stream(run)>>>(buffer<const float>(run, 0),
                                                                            buffer<float>(run, 1), run->size[0], each);
    return cudaGetLastError();
}

} // namespace

LAB_LAUNCHER(gck_median_dynamic) {
    return launch(plain, SMALL, run);
}

LAB_LAUNCHER(gck_median_large) {
    if (cudaFuncSetAttribute(plain, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes_of(LARGE))) {
        (void)cudaGetLastError();
        return LAB_CANNOT;
    }
    return launch(plain, LARGE, run);
}

LAB_LAUNCHER(gck_median_carved) {
    cudaError_t failed = cudaFuncSetAttribute(carved, cudaFuncAttributePreferredSharedMemoryCarveout, 10);
    return failed ? failed : launch(carved, SMALL, run);
}

LAB_FACTS(gck_median_facts) {
    return facts_of(plain, THREADS, bytes_of(run->parameter == 1 ? LARGE : SMALL), facts);
}
