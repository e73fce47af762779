/*
 * Kernels around cuFFT for the comparison with overlap-save by cuFFT: blocks 2 p and 2 p + 1 of the signal are the real
 * and the imaginary part of one complex transform.
 *
 *      gather        z_p[n] = x[2 p hop - (points - hop) + n] + i x[(2 p + 1) hop - (points - hop) + n]
 *      multiply      Z_p[k] = Z_p[k] H[k],  k < points
 *      scatter       y[2 p hop + n] = Re z_p[points - hop + n],  y[(2 p + 1) hop + n] = Im z_p[points - hop + n]
 *
 * Adjacent threads at adjacent addresses; two bins per thread of `multiply`. block.y: pair; block.z: output.
 */
#include "measure.h"

#include "kernels/device/complex.cuh"

namespace {

enum { BLOCK = 256 };

__device__ __forceinline__ int64_t transform_index(const gck_reference_blocks &b) {
    return blockIdx.z * b.pairs + blockIdx.y;
}

__device__ __forceinline__ int64_t thread_index() {
    return (int64_t)blockIdx.x * BLOCK + threadIdx.x;
}

__global__ void multiply(gck_routes a, gck_reference_blocks b, const float2 *__restrict__ spectra) {
    const int64_t k = 2 * thread_index();
    if (k >= b.points)
        return;
    float4 *z = (float4 *)(b.spectra + transform_index(b) * b.points + k);
    const float4 h = __ldg((const float4 *)(spectra + a.route[blockIdx.z].plane * b.points + k)), x = *z;
    const float2 first = mul(make_float2(x.x, x.y), make_float2(h.x, h.y)),
                 second = mul(make_float2(x.z, x.w), make_float2(h.z, h.w));
    *z = make_float4(first.x, first.y, second.x, second.y);
}

__global__ void gather(gck_routes a, gck_reference_blocks b) {
    const int64_t n = thread_index();
    if (n >= b.points)
        return;
    const float *x = a.in + a.route[blockIdx.z].input * a.in_stride + blockIdx.y * 2 * b.hop - (b.points - b.hop) + n;
    b.spectra[transform_index(b) * b.points + n] = make_float2(x[0], x[b.hop]);
}

__global__ void scatter(gck_routes a, gck_reference_blocks b) {
    const int64_t n = thread_index();
    if (n >= b.hop)
        return;
    const float2 z = b.spectra[transform_index(b) * b.points + b.points - b.hop + n];
    float *y = a.out + blockIdx.z * a.out_stride + blockIdx.y * 2 * b.hop + n;
    y[0] = z.x;
    y[b.hop] = z.y;
}

/* Launches a kernel for all transforms with `threads` threads each. */
template <typename... Parameters>
cudaError_t launch(void (*kernel)(gck_routes, gck_reference_blocks, Parameters...), const gck_routes *routes,
                   const gck_reference_blocks *b, int64_t threads, cudaStream_t stream, Parameters... more) {
    const dim3 grid((unsigned)((threads + BLOCK - 1) / BLOCK), (unsigned)b->pairs, (unsigned)routes->outputs);
    kernel<<<grid, BLOCK, 0, stream>>>(*routes, *b, more...);
    return cudaGetLastError();
}

} // namespace

cudaError_t gck_reference_gather(const gck_routes *routes, const gck_reference_blocks *b, cudaStream_t stream) {
    return launch(gather, routes, b, b->points, stream);
}

cudaError_t gck_reference_multiply(const gck_routes *routes, const gck_reference_blocks *b, const float2 *spectra,
                                   cudaStream_t stream) {
    return launch(multiply, routes, b, b->points / 2, stream, spectra);
}

cudaError_t gck_reference_scatter(const gck_routes *routes, const gck_reference_blocks *b, cudaStream_t stream) {
    return launch(scatter, routes, b, b->hop, stream);
}
