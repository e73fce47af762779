/*
 * Kernels around cuFFT for the comparison with overlap-save by cuFFT. Blocks 2 p and 2 p + 1 of the signal are the real
 * and the imaginary part of one complex transform; an output has one route.
 *
 *      gather      z[n] = x[2 p hop - (points - hop) + n] + i x[(2 p + 1) hop - (points - hop) + n]
 *      multiply    Z[k] = Z[k] H[k]
 *      scatter     y[2 p hop + n] = Re z[points - hop + n], y[(2 p + 1) hop + n] = Im z[points - hop + n], n < hop
 *
 * One thread per element, adjacent threads at adjacent elements. block.y: pair p; block.z: output.
 */
#include "kernels.h"

#include "kernels/device/complex.cuh"

namespace {

enum { BLOCK = 256 };

__global__ void gather(gck_matrix a, int64_t points, int64_t hop, float2 *blocks) {
    int64_t n = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (n >= points)
        return;
    const float *x =
        a.in + a.route[blockIdx.z].input * a.in_stride + (int64_t)blockIdx.y * 2 * hop - (points - hop) + n;
    blocks[((int64_t)blockIdx.z * gridDim.y + blockIdx.y) * points + n] = make_float2(x[0], x[hop]);
}

__global__ void multiply(gck_matrix a, int64_t points, const float2 *__restrict__ spectra, float2 *blocks) {
    int64_t n = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (n >= points)
        return;
    float2 *z = blocks + ((int64_t)blockIdx.z * gridDim.y + blockIdx.y) * points + n;
    *z = mul(*z, spectra[a.route[blockIdx.z].plane * points + n]);
}

__global__ void scatter(gck_matrix a, int64_t points, int64_t hop, const float2 *__restrict__ blocks) {
    int64_t n = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (n >= hop)
        return;
    float2 z = blocks[((int64_t)blockIdx.z * gridDim.y + blockIdx.y) * points + points - hop + n];
    float *y = a.out + blockIdx.z * a.out_stride + (int64_t)blockIdx.y * 2 * hop + n;
    y[0] = z.x;
    y[hop] = z.y;
}

dim3 grid_of(const gck_matrix *matrix, int64_t n, int64_t pairs) {
    return dim3((unsigned)((n + BLOCK - 1) / BLOCK), (unsigned)pairs, matrix->outputs);
}

} // namespace

cudaError_t gck_reference_gather(const gck_matrix *matrix, const gck_reference_blocks *b, cudaStream_t stream) {
    gather<<<grid_of(matrix, b->points, b->pairs), BLOCK, 0, stream>>>(*matrix, b->points, b->hop, b->blocks);
    return cudaGetLastError();
}

cudaError_t gck_reference_multiply(const gck_matrix *matrix, const gck_reference_blocks *b, const float2 *spectra,
                                   cudaStream_t stream) {
    multiply<<<grid_of(matrix, b->points, b->pairs), BLOCK, 0, stream>>>(*matrix, b->points, spectra, b->blocks);
    return cudaGetLastError();
}

cudaError_t gck_reference_scatter(const gck_matrix *matrix, const gck_reference_blocks *b, cudaStream_t stream) {
    scatter<<<grid_of(matrix, b->hop, b->pairs), BLOCK, 0, stream>>>(*matrix, b->points, b->hop, b->blocks);
    return cudaGetLastError();
}
