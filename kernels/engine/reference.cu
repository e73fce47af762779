/*
 * Kernels around cuFFT for the comparison with overlap-save by cuFFT. cuFFT reads overlapping blocks of the signal
 * itself, in a batch of real transforms whose inputs are `hop` apart.
 *
 *      multiply    Z_b[k] = Z_b[k] H[k],  k <= points / 2
 *      scatter     y[b hop + n] = z_b[points - hop + n],  n < hop
 *
 * Two bins or four samples per thread, adjacent threads at adjacent addresses. Grids are flat: block b of output o is
 * transform o blocks + b.
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

} // namespace

cudaError_t gck_reference_multiply(const gck_matrix *matrix, const gck_reference_blocks *b, const float2 *spectra,
                                   cudaStream_t stream) {
    const int64_t pairs = matrix->outputs * b->blocks * b->row / 2;
    multiply<<<(unsigned)((pairs + BLOCK - 1) / BLOCK), BLOCK, 0, stream>>>(*matrix, *b, spectra);
    return cudaGetLastError();
}

cudaError_t gck_reference_scatter(const gck_matrix *matrix, const gck_reference_blocks *b, cudaStream_t stream) {
    const int64_t fours = matrix->outputs * b->blocks * b->hop / 4;
    scatter<<<(unsigned)((fours + BLOCK - 1) / BLOCK), BLOCK, 0, stream>>>(*matrix, *b);
    return cudaGetLastError();
}
