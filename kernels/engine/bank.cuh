/* The twist of the right-angle transforms in filter_bank.cu and matrix_bank.cu. */
#ifndef GC_KERNELS_BANK_CUH
#define GC_KERNELS_BANK_CUH

#include "transform.cuh"

namespace {

/* Multiplies v[j], index n = t + j N / 16, by the twist e^(i pi n / 2 N), or by its conjugate if Inverse. */
template <int N, bool Inverse> __device__ __forceinline__ void twist(float2 *v, int t) {
    float2 base;
    sincospif((float)t * (0.5f / N), &base.y, &base.x);
#pragma unroll
    for (int j = 0; j < 16; j++) {
        float2 step; /* e^(i pi j / 32): a compile-time constant */
        step.x = cosf(0.09817477042468103f * (float)j);
        step.y = sinf(0.09817477042468103f * (float)j);
        float2 w = mul(base, step);
        v[j] = Inverse ? mul_conj(v[j], w) : mul(v[j], w);
    }
}

} // namespace

#endif
