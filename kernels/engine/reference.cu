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
 * Adjacent threads at adjacent addresses. Grids are flat: block b of output o is transform o blocks + b.
 */
#include "kernels.h"

#include "kernels/device/complex.cuh"

namespace {

enum { BLOCK = 256 };

__global__ void multiply(gck_matrix a, gck_reference_blocks b, const float2 *__restrict__ spectra) {
    const int64_t i = 2 * ((int64_t)blockIdx.x * BLOCK + threadIdx.x), at = i / b.row, k = i % b.row;
    if (at >= a.outputs * b.blocks)
        return;
    float4 *z = (float4 *)(b.spectra + i);
    const float4 h = __ldg((const float4 *)(spectra + a.route[at / b.blocks].plane * b.row + k)), x = *z;
    const float2 first = mul(make_float2(x.x, x.y), make_float2(h.x, h.y)),
                 second = mul(make_float2(x.z, x.w), make_float2(h.z, h.w));
    *z = make_float4(first.x, first.y, second.x, second.y);
}

__global__ void scatter(gck_matrix a, gck_reference_blocks b) {
    const int64_t i = 4 * ((int64_t)blockIdx.x * BLOCK + threadIdx.x), at = i / b.hop, n = i % b.hop;
    if (at >= a.outputs * b.blocks)
        return;
    *(float4 *)(a.out + at / b.blocks * a.out_stride + at % b.blocks * b.hop + n) =
        *(const float4 *)(b.samples + at * b.points + b.points - b.hop + n);
}

__global__ void gather_pairs(gck_matrix a, gck_reference_blocks b) {
    const int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, at = i / b.points, n = i % b.points;
    if (at >= a.outputs * b.blocks)
        return;
    const float *x =
        a.in + a.route[at / b.blocks].input * a.in_stride + at % b.blocks * 2 * b.hop - (b.points - b.hop) + n;
    b.spectra[i] = make_float2(x[0], x[b.hop]);
}

__global__ void scatter_pairs(gck_matrix a, gck_reference_blocks b) {
    const int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, at = i / b.hop, n = i % b.hop;
    if (at >= a.outputs * b.blocks)
        return;
    const float2 z = b.spectra[at * b.points + b.points - b.hop + n];
    float *y = a.out + at / b.blocks * a.out_stride + at % b.blocks * 2 * b.hop + n;
    y[0] = z.x;
    y[b.hop] = z.y;
}

unsigned grid_of(int64_t threads) {
    return (unsigned)((threads + BLOCK - 1) / BLOCK);
}

} // namespace

cudaError_t gck_reference_multiply(const gck_matrix *matrix, const gck_reference_blocks *b, const float2 *spectra,
                                   cudaStream_t stream) {
    multiply<<<grid_of(matrix->outputs * b->blocks * b->row / 2), BLOCK, 0, stream>>>(*matrix, *b, spectra);
    return cudaGetLastError();
}

cudaError_t gck_reference_scatter(const gck_matrix *matrix, const gck_reference_blocks *b, cudaStream_t stream) {
    scatter<<<grid_of(matrix->outputs * b->blocks * b->hop / 4), BLOCK, 0, stream>>>(*matrix, *b);
    return cudaGetLastError();
}

cudaError_t gck_reference_gather_pairs(const gck_matrix *matrix, const gck_reference_blocks *b, cudaStream_t stream) {
    gather_pairs<<<grid_of(matrix->outputs * b->blocks * b->points), BLOCK, 0, stream>>>(*matrix, *b);
    return cudaGetLastError();
}

cudaError_t gck_reference_scatter_pairs(const gck_matrix *matrix, const gck_reference_blocks *b, cudaStream_t stream) {
    scatter_pairs<<<grid_of(matrix->outputs * b->blocks * b->hop), BLOCK, 0, stream>>>(*matrix, *b);
    return cudaGetLastError();
}
