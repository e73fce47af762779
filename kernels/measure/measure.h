/* The C interface of the kernels that only measure: peak rates of a device, and the comparison with cuFFT. The rules of
 * kernels/engine/kernels.h apply. */
#ifndef GC_KERNELS_MEASURE_H
#define GC_KERNELS_MEASURE_H

#include "kernels/engine/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Kernels around cuFFT for the comparison (reference.cu) ------------------------------------------------------ */

/* Overlap-save by cuFFT: outputs x pairs complex transforms of `points` points, each of two blocks of the signal. Every
 * output has one route, at routes->route. */
typedef struct gck_reference_blocks {
    int64_t points, hop, pairs; /* points even; pairs <= 65535 */
    float2 *spectra;            /* outputs x pairs x points */
} gck_reference_blocks;

/* Loads the two blocks of each transform. */
cudaError_t gck_reference_gather(const gck_routes *routes, const gck_reference_blocks *blocks, cudaStream_t stream);

cudaError_t gck_reference_multiply(const gck_routes *routes, const gck_reference_blocks *blocks, const float2 *spectra,
                                   cudaStream_t stream);

/* Copies the kept samples to the output. */
cudaError_t gck_reference_scatter(const gck_routes *routes, const gck_reference_blocks *blocks, cudaStream_t stream);

/* ---- Peak rates of the device (peak_rates.cu) -------------------------------------------------------------------- */

/* Computes `rounds` x 64 fused multiply-adds in each of blocks x 256 threads; each thread writes one float. */
cudaError_t gck_peak_fma(float *out, int blocks, int rounds, cudaStream_t stream);

/* Copies n floats (a multiple of 4, aligned to 16 bytes). */
cudaError_t gck_peak_copy(const float *from, float *to, int64_t n, cudaStream_t stream);

/* The same copy, launched early (launch.cuh), as the convolutions are. */
cudaError_t gck_peak_copy_early(const float *from, float *to, int64_t n, cudaStream_t stream);

/* Launches an empty kernel. */
cudaError_t gck_peak_empty(cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
