/* Complex arithmetic on float2. A product is two multiplications and two fused multiply-adds. */
#ifndef GC_KERNELS_COMPLEX_CUH
#define GC_KERNELS_COMPLEX_CUH

__device__ __forceinline__ float2 add(float2 a, float2 b) {
    return make_float2(a.x + b.x, a.y + b.y);
}

__device__ __forceinline__ float2 sub(float2 a, float2 b) {
    return make_float2(a.x - b.x, a.y - b.y);
}

__device__ __forceinline__ float2 mul(float2 a, float2 b) {
    return make_float2(fmaf(a.x, b.x, -a.y * b.y), fmaf(a.x, b.y, a.y * b.x));
}

/* Returns a times the conjugate of b. */
__device__ __forceinline__ float2 mul_conj(float2 a, float2 b) {
    return make_float2(fmaf(a.x, b.x, a.y * b.y), fmaf(a.y, b.x, -a.x * b.y));
}

/* Returns a b + c in four fused multiply-adds. */
__device__ __forceinline__ float2 mul_add(float2 a, float2 b, float2 c) {
    return make_float2(fmaf(a.x, b.x, fmaf(-a.y, b.y, c.x)), fmaf(a.x, b.y, fmaf(a.y, b.x, c.y)));
}

/* Returns a times -i (forward) or i (inverse), without arithmetic. */
template <bool Inverse> __device__ __forceinline__ float2 rotate_quarter(float2 a) {
    return Inverse ? make_float2(-a.y, a.x) : make_float2(a.y, -a.x);
}

#endif
