/* The part of batches with small transforms (batch_short.cu), for batch.cu. */
#ifndef GC_KERNELS_BATCH_SHORT_CUH
#define GC_KERNELS_BATCH_SHORT_CUH

#include "kernels.h"

/* Complex points of a transform, and complex numbers of its twiddle table. */
enum { GCK_BATCH_SHORT_POINTS = 4096, GCK_BATCH_SHORT_TWIDDLES = 128 + 2048 + 128 + 2048 };

/* Writes the twiddle table, in host memory. */
void gck_batch_short_twiddles(float2 *twiddles);

/* Convolves `count` items whose responses have at most GCK_BATCH_SHORT_POINTS taps. memory->twiddles is the table of
 * gck_batch_short_twiddles. floats: all samples are adjacent floats. *next_item is zero. */
cudaError_t gck_batch_short(const gck_batch_item *items, int count, bool floats, const gck_batch_memory *memory,
                            int *next_item, cudaStream_t stream);

#endif
