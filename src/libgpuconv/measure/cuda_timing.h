/* Timing of work on the device: a stream, events and memory that are released together, and the first error. */
#ifndef GC_MEASURE_CUDA_TIMING_H
#define GC_MEASURE_CUDA_TIMING_H

#include "libgpuconv/conv/cuda/cuda_algorithm.h"
#include "measure.h"

extern const gc_measures gc_measures_cuda;

typedef struct gc_cuda_timer {
    gc_cuda_resources resources; /* once resources.err is set, the functions below do nothing */
    cudaStream_t stream;
    cudaEvent_t begin, end;
    int caller; /* for gc_cuda_leave */
} gc_cuda_timer;

void gc_cuda_timer_init(gc_cuda_timer *timer, int device);

/* Allocates device memory, all bytes `fill`, that gc_cuda_timer_end releases. Returns NULL after an error. */
void *gc_cuda_timer_memory(gc_cuda_timer *timer, int64_t bytes, int fill);

/* Allocates `copies` copies of the timing's inputs: channels `stride` floats apart, zeros but for the samples, which
 * begin `front` floats behind the beginning of a channel. Returns NULL after an error. */
float *gc_cuda_timer_samples(gc_cuda_timer *timer, const gc_timing *timing, int inputs, int copies, int64_t stride,
                             int64_t front);

/* Sets all bytes of device memory. */
void gc_cuda_timer_fill(gc_cuda_timer *timer, void *at, int64_t bytes, int fill);

/* Copies `bytes` between host and device memory. */
void gc_cuda_timer_copy(gc_cuda_timer *timer, void *to, const void *from, int64_t bytes, enum cudaMemcpyKind kind);

/* Measures `launch` after warming up: seconds[run] is the mean of a row of launches. */
void gc_cuda_timer_run(gc_cuda_timer *timer, cudaError_t (*launch)(void *context, cudaStream_t stream), void *context,
                       int runs, double *seconds);

/* Releases everything.
 * @return GPUCONV_ERROR_DEVICE with a message if there was an error since gc_cuda_timer_init */
gpuconv_status gc_cuda_timer_end(gc_cuda_timer *timer, gpuconv_error *error);

#endif
