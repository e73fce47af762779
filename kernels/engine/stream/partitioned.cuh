/* Partitioned convolution with long transforms (partitioned_long.cu), for responses beyond the longest transform of
 * overlap-save: the functions of kernels.h for these sizes. */
#ifndef GC_KERNELS_PARTITIONED_CUH
#define GC_KERNELS_PARTITIONED_CUH

#include "kernels/engine/kernels.h"

gck_partitioned_sizes gck_long_partitioned_query(int64_t points);
void gck_long_partitioned_twiddles(int64_t points, float2 *twiddles);
cudaError_t gck_long_partitioned_spectra(const gck_partitioning &partitioning, const gck_responses &responses,
                                         cudaStream_t stream);
cudaError_t gck_long_partitioned(const gck_matrix &matrix, const gck_partitioning &partitioning, cudaStream_t stream);

#endif
