/* A slot of a batch on a CUDA device, shared by the batch backend and its benchmark. */
#ifndef GC_CUDA_CUDA_BATCH_H
#define GC_CUDA_CUDA_BATCH_H

#include "cuda_resources.h"
#include "kernels/engine/kernels.h"
#include "libgpuconv/engine/batch_convolver.h"

/* Every segment of an item but the last has more outputs than this. */
enum { GC_CUDA_SEGMENT_MIN = 32768 };

/* Buffers of samples. The items follow the input samples, the counts of clipped samples follow the output samples. */
struct gc_batch_slot {
    gc_cuda_resources resources;
    char *in, *out;               /* page-locked host memory, one allocation */
    char *device_in, *device_out; /* one allocation with `memory` */
    gck_batch_memory memory;
    const unsigned long long *clipped; /* in `out`: one per item of the current work */
    cudaStream_t stream;
};

/* Creates a slot's stream, memory and tables, with space for `bytes` of samples each way and `items` items. Returns the
 * first error of slot->resources, which must have been initialised. */
cudaError_t gc_cuda_batch_allocate(gc_batch_slot *slot, int64_t bytes, int items);

/* Cuts an item into segments, writes them to `to` and returns their number. device_in, device_out: device memory that
 * the offsets of the item refer to. clipped: the item's count, device memory, or NULL if the output is floats. */
int gc_cuda_batch_cut(const gc_batch_item *item, char *device_in, char *device_out, unsigned long long *clipped,
                      gck_batch_item *to);

/* Sorts segments by class and from long to short, and stores the number of segments of each of the GCK_BATCH_CLASSES.
 */
void gc_cuda_batch_sort(gck_batch_item *segments, int count, int *counts);

/* The entry `time_batch` of gc_batch_backend. */
gpuconv_status gc_cuda_time_batch(const gc_batch_timing *timing, double *error_db, gpuconv_error *error);

#endif
