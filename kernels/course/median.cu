/* The kernels of module median: `outputs` outputs per block, computed from dynamic shared memory, which also
 * contains one more input on each side. */
#include "course.cuh"

using namespace course;

namespace {

enum { THREADS = 1024, SMALL_OUTPUTS = 1024, LARGE_OUTPUTS = 16384 };

__device__ __forceinline__ void filter(const float *in, float *out, int64_t n, int outputs) {
    extern __shared__ float tile[];
    int64_t first = (int64_t)blockIdx.x * outputs;
    for (int i = threadIdx.x; i < outputs + 2; i += THREADS) {
        int64_t source = first + i - 1;
        if (source >= 0 && source < n)
            tile[i] = in[source];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < outputs && first + i < n; i += THREADS) {
        float a = tile[i], b = tile[i + 1], c = tile[i + 2];
        bool at_border = first + i == 0 || first + i == n - 1;
        out[first + i] = at_border ? b : fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
    }
}

__global__ void __launch_bounds__(THREADS) filter_plain(const float *in, float *out, int64_t n, int outputs) {
    filter(in, out, n, outputs);
}

/* The same filter as a second kernel, so that the carve-out set for it does not apply to filter_plain. */
__global__ void __launch_bounds__(THREADS) filter_carveout(const float *in, float *out, int64_t n, int outputs) {
    filter(in, out, n, outputs);
}

typedef void kernel(const float *, float *, int64_t, int);

size_t shared_bytes(int outputs) {
    return (size_t)(outputs + 2) * sizeof(float);
}

int launch(kernel *k, int outputs, const gc_lab_run *run) {
    k<<<ceil_div(run->size[0], outputs), THREADS, shared_bytes(outputs), stream(run)>>>(
        buffer<const float>(run, 0), buffer<float>(run, 1), run->size[0], outputs);
    return cudaGetLastError();
}

} // namespace

LAB_LAUNCHER(gck_median_dynamic) {
    return launch(filter_plain, SMALL_OUTPUTS, run);
}

LAB_LAUNCHER(gck_median_large) {
    if (cudaFuncSetAttribute(filter_plain, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             (int)shared_bytes(LARGE_OUTPUTS))) {
        (void)cudaGetLastError();
        return LAB_CANNOT;
    }
    return launch(filter_plain, LARGE_OUTPUTS, run);
}

LAB_LAUNCHER(gck_median_carveout) {
    cudaError_t err = cudaFuncSetAttribute(filter_carveout, cudaFuncAttributePreferredSharedMemoryCarveout, 10);
    return err ? err : launch(filter_carveout, SMALL_OUTPUTS, run);
}

LAB_FACTS(gck_median_facts) {
    return kernel_facts(filter_plain, THREADS, shared_bytes(run->parameter == 1 ? LARGE_OUTPUTS : SMALL_OUTPUTS),
                        facts);
}
