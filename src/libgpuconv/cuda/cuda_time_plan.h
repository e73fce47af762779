/* Timing on the device: memory, a stream and events that are given back together, and the first failure kept. */
#ifndef GC_CUDA_CUDA_TIME_PLAN_H
#define GC_CUDA_CUDA_TIME_PLAN_H

#include "cuda_convolver.h"

enum { GC_CUDA_PIECES = 8 };

typedef struct gc_cuda_stage {
    cudaError_t failed; /* once set, the functions below do nothing */
    cudaStream_t stream;
    cudaEvent_t begin, end;
    void *piece[GC_CUDA_PIECES];
    int pieces;
} gc_cuda_stage;

gpuconv_status gc_cuda_stage_init(gc_cuda_stage *stage, int device);

/* Device memory with all bytes `fill`, the stage's own; NULL once anything has failed. */
void *gc_cuda_stage_take(gc_cuda_stage *stage, int64_t bytes, int fill);

/* Seconds of a launch, `runs` times, each the mean of a row of them. */
void gc_cuda_stage_time(gc_cuda_stage *stage, cudaError_t (*launch)(void *context, cudaStream_t stream), void *context,
                        int runs, double *seconds);

gpuconv_status gc_cuda_stage_end(gc_cuda_stage *stage, gpuconv_error *error);

/* See gc_backend. */
gpuconv_status gc_cuda_calibrate(const gpuconv_config *config, gc_costs *costs, gpuconv_error *error);
gpuconv_status gc_cuda_ceilings(const gpuconv_config *config, gc_ceilings *ceilings, gpuconv_error *error);
gpuconv_status gc_cuda_copy(const gpuconv_config *config, int64_t bytes, int runs, double *seconds,
                            gpuconv_error *error);
gpuconv_status gc_cuda_trial(const gpuconv_plan *plan, const float *const *in, int64_t frames, float *const *out,
                             int runs, double *seconds, gpuconv_error *error);
gpuconv_status gc_cuda_peer(const gpuconv_plan *plan, const float *const *in, int64_t frames, float *const *out,
                            int runs, double *seconds, char name[64], gpuconv_error *error);

#endif
