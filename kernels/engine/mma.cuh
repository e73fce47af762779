/* Products of small matrices of 16-bit samples on tensor cores, from architecture 80 on. */
#ifndef GC_KERNELS_MMA_CUH
#define GC_KERNELS_MMA_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>

/* c += a b for 16 x 16 by 16 x 8 samples, the sums in floats. */
template <typename Sample>
__device__ __forceinline__ void multiply_add(float *c, const unsigned *a, unsigned b0, unsigned b1) {
#if __CUDA_ARCH__ >= 800
    if constexpr (std::is_same<Sample, __half>::value)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

#endif
