/* Rows of a batch on a CUDA device (cuda_batch.c), shared by the batch backend and its benchmark. */
#ifndef GC_CUDA_CUDA_BATCH_H
#define GC_CUDA_CUDA_BATCH_H

#include "cuda_device.h"
#include "kernels/engine/kernels.h"
#include "libgpuconv/conv/backend.h"

/* What the kernels need on a device besides samples and items. */
typedef struct gc_cuda_items {
    const float2 *twiddles[GCK_ITEM_SIZES];
    float2 *scratch;
    int *next; /* for each size */
} gc_cuda_items;

/* Makes the tables and the scratch memory of a device. Returns the first error of *resources. */
cudaError_t gc_cuda_items_init(gc_cuda_items *rows, gc_cuda_resources *resources);

/* Returns an upper bound of the pieces of `rows` rows with `frames` output frames in all. */
int64_t gc_cuda_items_pieces(int64_t rows, int64_t frames);

/* Cuts a row, whose arrays and lengths are given, into pieces. Their transforms depend on the lengths alone, so that a
 * row has the same samples in every batch and on every device. Returns their number. */
int gc_cuda_items_cut(const gck_item *row, gck_item *pieces);

/* Sorts pieces by their transforms and from long to short; counts: the number of each of the GCK_ITEM_SIZES. */
void gc_cuda_items_sort(gck_item *pieces, int64_t count, int *counts);

/* Queues the convolution of sorted pieces in device memory. */
cudaError_t gc_cuda_items_convolve(const gc_cuda_items *rows, const gck_item *pieces, const int *counts,
                                   cudaStream_t stream);

#endif
