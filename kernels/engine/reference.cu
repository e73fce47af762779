/* What stands around cuFFT when others convolve with it: gather overlapping pairs of blocks, multiply by the spectrum,
 * scatter what is kept. For comparison only; an output has one route. */
#include "kernels.h"

#include "kernels/device/complex.cuh"

namespace {

enum { BLOCK = 256 };

/* block.y: pair; block.z: output. */
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

cudaError_t gck_peer_gather(const gck_matrix *matrix, int64_t points, int64_t hop, int64_t pairs, float2 *blocks,
                            cudaStream_t stream) {
    gather<<<grid_of(matrix, points, pairs), BLOCK, 0, stream>>>(*matrix, points, hop, blocks);
    return cudaGetLastError();
}

cudaError_t gck_peer_multiply(const gck_matrix *matrix, int64_t points, int64_t pairs, const float2 *spectra,
                              float2 *blocks, cudaStream_t stream) {
    multiply<<<grid_of(matrix, points, pairs), BLOCK, 0, stream>>>(*matrix, points, spectra, blocks);
    return cudaGetLastError();
}

cudaError_t gck_peer_scatter(const gck_matrix *matrix, int64_t points, int64_t hop, int64_t pairs, const float2 *blocks,
                             cudaStream_t stream) {
    scatter<<<grid_of(matrix, hop, pairs), BLOCK, 0, stream>>>(*matrix, points, hop, blocks);
    return cudaGetLastError();
}
