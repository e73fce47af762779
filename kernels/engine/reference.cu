/*
 * Kernels around cuFFT for the comparison with overlap-save by cuFFT, in two forms.
 *
 * Real transforms: cuFFT reads overlapping blocks of the signal itself, in a batch whose inputs are `hop` apart.
 *
 *      multiply        Z_b[k] = Z_b[k] H[k],  k <= points / 2
 *      scatter         y[b hop + n] = z_b[points - hop + n],  n < hop
 *
 * Pairs: blocks 2 p and 2 p + 1 are the real and the imaginary part of one complex transform.
 *
 *      gather_pairs    z_p[n] = x[2 p hop - (points - hop) + n] + i x[(2 p + 1) hop - (points - hop) + n]
 *      multiply        the same, k < points
 *      scatter_pairs   y[2 p hop + n] = Re z_p[points - hop + n],  y[(2 p + 1) hop + n] = Im z_p[points - hop + n]
 *
 * Adjacent threads at adjacent addresses; two bins or four samples per thread where the layout allows it. block.y:
 * block or pair; block.z: output.
 */
#include "kernels.h"

#include "kernels/device/complex.cuh"

namespace {

enum { BLOCK = 256 };

__device__ __forceinline__ int64_t transform_index(const gck_reference_blocks &b) {
    return blockIdx.z * b.blocks + blockIdx.y;
}

__device__ __forceinline__ int64_t thread_index() {
    return (int64_t)blockIdx.x * BLOCK + threadIdx.x;
}

__global__ void multiply(gck_matrix a, gck_reference_blocks b, const float2 *__restrict__ spectra) {
    const int64_t k = 2 * thread_index();
    if (k >= b.row)
        return;
    float4 *z = (float4 *)(b.spectra + transform_index(b) * b.row + k);
    const float4 h = __ldg((const float4 *)(spectra + a.route[blockIdx.z].plane * b.row + k)), x = *z;
    const float2 first = mul(make_float2(x.x, x.y), make_float2(h.x, h.y)),
                 second = mul(make_float2(x.z, x.w), make_float2(h.z, h.w));
    *z = make_float4(first.x, first.y, second.x, second.y);
}

__global__ void scatter(gck_matrix a, gck_reference_blocks b) {
    const int64_t n = 4 * thread_index();
    if (n >= b.hop)
        return;
    *(float4 *)(a.out + blockIdx.z * a.out_stride + blockIdx.y * b.hop + n) =
        *(const float4 *)(b.samples + transform_index(b) * b.points + b.points - b.hop + n);
}

__global__ void gather_pairs(gck_matrix a, gck_reference_blocks b) {
    const int64_t n = thread_index();
    if (n >= b.points)
        return;
    const float *x = a.in + a.route[blockIdx.z].input * a.in_stride + blockIdx.y * 2 * b.hop - (b.points - b.hop) + n;
    b.spectra[transform_index(b) * b.points + n] = make_float2(x[0], x[b.hop]);
}

__global__ void scatter_pairs(gck_matrix a, gck_reference_blocks b) {
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
cudaError_t launch(void (*kernel)(gck_matrix, gck_reference_blocks, Parameters...), const gck_matrix *matrix,
                   const gck_reference_blocks *b, int64_t threads, cudaStream_t stream, Parameters... more) {
    const dim3 grid((unsigned)((threads + BLOCK - 1) / BLOCK), (unsigned)b->blocks, (unsigned)matrix->outputs);
    kernel<<<grid, BLOCK, 0, stream>>>(*matrix, *b, more...);
    return cudaGetLastError();
}

} // namespace

cudaError_t gck_reference_gather(const gck_matrix *matrix, const gck_reference_blocks *b, cudaStream_t stream) {
    return b->samples ? cudaSuccess : launch(gather_pairs, matrix, b, b->points, stream);
}

cudaError_t gck_reference_multiply(const gck_matrix *matrix, const gck_reference_blocks *b, const float2 *spectra,
                                   cudaStream_t stream) {
    return launch(multiply, matrix, b, b->row / 2, stream, spectra);
}

cudaError_t gck_reference_scatter(const gck_matrix *matrix, const gck_reference_blocks *b, cudaStream_t stream) {
    return b->samples ? launch(scatter, matrix, b, b->hop / 4, stream)
                      : launch(scatter_pairs, matrix, b, b->hop, stream);
}
