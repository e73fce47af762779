/* What a convolution costs on a GPU, and the sizes that cost least. */
#ifndef GC_CUDA_CUDA_COST_H
#define GC_CUDA_CUDA_COST_H

#include "libgpuconv/engine/backend.h"

/* Chunks in flight: one being read, three in the streams, one being written, one to spare. */
enum { GC_CUDA_SLOTS = 6 };

/* How much more a point costs in overlap-save of this size than in the cheapest of its kind: what bigger tables, fewer
 * blocks at a time and caches overrun come to, measured on an H200. */
double gc_cuda_slower(int64_t points);

/* What the taps of a response come to in direct convolution, in taps of the kernel for long ones, measured on an H200.
 */
double gc_cuda_taps(const gc_device *device, const gpuconv_ir *ir);

/* Fills plan->schedule, chunk, slots and predicted: see gc_backend.plan. */
gpuconv_status gc_cuda_plan(gpuconv_plan *plan, gpuconv_algorithm algorithm, const gpuconv_config *config,
                            gpuconv_error *error);

#endif
