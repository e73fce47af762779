/* Cost model of convolution on a GPU, and the choice of the cheapest size. */
#ifndef GC_CUDA_CUDA_COST_H
#define GC_CUDA_CUDA_COST_H

#include "libgpuconv/engine/measure_backend.h"

/* Chunks in flight, at most: one being read, three in the streams, one being written, one in reserve. */
enum { GC_CUDA_SLOTS = 6 };

/* Returns the cost of a point in overlap-save of this size, in one kernel or three, relative to the cheapest size of
 * the same kernels, measured on an H200. Larger sizes have larger tables, fewer resident blocks and more cache misses.
 */
double gc_cuda_slowdown(int64_t points, bool three_kernels);

/* Returns the cost of the taps of a response in direct convolution, in taps of the kernel for long responses, measured
 * on an H200. */
double gc_cuda_tap_cost(const gc_device *device, const gpuconv_ir *ir);

/* Returns the approximate bytes of device memory that a stream of a backend allocates. plan: its schedule, chunk and
 * slots are set. */
double gc_cuda_device_bytes(const gc_device *device, const gpuconv_ir *ir, const gpuconv_plan *plan);

/* The entry `plan` of gc_backend: fills plan->schedule, chunk, slots and predicted. */
gpuconv_status gc_cuda_plan(gpuconv_plan *plan, gpuconv_algorithm algorithm, const gpuconv_config *config,
                            gpuconv_error *error);

#endif
