/* The copy of peak_rates.cu with programmatic dependent launch: the lower bound of a convolution that is launched
 * early.
 *
 *      to[i] = from[i]      16 bytes read and written per thread */
#include "launch.cuh"

namespace {

enum { BLOCK = 256 };

__global__ void __launch_bounds__(BLOCK) copy(const float4 *from, float4 *to, int64_t n) {
    const int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    pdl_trigger();
    pdl_wait();
    if (i < n)
        to[i] = from[i];
}

} // namespace

cudaError_t gck_peak_copy_early(const float *from, float *to, int64_t n, cudaStream_t stream) {
    const int64_t quads = n / 4;
    return launch_dependent(copy, dim3((unsigned)((quads + BLOCK - 1) / BLOCK)), BLOCK, 0, stream, (const float4 *)from,
                            (float4 *)to, quads);
}
