/* Parts of a softmax whose scores are distributed over a warp as tensor cores leave them: four lanes share a row. */
#ifndef GC_KERNELS_DEVICE_SOFTMAX_CUH
#define GC_KERNELS_DEVICE_SOFTMAX_CUH

#include <cuda_fp16.h>

namespace softmax {

/* Returns 2^x by the hardware approximation: error up to two units in the last place, subnormal results are zero. */
static __device__ __forceinline__ float power_of_two(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Returns the maximum (`largest`) or the sum over the four lanes of a row. */
static __device__ __forceinline__ float of_row(float v, bool largest) {
#pragma unroll
    for (int apart = 1; apart < 4; apart *= 2) {
        float other = __shfl_xor_sync(0xffffffffu, v, apart);
        v = largest ? fmaxf(v, other) : v + other;
    }
    return v;
}

/* Packs two adjacent numbers of a row into the register format of tensor cores. */
static __device__ __forceinline__ unsigned pack(float low, float high) {
    __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<unsigned *>(&both);
}

} // namespace softmax

#endif
