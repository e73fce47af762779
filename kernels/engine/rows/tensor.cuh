/*
 * Layouts and instructions of rows/tensor.cu: 16 x 16 matrices of split numbers on tensor cores.
 *
 * A number in floats is split into two halves, hi + lo, of 11 bits each. A unit of 16 bytes in shared memory holds the
 * real parts, the imaginary parts, and the same of the second halves, of two points that are adjacent in the next
 * product. This is the operand of a product with K = 16, of which 8 are real parts and 8 are imaginary parts.
 */
#ifndef GC_KERNELS_TENSOR_CUH
#define GC_KERNELS_TENSOR_CUH

#include <cuda_fp16.h>
#include <stdint.h>

/* Returns two floats as halves, the first one in the low bits. */
__device__ __forceinline__ unsigned pack_halves(float low, float high) {
    unsigned word = 0;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
#endif
    return word;
}

/* d += a b for 16 x 16 by 16 x 8 halves. The compiler keeps the order of these products, unlike that of multiply_add
 * (mma.cuh). */
__device__ __forceinline__ void add_product(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

/* d = a b. */
__device__ __forceinline__ void set_product(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%10, %10, %10, %10};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.0f));
#endif
}

/* Returns the index of the thread. The compiler does not keep it, or what follows from it, in registers from one phase
 * to the next. */
__device__ __forceinline__ int thread_of_phase() {
    int t;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));
    return t;
}

/* Returns 16 bytes of a constant table. The compiler neither moves nor keeps the load. */
__device__ __forceinline__ uint4 load_table(const uint4 *from) {
    uint4 v;
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
}
__device__ __forceinline__ float4 load_table(const float4 *from) {
    const uint4 v = load_table((const uint4 *)from);
    return make_float4(__uint_as_float(v.x), __uint_as_float(v.y), __uint_as_float(v.z), __uint_as_float(v.w));
}

/* Returns 16 bytes of a spectrum, which the first-level cache does not keep. */
__device__ __forceinline__ float4 load_spectrum(const float4 *from) {
    float4 v;
    asm volatile("ld.global.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(from)
                 : "memory");
    return v;
}

/* Returns the bits of the largest magnitude of the 8 halves of a unit. */
__device__ __forceinline__ unsigned peak_of(uint4 unit) {
#if __CUDA_ARCH__ >= 800
    const __half2 *x = (const __half2 *)&unit;
    const __half2 m = __hmax2(__hmax2(__habs2(x[0]), __habs2(x[1])), __hmax2(__habs2(x[2]), __habs2(x[3])));
    return max((unsigned)__half_as_ushort(__low2half(m)), (unsigned)__half_as_ushort(__high2half(m)));
#else
    return unit.x;
#endif
}

/* Returns the largest value of a warp. */
__device__ __forceinline__ unsigned largest_of_warp(unsigned x) {
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(~0u, x);
#else
    return x;
#endif
}

/* Returns the products of two pairs of halves. */
__device__ __forceinline__ unsigned multiply_halves(unsigned a, unsigned b) {
#if __CUDA_ARCH__ >= 800
    const __half2 product = __hmul2(*(const __half2 *)&a, *(const __half2 *)&b);
    return *(const unsigned *)&product;
#else
    return a * b;
#endif
}

/* The operands of a DFT of 16 points without its radix-2 level: [even, odd][real b0, b1, imaginary b0, b1]. */
struct dft {
    unsigned m[2][4];
};

__device__ __forceinline__ void put(unsigned (&a)[4], uint4 v) {
    a[0] = v.x, a[1] = v.y, a[2] = v.z, a[3] = v.w;
}

/* Multiplies (x, y) by (c, s), or by its conjugate. */
template <bool Conjugate> __device__ __forceinline__ void rotate(float &x, float &y, float c, float s) {
    const float a = x, b = y;
    x = Conjugate ? a * c + b * s : a * c - b * s;
    y = Conjugate ? b * c - a * s : b * c + a * s;
}

/* Splits two floats into halves. */
__device__ __forceinline__ void split(float x, float y, unsigned &hi, unsigned &lo) {
    const float a = __uint_as_float(__float_as_uint(x) & 0xffffe000u);
    const float b = __uint_as_float(__float_as_uint(y) & 0xffffe000u);
    hi = pack_halves(a, b);
    lo = pack_halves(x - a, y - b);
}

/* Returns k of the power of two, 2^(k - 15), that a row with this peak is multiplied by. */
__device__ __forceinline__ int scale_of_row(unsigned peak) {
    return min(37 - (int)(peak >> 10), 30);
}

__device__ __forceinline__ void load_dft(dft &d, const uint4 *even, const uint4 *odd) {
    put(d.m[0], *even);
    put(d.m[1], *odd);
}

/* Returns the place of 8 points, number c of the rows of a block, which no two threads of a product's load share a bank
 * with. */
__device__ __forceinline__ int source_unit(int c) {
    const int n1 = c >> 5;
    return (n1 << 5) + ((c & 31) ^ (((n1 >> 1) & 1) | ((n1 >> 2) & 1) << 2));
}

#endif
